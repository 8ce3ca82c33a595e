//! Embeds the SDKs and their examples: `plugin new` copies them, so that a project needs neither
//! this repository nor a published package.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Folders that tools write, below any SDK or example.
const WRITTEN: [&str; 8] = [
    "build",
    "target",
    "node_modules",
    "__pycache__",
    ".venv",
    ".mypy_cache",
    "benchmark_output",
    "dist",
];
/// Files that tools write.
const WRITTEN_FILES: [&str; 1] = ["Cargo.lock"];
/// Manifests of cargo, which inherit from the workspace.
const INHERITING: [&str; 2] = ["rust/Cargo.toml", "coroutines/Cargo.toml"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let own = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let output = PathBuf::from(env::var("OUT_DIR")?);
    let repository = own.join("../../..").canonicalize()?;
    let sdk = repository.join("sdk");
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(&sdk)? {
        let folder = entry?.path();
        if folder.is_dir() {
            collect(&folder, &mut files)?;
        }
    }
    let workspace = repository.join("Cargo.toml");
    println!("cargo::rerun-if-changed={}", workspace.display());
    let workspace = fs::read_to_string(workspace)?;
    let mut table = String::from("&[\n");
    for (path, is_folder) in &files {
        println!("cargo::rerun-if-changed={}", path.display());
        if *is_folder {
            continue;
        }
        let name = path
            .strip_prefix(&sdk)?
            .to_str()
            .ok_or("a path that is not UTF-8")?;
        let source = if INHERITING.contains(&name) {
            let standalone = output.join(name.replace('/', "_"));
            fs::write(&standalone, inherit(&fs::read_to_string(path)?, &workspace)?)?;
            standalone
        } else {
            path.clone()
        };
        writeln!(table, "    ({name:?}, include_bytes!({source:?})),")?;
    }
    table.push_str("]\n");
    fs::write(output.join("sdk_files.rs"), table)?;
    Ok(())
}

/// Adds the files of a folder, and the folder itself if tools wrote nothing in it: cargo looks for
/// changes in all that a folder contains. Returns true in this case.
fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, bool>) -> io::Result<bool> {
    let mut is_whole = true;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            if WRITTEN.contains(&name.as_str()) {
                is_whole = false;
            } else {
                is_whole &= collect(&path, files)?;
            }
        } else if !WRITTEN_FILES.contains(&name.as_str()) {
            files.insert(path, false);
        }
    }
    if is_whole {
        files.insert(folder.to_owned(), true);
    }
    Ok(is_whole)
}

/// Returns a manifest of cargo with what it inherits from the workspace, and without what a user of
/// the package does not need.
fn inherit(manifest: &str, workspace: &str) -> Result<String, String> {
    let mut standalone = String::new();
    let mut section = "";
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        }
        if matches!(section, "[lints]" | "[dev-dependencies]") {
            continue;
        }
        let of_workspace = if section == "[package]" {
            "[workspace.package]"
        } else {
            "[workspace.dependencies]"
        };
        standalone.push_str(&inherit_line(line, workspace, of_workspace)?);
        standalone.push('\n');
    }
    Ok(standalone.trim_end().to_owned() + "\n")
}

/// `serde.workspace = true` and `serde = { workspace = true, optional = true }`, with the
/// workspace's value.
fn inherit_line(line: &str, workspace: &str, section: &str) -> Result<String, String> {
    const MEMBER: &str = "workspace = true";
    if let Some(name) = line.strip_suffix(".workspace = true") {
        return Ok(format!("{name} = {}", value(workspace, section, name)?));
    }
    let Some((name, table)) = line
        .split_once(" = {")
        .filter(|(_, table)| table.contains(MEMBER))
    else {
        return Ok(line.to_owned());
    };
    let value = value(workspace, section, name)?;
    let inherited = match value
        .strip_prefix("{ ")
        .and_then(|value| value.strip_suffix(" }"))
    {
        Some(members) => members.to_owned(),
        None => format!("version = {value}"),
    };
    Ok(format!("{name} = {{{}", table.replace(MEMBER, &inherited)))
}

/// The value of a key of a section.
fn value<'a>(manifest: &'a str, section: &str, name: &str) -> Result<&'a str, String> {
    let (_, after) = manifest
        .split_once(&format!("\n{section}\n"))
        .ok_or_else(|| format!("the workspace has no {section}"))?;
    let lines = after.lines().take_while(|line| !line.starts_with('['));
    let mut values = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
    values
        .next()
        .ok_or_else(|| format!("{section} of the workspace has no {name}"))
}
