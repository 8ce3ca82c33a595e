//! The bindings of the C SDK, generated from the contract.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::Resolve;

/// The contract that the bindings are of, and their folder, relative to the repository.
const CONTRACT: &str = "wit/0.2.0";
const FOLDER: &str = "sdk/c/generated";

/// The kinds of plugins, as the contract names their interfaces.
const KINDS: [&str; 8] = [
    "session-generator",
    "agent-generator",
    "arrival-process",
    "trace-flavor",
    "endpoint-codec",
    "metric",
    "request-check",
    "slo-check",
];

/// The interfaces that plugins import or share, with the prefixes of their names in C.
const SHARED: [(&str, &str); 7] = [
    ("types", "veeksha"),
    ("records", "veeksha_records"),
    ("results", "veeksha_results"),
    ("log", "veeksha_log"),
    ("random", "veeksha_random"),
    ("tokens", "veeksha_tokens"),
    ("blobs", "veeksha_blobs"),
];

/// The generator calls its files after the world, whose name is also the prefix of all strings and
/// lists.
const WORLD: &str = "veeksha";
/// The name of the files.
const FILES: &str = "contract";

/// Writes the bindings, or fails for stale ones.
pub(crate) fn run(repository: &Path, is_check: bool) -> Result<()> {
    println!("{FOLDER}");
    for (file, bytes) in generate(repository)? {
        let path = repository.join(&file);
        if is_check {
            let found = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            if found != bytes {
                bail!("{} is stale; run `cargo xtask codegen`", file.display());
            }
            continue;
        }
        let folder = path.parent().unwrap_or(repository);
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Returns header, source and type section for each kind, by their paths in the repository.
fn generate(repository: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut generated = Vec::new();
    for kind in KINDS {
        let mut resolve = Resolve::default();
        let (package, _) = resolve
            .push_dir(repository.join(CONTRACT))
            .context("the contract does not parse")?;
        let world = resolve.select_world(&[package], Some(&format!("{kind}-plugin")))?;
        let id = |interface: &str| format!("veeksha:plugin/{interface}@0.2.0");
        let exported = kind.replace('-', "_");
        let imports: Vec<String> = resolve.worlds[world]
            .imports
            .keys()
            .map(|key| resolve.name_world_key(key))
            .collect();
        let mut rename: Vec<(String, String)> = SHARED
            .iter()
            .filter(|(interface, _)| imports.contains(&id(interface)))
            .map(|(interface, prefix)| (id(interface), (*prefix).to_owned()))
            .collect();
        rename.push((id(kind), exported.clone()));
        let options = wit_bindgen_c::Opts {
            rename,
            rename_world: Some(WORLD.to_owned()),
            ..Default::default()
        };
        let mut files = Files::default();
        options.build().generate(&mut resolve, world, &mut files)?;
        for (name, bytes) in files.iter() {
            let name = name.replacen(WORLD, FILES, 1);
            generated.push((Path::new(FOLDER).join(&exported).join(name), renamed(bytes)));
        }
    }
    Ok(generated)
}

/// Returns a file that includes the header by its name here.
fn renamed(bytes: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text
            .replace(&format!("\"{WORLD}.h\""), &format!("\"{FILES}.h\""))
            .into_bytes(),
        Err(_) => bytes.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_of_c_are_current() {
        run(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), true).unwrap();
    }
}
