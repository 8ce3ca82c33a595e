//! Writing to the terminal. A reader that has gone away (`| head`) ends the output, not the program; an output that cannot be written for
//! another reason is told once, when the command is over.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use veeksha_model::printable_lines;

use crate::failure::Failure;

/// Why nothing more is written to standard output.
static ENDED: OnceLock<io::Error> = OnceLock::new();

/// A line on standard output.
pub(crate) fn out(line: impl fmt::Display) {
    if ENDED.get().is_none() {
        written(writeln!(io::stdout().lock(), "{line}"));
    }
}

/// Takes note of what became of something that was written to standard output.
pub(crate) fn written(result: io::Result<()>) {
    if let Err(error) = result {
        // The first reason stands for all.
        let _ = ENDED.set(error);
    }
}

/// What could not be written to standard output, if anybody waited for it.
///
/// # Errors
/// The first reason.
pub(crate) fn all_is_out() -> Result<(), Failure> {
    match ENDED.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::internal(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// A line on standard error. It may repeat names and texts from files: what would steer the terminal is taken out.
pub(crate) fn err(line: impl fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{}", printable_lines(&line.to_string()));
}

/// A note on standard error, once: what is to be known of one run of a sweep is often to be known of all.
pub(crate) fn note(note: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let is_new = SAID
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(note.to_owned());
    if is_new {
        err(format!("note: {note}"));
    }
}

/// `1 request`, `2 requests`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    if count == 1 {
        format!("1 {thing}")
    } else {
        format!("{count} {thing}s")
    }
}
