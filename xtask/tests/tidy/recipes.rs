//! `CONTRIBUTING.md` names files, symbols, packages and commands that exist.

use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{Metadata, MetadataCommand};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text() -> String {
    std::fs::read_to_string(root().join("CONTRIBUTING.md")).expect("CONTRIBUTING.md")
}

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .other_options(vec!["--offline".into()])
        .exec()
        .expect("cargo metadata answers")
}

/// The text between the backticks of a table's cell.
fn code(cell: &str) -> Option<&str> {
    cell.trim().strip_prefix('`')?.strip_suffix('`')
}

/// Rows of tables whose first two cells are code.
fn rows(text: &str) -> Vec<(&str, &str)> {
    text.lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix('|')?.split('|');
            Some((code(cells.next()?)?, code(cells.next()?)?))
        })
        .collect()
}

#[test]
fn recipes_name_files_and_symbols_that_exist() {
    let text = text();
    let (recipes, _) = text.split_once("## Index of examples").expect("the index");
    let mut missing = Vec::new();
    let rows = rows(recipes);
    for (file, symbol) in &rows {
        let found = std::fs::read_to_string(root().join(file)).is_ok_and(|text| text.contains(symbol));
        if !found {
            missing.push(format!("{file}: {symbol}"));
        }
    }
    assert!(rows.len() > 30, "the recipes are tables of files and symbols");
    assert!(missing.is_empty(), "CONTRIBUTING.md is out of date: {missing:#?}");
}

#[test]
fn recipes_cover_the_usual_changes() {
    let text = text();
    for recipe in [
        "metric",
        "flavor",
        "endpoint",
        "key",
        "health check",
        "plot",
        "command",
        "exit code",
        "field of a finished request",
        "wasmtime",
    ] {
        let heading = |line: &str| line.starts_with("### ") && line.contains(recipe);
        assert!(text.lines().any(heading), "no recipe for a {recipe}");
    }
}

#[test]
fn examples_are_listed_exactly() {
    let text = text();
    let (_, index) = text.split_once("## Index of examples").expect("the index");
    let listed: Vec<(String, String)> = rows(index)
        .into_iter()
        .map(|(package, example)| (package.to_owned(), example.to_owned()))
        .collect();
    let mut found: Vec<(String, String)> = Vec::new();
    for package in metadata().packages {
        for target in package.targets.iter().filter(|target| target.is_example()) {
            found.push((package.name.to_string(), target.name.clone()));
        }
    }
    found.sort();
    assert_eq!(listed, found, "CONTRIBUTING.md (left) and the workspace (right)");
}

#[test]
fn commands_name_packages_and_chores_that_exist() {
    let packages: Vec<String> = metadata()
        .packages
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    let text = text();
    let mut count = 0;
    for block in text.split("```sh\n").skip(1) {
        let (block, _) = block.split_once("```").expect("the block's end");
        for line in block.lines() {
            let words: Vec<&str> = line.split_whitespace().take_while(|word| *word != "#").collect();
            if let Some(at) = words
                .iter()
                .position(|word| *word == "-p" || *word == "--package")
            {
                let package = words.get(at + 1).copied().unwrap_or_default();
                let is_library = package == "wasmtime";
                assert!(
                    is_library || packages.iter().any(|name| name == package),
                    "{line}"
                );
            }
            if let Some(at) = words.iter().position(|word| *word == "xtask") {
                count += 1;
                let help = Command::new(env!("CARGO_BIN_EXE_xtask"))
                    .arg(words.get(at + 1).copied().unwrap_or_default())
                    .arg("--help")
                    .status();
                assert!(help.is_ok_and(|status| status.success()), "{line}");
            }
        }
    }
    assert!(count > 10, "recipes end with commands");
}
