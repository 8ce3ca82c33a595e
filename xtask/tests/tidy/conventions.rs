//! The conventions of `STYLE.md` that `cargo xtask tidy` reports.

use std::path::Path;

use xtask::tidy::{self, Kind};

#[test]
fn reads_every_language_of_the_repository() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let sources = tidy::read(&root).expect("readable sources");
    for (kind, least) in [
        (Kind::Rust, 800),
        (Kind::Markdown, 20),
        (Kind::Wit, 10),
        (Kind::Lua, 15),
        (Kind::Other, 30),
    ] {
        let count = sources.files().iter().filter(|file| file.kind == kind).count();
        assert!(
            count >= least,
            "{kind:?}: {count} files, expected at least {least}"
        );
    }
}

#[test]
fn nothing_violates_a_convention() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let sources = tidy::read(&root).expect("readable sources");
    let found = tidy::check_all(&sources).expect("the exceptions");
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_exception_is_needed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let sources = tidy::read(&root).expect("readable sources");
    let stale = tidy::stale_exceptions(&sources).expect("the exceptions");
    assert!(stale.is_empty(), "no violation matches {stale:#?}");
}
