//! A file has one subject: it is short, and its first line names the subject.

use std::path::Path;

use xtask::tidy::{self, Kind, Sources};

/// Lines of code before the tests begin. A longer file is split by subject.
const LONGEST: usize = 600;

/// Folders whose files have this form.
const FOLDERS: [&str; 4] = ["host/", "sdk/", "plugins/", "xtask/"];

fn sources() -> Sources {
    tidy::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).expect("readable sources")
}

#[test]
fn every_file_begins_with_its_subject() {
    for file in sources().files() {
        if file.kind == Kind::Rust && FOLDERS.iter().any(|folder| file.path.starts_with(folder)) {
            assert!(
                file.text.starts_with("//!"),
                "{} does not begin with `//!`",
                file.path
            );
        }
    }
}

#[test]
fn no_file_is_too_long() {
    for file in sources().files() {
        let is_code = file.kind == Kind::Rust && !file.path.contains("/tests/");
        if is_code && FOLDERS.iter().any(|folder| file.path.starts_with(folder)) {
            let lines = file.text.lines();
            let code = lines.take_while(|line| !line.starts_with("#[cfg(test)]")).count();
            assert!(code <= LONGEST, "{} has {code} lines", file.path);
        }
    }
}
