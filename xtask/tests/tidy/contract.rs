//! A released file of the contract never changes, and its README states whether it is released.

use std::path::Path;

/// The README of the contract states that it may change exactly until a release freezes it.
#[test]
fn readme_states_whether_the_contract_is_released() {
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
    let read = |file: &str| std::fs::read_to_string(wit.join(file)).expect(file);
    let readme = read("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let is_frozen = read("frozen.txt")
        .lines()
        .any(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let says_unreleased = readme.contains("Version 0.2.0 is not released yet and may change.");
    assert_eq!(
        says_unreleased, !is_frozen,
        "wit/README.md and wit/frozen.txt disagree about the release of version 0.2.0"
    );
}

#[test]
fn frozen_files_are_as_they_were_released() {
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
    let frozen = std::fs::read_to_string(wit.join("frozen.txt")).expect("wit/frozen.txt");
    let lines: Vec<&str> = frozen
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .collect();
    for line in lines {
        let (digest, file) = line.split_once("  ").expect("`<digest>  <file>`");
        let bytes = std::fs::read(wit.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(
            blake3::hash(&bytes).to_hex().as_str(),
            digest,
            "{file} was released and has changed; see wit/README.md for what may change and how"
        );
    }
}
