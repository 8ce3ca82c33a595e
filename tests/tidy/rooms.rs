//! A file is one idea: small, and it says at its top which.

use std::path::{Path, PathBuf};

/// Lines of code before the tests begin. Past this a file is split, or its second idea moves out.
const LONGEST: usize = 600;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, found);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

fn all() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for folder in ["host", "sdk", "plugins", "xtask"] {
        sources(&root.join(folder), &mut found);
    }
    assert!(found.len() > 60, "the sources are where this test looks for them");
    found
}

#[test]
fn every_file_says_what_it_is() {
    for path in all() {
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        assert!(
            text.starts_with("//!"),
            "{} does not begin with `//!`",
            path.display()
        );
    }
}

#[test]
fn no_file_is_too_long() {
    for path in all()
        .into_iter()
        .filter(|path| path.components().all(|part| part.as_os_str() != "tests"))
    {
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        let code = text
            .lines()
            .take_while(|line| !line.starts_with("#[cfg(test)]"))
            .count();
        assert!(code <= LONGEST, "{} has {code} lines", path.display());
    }
}
