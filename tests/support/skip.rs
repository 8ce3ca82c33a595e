//! Tests that need a tool that may be missing: a browser, Python packages, a model server.
//!
//! A skipped test passes, so it must be counted: each skip is a line of `target/tmp/skipped.txt`,
//! which `.ci/run` prints at its end. `VEEKSHA_REQUIRE` lists the tools that were installed for the
//! tests, separated by commas; a test that lacks one of those fails.

use std::io::Write;
use std::path::Path;

/// Records that the calling test was skipped because `tool` is missing.
///
/// # Panics
/// If `VEEKSHA_REQUIRE` names `tool`.
pub(crate) fn skip(tool: &str, reason: &str) {
    let test = std::thread::current().name().unwrap_or("?").to_owned();
    let required = std::env::var("VEEKSHA_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|name| name == tool),
        "{tool} is required here (VEEKSHA_REQUIRE): {reason}"
    );
    println!("skipped: {reason}");
    let list = Path::new(env!("CARGO_TARGET_TMPDIR")).join("skipped.txt");
    let written = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&list)
        .and_then(|mut file| writeln!(file, "{test}: {tool}: {reason}"));
    if let Err(error) = written {
        eprintln!("cannot append to {}: {error}", list.display());
    }
}
