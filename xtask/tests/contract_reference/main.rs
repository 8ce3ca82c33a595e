//! Files that are generated from the comments and types of `wit/0.2.0`.

mod page;
mod types;
mod typescript;

use std::path::Path;

use wit_parser::{PackageId, Resolve};

const CONTRACT: &str = "wit/0.2.0";

/// Compares a file with what the contract gives, or writes it.
fn is_generated(file: &str, render: fn(&Resolve, PackageId) -> String) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut resolve = Resolve::default();
    let (package, _) = resolve
        .push_dir(root.join(CONTRACT))
        .map_err(|error| format!("{CONTRACT}: {error}"))?;
    let generated = render(&resolve, package);
    let path = root.join(file);
    if std::env::var_os("UPDATE_CONTRACT_PAGE").is_some() {
        std::fs::write(&path, &generated).map_err(|error| format!("{file}: {error}"))?;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    if committed == generated {
        return Ok(());
    }
    Err(format!("{file} is stale; run `cargo xtask codegen`"))
}

#[test]
fn page_is_generated_from_the_contract() {
    is_generated("docs/contract.md", page::render).unwrap();
}

#[test]
fn types_for_typescript_are_generated_from_the_contract() {
    is_generated("sdk/js/veeksha/contract.ts", typescript::render).unwrap();
}
