//! The README of the contract states whether it is released.

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
