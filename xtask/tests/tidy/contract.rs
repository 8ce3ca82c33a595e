//! A released file of the contract never changes.

use std::path::Path;

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
