//! Writing to the terminal. A reader that has gone away (`| head`) ends the output, not the program.

use std::fmt;
use std::io::Write;

/// A line on standard output.
pub(crate) fn out(line: impl fmt::Display) {
    // The only thing that can go wrong is that nobody reads any more.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// A line on standard error.
pub(crate) fn err(line: impl fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// `1 request`, `2 requests`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    if count == 1 {
        format!("1 {thing}")
    } else {
        format!("{count} {thing}s")
    }
}
