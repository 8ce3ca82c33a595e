//! Released `.wit` files and components never change: `wit/frozen.txt` lists them with digests.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::digests::{self, Digests};

const LIST: &str = "frozen.txt";
/// The components that were built for released versions, in a folder for each, relative to the
/// repository.
const COMPONENTS: &str = "tests/guests/released";
/// Worlds are sets of names, for the host's bindings and for trials; nothing is matched against
/// them, and they grow with every new interface.
const NOT_FROZEN: &str = "worlds.wit";
const REMARKS: [&str; 2] = [
    "Released files of the contract (BLAKE3 of their lines without comments), and components that were built for them. They never change; a change is a new interface or a new version (README.md).",
    "`cargo xtask wit --freeze` adds new files, `cargo xtask wit --check` compares.",
];

/// Lists the files that are not listed yet.
pub(crate) fn freeze(wit: &Path) -> Result<()> {
    let mut listed = digests::read(&wit.join(LIST))?;
    let found = released(wit)?;
    let changed: Vec<String> = digests::differences(&listed, &found, "the folder")
        .into_iter()
        .filter(|difference| !difference.contains("is not listed"))
        .collect();
    refuse(&changed)?;
    for (name, digest) in found {
        if listed.insert(name.clone(), digest).is_none() {
            println!("frozen: {name}");
        }
    }
    digests::write(&wit.join(LIST), &REMARKS, &listed)
}

/// Compares the list with the files.
pub(crate) fn check(wit: &Path) -> Result<()> {
    refuse(&digests::differences(
        &digests::read(&wit.join(LIST))?,
        &released(wit)?,
        "the folder",
    ))
}

fn refuse(differences: &[String]) -> Result<()> {
    if !differences.is_empty() {
        bail!("wit/{LIST}: {}", differences.join("; "));
    }
    Ok(())
}

/// The `.wit` files in the folders of versions, as `0.1.0/types.wit`, and the components of these
/// versions.
fn released(wit: &Path) -> Result<Digests> {
    let mut found = Digests::new();
    for version in entries(wit)? {
        if !version.is_dir() {
            continue;
        }
        for file in entries(&version)? {
            let frozen = file.file_name().is_some_and(|name| name != NOT_FROZEN);
            if frozen && file.extension().is_some_and(|extension| extension == "wit") {
                let text = std::fs::read_to_string(&file)
                    .with_context(|| format!("cannot read {}", file.display()))?;
                let name = file.strip_prefix(wit)?.to_string_lossy().replace('\\', "/");
                found.insert(name, digests::digest(without_comments(&text).as_bytes()));
            }
        }
    }
    let components = wit.join("..").join(COMPONENTS);
    for version in components
        .is_dir()
        .then(|| entries(&components))
        .transpose()?
        .unwrap_or_default()
    {
        for file in entries(&version)? {
            let name = file
                .strip_prefix(&components)?
                .to_string_lossy()
                .replace('\\', "/");
            let bytes = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            found.insert(format!("{COMPONENTS}/{name}"), digests::digest(&bytes));
        }
    }
    Ok(found)
}

/// Types match by structure, so a comment may be corrected after a release.
fn without_comments(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let read = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    read.map(|entry| Ok(entry?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_files_are_as_they_were_released() {
        let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
        let listed = digests::read(&wit.join(LIST)).unwrap();
        let found = released(&wit).unwrap();
        for (file, digest) in listed {
            assert_eq!(
                found.get(&file),
                Some(&digest),
                "{file} was released and has changed; see wit/README.md for what may change and how"
            );
        }
    }

    #[test]
    fn a_frozen_file_cannot_change_and_a_new_one_can_join() {
        let folder = tempfile::tempdir().unwrap();
        let wit = &folder.path().join("wit");
        std::fs::create_dir(wit).unwrap();
        let write = |name: &str, text: &str| std::fs::write(wit.join(name), text).unwrap();
        std::fs::create_dir(wit.join("0.1.0")).unwrap();
        write("README.md", "not a release");
        write("0.1.0/types.wit", "one");
        assert!(
            check(wit)
                .unwrap_err()
                .to_string()
                .contains("0.1.0/types.wit is not listed")
        );
        freeze(wit).unwrap();
        check(wit).unwrap();

        write("0.1.0/log.wit", "two");
        assert!(check(wit).is_err());
        freeze(wit).unwrap();
        check(wit).unwrap();

        write("0.1.0/types.wit", "/// A comment.\n\n  one\n");
        check(wit).unwrap();

        write("0.1.0/types.wit", "changed");
        assert!(
            check(wit)
                .unwrap_err()
                .to_string()
                .contains("0.1.0/types.wit is listed as")
        );
        assert!(freeze(wit).is_err(), "freezing again does not launder a change");
        write("0.1.0/types.wit", "one");
        check(wit).unwrap();

        let component = folder.path().join(COMPONENTS).join("0.1.0/agent.wasm");
        std::fs::create_dir_all(component.parent().unwrap()).unwrap();
        std::fs::write(&component, "built").unwrap();
        freeze(wit).unwrap();
        std::fs::write(&component, "built again").unwrap();
        let rebuilt = check(wit).unwrap_err().to_string();
        assert!(
            rebuilt.contains("released/0.1.0/agent.wasm is listed as"),
            "{rebuilt}"
        );
        std::fs::write(&component, "built").unwrap();
        std::fs::remove_file(wit.join("0.1.0/types.wit")).unwrap();
        assert!(check(wit).unwrap_err().to_string().contains("has no such file"));
    }
}
