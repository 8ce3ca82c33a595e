//! Generated files: regenerated or compared by the tests that own them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::c_bindings;

/// A generated file, and the test that compares it and rewrites it when `variable` is set.
struct Generated {
    files: &'static str,
    package: &'static str,
    /// Arguments of `cargo test` after the package.
    test: &'static [&'static str],
    variable: &'static str,
}

/// Every generated file but snapshots (`cargo insta`) and components (`cargo xtask plugins`).
const GENERATED: [Generated; 5] = [
    Generated {
        files: "sdk/lua/veeksha.lua",
        package: "veeksha-scenario",
        test: &["--test", "annotations"],
        variable: "UPDATE_ANNOTATIONS",
    },
    Generated {
        files: "host/crates/prompt/tokenizer/words.txt",
        package: "veeksha-prompt",
        test: &["--lib", "embedded"],
        variable: "UPDATE_WORDS",
    },
    Generated {
        files: "docs/results.md",
        package: "veeksha-definitions",
        test: &[],
        variable: "UPDATE_DOCS",
    },
    Generated {
        files: "docs/contract.md",
        package: "xtask",
        test: &["--test", "contract_reference"],
        variable: "UPDATE_CONTRACT_PAGE",
    },
    Generated {
        files: "sdk/js/veeksha/contract.ts",
        package: "xtask",
        test: &["--test", "contract_reference"],
        variable: "UPDATE_CONTRACT_PAGE",
    },
];

/// Regenerates every generated file, or fails for stale ones.
pub(crate) fn run(repository: &Path, is_check: bool) -> Result<()> {
    c_bindings::run(repository, is_check)?;
    for generated in &GENERATED {
        println!("{}", generated.files);
        test(
            repository,
            generated.package,
            generated.test,
            generated.variable,
            is_check,
        )?;
    }
    for package in plugins_with_a_schema(repository)? {
        println!("plugins: schema of {package}");
        test(repository, &package, &["schema"], "UPDATE_SCHEMA", is_check)?;
    }
    Ok(())
}

fn test(repository: &Path, package: &str, arguments: &[&str], variable: &str, is_check: bool) -> Result<()> {
    let mut command = Command::new("cargo");
    command
        .current_dir(repository)
        .args(["test", "--quiet", "--package", package])
        .args(arguments)
        .env_remove(variable);
    if !is_check {
        command.env(variable, "1");
    }
    let status = command.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("{package}: a generated file is stale; run `cargo xtask codegen`");
    }
    Ok(())
}

/// Packages in `plugins/` with a committed `schema.json`.
fn plugins_with_a_schema(repository: &Path) -> Result<Vec<String>> {
    let folder = repository.join("plugins");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.join("schema.json").exists() && path.join("Cargo.toml").exists() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            found.push(format!("veeksha-{}", name.replace('_', "-")));
        }
    }
    found.sort();
    Ok(found)
}

/// Tests and lints one crate: the quick loop.
pub(crate) fn test_crate(repository: &Path, name: &str, arguments: &[String]) -> Result<()> {
    let package = package(repository, name);
    for command in [
        ["fmt", "--package", &package, "--", "--check"].as_slice(),
        &[
            "clippy",
            "--package",
            &package,
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
    ] {
        cargo(repository, command)?;
    }
    let mut test = vec!["test", "--package", &package];
    test.extend(arguments.iter().map(String::as_str));
    cargo(repository, &test)
}

/// The package of a crate's folder: `slo` is `veeksha-slo`, `host` is `veeksha-host`.
fn package(repository: &Path, name: &str) -> String {
    let is_short = ["host/crates", "plugins"]
        .iter()
        .any(|folder| repository.join(folder).join(name).join("Cargo.toml").exists());
    if is_short || name == "host" {
        format!("veeksha-{}", name.replace('_', "-"))
    } else {
        name.to_owned()
    }
}

fn cargo(repository: &Path, arguments: &[&str]) -> Result<()> {
    println!("cargo {}", arguments.join(" "));
    let status = Command::new("cargo")
        .current_dir(repository)
        .args(arguments)
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("`cargo {}` failed", arguments.join(" "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
    }

    #[test]
    fn resolves_folders_to_packages() {
        assert_eq!(package(repository(), "slo"), "veeksha-slo");
        assert_eq!(package(repository(), "multi_turn"), "veeksha-multi-turn");
        assert_eq!(package(repository(), "host"), "veeksha-host");
        assert_eq!(package(repository(), "xtask"), "xtask");
    }

    #[test]
    fn generated_files_and_their_variables_exist() {
        for generated in &GENERATED {
            assert!(repository().join(generated.files).exists(), "{}", generated.files);
        }
        let plugins = plugins_with_a_schema(repository()).unwrap();
        assert!(plugins.contains(&"veeksha-synthetic".to_owned()), "{plugins:?}");
    }
}
