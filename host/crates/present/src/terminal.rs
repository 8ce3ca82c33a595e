//! Output on the terminal.
//!
//! If the reader closes the pipe (`| head`), the output ends, but the program continues. Any other
//! write error is reported once, by [`output_error`], when the command ends.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use veeksha_model::printable_lines;

/// First error of standard output; nothing is written after it.
static ENDED: OnceLock<io::Error> = OnceLock::new();

/// Prints a line on standard output.
pub fn out(line: impl fmt::Display) {
    if ENDED.get().is_none() {
        written(writeln!(io::stdout().lock(), "{line}"));
    }
}

/// Records the result of a write to standard output that was made elsewhere.
pub fn written(result: io::Result<()>) {
    if let Err(error) = result {
        // Later errors only repeat the first.
        let _ = ENDED.set(error);
    }
}

/// Returns the first error of standard output, unless its reader closed the pipe.
pub fn output_error() -> Option<&'static io::Error> {
    ENDED.get().filter(|error| error.kind() != ErrorKind::BrokenPipe)
}

/// Prints a line on standard error. Control characters are removed, because the line may repeat
/// names and texts from files.
pub fn err(line: impl fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{}", printable_lines(&line.to_string()));
}

/// Prints a note on standard error, each text only once, because the runs of a sweep share most of
/// their notes.
pub fn note(note: &str) {
    static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let is_new = PRINTED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(note.to_owned());
    if is_new {
        err(format!("note: {note}"));
    }
}
