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

/// The beginnings of a symbol that defines something.
const DEFINITIONS: [&str; 10] = [
    "fn ",
    "struct ",
    "enum ",
    "trait ",
    "type ",
    "const ",
    "static ",
    "mod ",
    "macro_rules! ",
    "pub use ",
];

/// Returns the number of lines in which the symbol is a whole word.
fn lines_with(text: &str, symbol: &str) -> usize {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let is_whole = |line: &str| {
        line.match_indices(symbol).any(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + symbol.len()..]);
            !before.ends_with(is_part) && !after.starts_with(is_part)
        })
    };
    text.lines().filter(|line| is_whole(line)).count()
}

/// Returns the reason why a row does not lead to a definition. In Rust the symbol must be a
/// definition that the file has once; a word that is always somewhere would never be out of date.
fn problem(file: &str, symbol: &str) -> Option<String> {
    let Ok(text) = std::fs::read_to_string(root().join(file)) else {
        return Some(format!("{file} does not exist"));
    };
    let found = lines_with(&text, symbol);
    if !file.ends_with(".rs") {
        return (found == 0).then(|| format!("{file} does not contain `{symbol}`"));
    }
    if !DEFINITIONS.iter().any(|start| symbol.starts_with(start)) {
        return Some(format!("{file}: `{symbol}` is not a definition"));
    }
    (found != 1).then(|| format!("{file} defines `{symbol}` {found} times"))
}

#[test]
fn words_within_other_words_are_not_symbols() {
    let text = "fn push(&mut self)\nfn push_tokens()\n    pub fn push_tokens2()\n";
    assert_eq!(lines_with(text, "fn push"), 1);
    assert_eq!(lines_with(text, "fn push_tokens"), 1);
    assert_eq!(lines_with(text, "push"), 1);
    assert_eq!(lines_with("struct Runtime {}", "Runtime"), 1);
}

#[test]
fn recipes_name_files_and_definitions_that_exist() {
    let text = text();
    let (recipes, _) = text.split_once("## Index of examples").expect("the index");
    let rows = rows(recipes);
    let problems: Vec<String> = rows
        .iter()
        .filter_map(|(file, symbol)| problem(file, symbol))
        .collect();
    assert!(rows.len() > 60, "the recipes are tables of files and symbols");
    assert!(
        problems.is_empty(),
        "CONTRIBUTING.md is out of date: {problems:#?}"
    );
}

#[test]
fn recipes_cover_the_usual_changes() {
    let text = text();
    for recipe in [
        "request metric",
        "session metric",
        "run metric",
        "traffic type",
        "flavor",
        "endpoint",
        "key",
        "health check",
        "plot",
        "command",
        "exit code",
        "recorded field of a finished request",
        "field of a finished request to plugins",
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
