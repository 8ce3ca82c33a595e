//! Writing to the terminal. A reader that has gone away (`| head`) ends the output, not the program.

use std::fmt;
use std::io::Write;

/// A line on standard output.
pub(crate) fn out(line: impl fmt::Display) {
    // The only thing that can go wrong is that nobody reads any more.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// A line on standard error. It may repeat names and texts from files: what would steer the terminal is taken out.
pub(crate) fn err(line: impl fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{}", harmless(&line.to_string()));
}

fn harmless(text: &str) -> String {
    let steers = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
    text.replace(steers, "\u{fffd}")
}

/// `1 request`, `2 requests`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    if count == 1 {
        format!("1 {thing}")
    } else {
        format!("{count} {thing}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(harmless("a\u{1b}[2Jb\nc\td"), "a\u{fffd}[2Jb\nc\td");
    }
}
