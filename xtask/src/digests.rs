//! Lists of files with their BLAKE3 digests: `<hex>  <name>` per line, as `b3sum` writes them; `#`
//! begins a remark.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Digests (hex) by name.
pub(crate) type Digests = BTreeMap<String, String>;

/// The digest of some bytes, in hex.
pub(crate) fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Reads a list; a missing file is an empty list.
pub(crate) fn read(path: &Path) -> Result<Digests> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Digests::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let mut digests = Digests::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((digest, name)) = line.split_once("  ") else {
            bail!("{}:{number}: expected `<digest>  <name>`", path.display());
        };
        if digests.insert(name.to_owned(), digest.to_owned()).is_some() {
            bail!("{}:{number}: {name} is listed twice", path.display());
        }
    }
    Ok(digests)
}

/// Writes a list with remarks at its head.
pub(crate) fn write(path: &Path, remarks: &[&str], digests: &Digests) -> Result<()> {
    let mut text = String::new();
    for remark in remarks {
        writeln!(text, "# {remark}")?;
    }
    for (name, digest) in digests {
        writeln!(text, "{digest}  {name}")?;
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the differences between a list and the found files, one sentence each; `there` describes
/// the found files.
pub(crate) fn differences(listed: &Digests, found: &Digests, there: &str) -> Vec<String> {
    let mut differences = Vec::new();
    for (name, digest) in listed {
        match found.get(name) {
            None => differences.push(format!("{name} is listed, but {there} has no such file")),
            Some(other) if other != digest => {
                differences.push(format!(
                    "{name} is listed as {}, but {there} has {}",
                    short(digest),
                    short(other)
                ));
            }
            Some(_) => {}
        }
    }
    let unlisted = found.keys().filter(|name| !listed.contains_key(*name));
    differences.extend(unlisted.map(|name| format!("{name} is not listed, but {there} has it")));
    differences
}

fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(&str, &str)]) -> Digests {
        entries
            .iter()
            .map(|(name, digest)| ((*name).into(), (*digest).into()))
            .collect()
    }

    #[test]
    fn a_list_comes_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("digests.txt");
        assert_eq!(read(&path).unwrap(), Digests::new());
        let digests = list(&[("b.wasm", "22"), ("a.wasm", "11")]);
        write(&path, &["a remark"], &digests).unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "# a remark\n11  a.wasm\n22  b.wasm\n"
        );
        assert_eq!(read(&path).unwrap(), digests);
        std::fs::write(&path, "11 a.wasm\n").unwrap();
        assert!(
            read(&path)
                .unwrap_err()
                .to_string()
                .ends_with("digests.txt:1: expected `<digest>  <name>`")
        );
        std::fs::write(&path, "11  a\n22  a\n").unwrap();
        assert!(
            read(&path)
                .unwrap_err()
                .to_string()
                .ends_with("digests.txt:2: a is listed twice")
        );
    }

    #[test]
    fn every_difference_is_named() {
        let listed = list(&[("changed", "1"), ("gone", "2"), ("same", "3")]);
        let found = list(&[("changed", "9"), ("new", "4"), ("same", "3")]);
        assert_eq!(
            differences(&listed, &found, "the folder"),
            [
                "changed is listed as 1, but the folder has 9",
                "gone is listed, but the folder has no such file",
                "new is not listed, but the folder has it",
            ]
        );
        assert!(differences(&listed, &listed, "the folder").is_empty());
    }

    /// The test vector of BLAKE3's authors for no input.
    #[test]
    fn a_digest_is_blake3() {
        assert_eq!(
            digest(b""),
            "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
        );
    }
}
