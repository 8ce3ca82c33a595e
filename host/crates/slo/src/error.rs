//! Parse errors with their place.

use std::ops::Range;

/// A text that is not valid in the language.
///
/// Its `Display` is the column and the problem on one line, followed by the text with the place
/// marked:
///
/// ```text
/// column 11: expected a comparison (<, <=, >, >=) after `p99(ttfc)`, found `is`
///   p99(ttfc) is 500ms
///             ^^
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {problem}\n{}", marked(text, *column, *width))]
pub struct ParseError {
    /// The text.
    pub text: String,
    /// Start of the problem in characters, from 1; one past the last character if something is
    /// missing at the end.
    pub column: usize,
    /// Length in characters; at least 1.
    pub width: usize,
    /// The problem and the expected token, on one line, in lower case.
    pub problem: String,
}

/// Characters shown on each side of the place in a long text.
const CONTEXT_CHARS: usize = 48;

impl ParseError {
    /// Creates an error for the bytes `place` of `text`.
    pub fn new(text: &str, place: Range<usize>, problem: impl Into<String>) -> ParseError {
        let before = text.char_indices().take_while(|(at, _)| *at < place.start);
        let within = text.char_indices().filter(|(at, _)| place.contains(at)).count();
        ParseError {
            column: before.count() + 1,
            width: within.max(1),
            problem: problem.into(),
            text: text.to_owned(),
        }
    }
}

/// Returns the text around the place, and a line with carets below it.
fn marked(text: &str, column: usize, width: usize) -> String {
    let at = column - 1;
    let from = at.saturating_sub(CONTEXT_CHARS);
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: Vec<char> = text
        .chars()
        .skip(from)
        .take(at - from + CONTEXT_CHARS)
        .map(visible)
        .collect();
    let cut = text.chars().nth(from + shown.len()).is_some();
    while !cut && shown.last() == Some(&' ') && shown.len() > at - from {
        shown.pop();
    }
    let left = if from > 0 { "…" } else { "" };
    let right = if cut { "…" } else { "" };
    let line: String = shown.iter().collect();
    let indent = " ".repeat(at - from + left.chars().count());
    let room = (shown.len().saturating_sub(at - from)).max(1);
    let carets = "^".repeat(width.clamp(1, room));
    format!("  {left}{line}{right}\n  {indent}{carets}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_the_place_in_characters_not_bytes() {
        let error = ParseError::new("µ≤x y", 5..6, "no");
        assert_eq!(error.to_string(), "column 3: no\n  µ≤x y\n    ^");
        let at_the_end = ParseError::new("ab", 2..2, "no");
        assert_eq!(at_the_end.to_string(), "column 3: no\n  ab\n    ^");
    }

    #[test]
    fn truncates_long_text_around_the_place() {
        let text = "x".repeat(1000);
        let shown = ParseError::new(&text, 500..700, "no").to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1], format!("  …{}…", "x".repeat(96)));
        assert_eq!(lines[2], format!("{}{}", " ".repeat(51), "^".repeat(48)));
    }

    #[test]
    fn line_breaks_do_not_break_the_mark() {
        let shown = ParseError::new("a\n\tb", 3..4, "no").to_string();
        assert_eq!(shown, "column 4: no\n  a  b\n     ^");
    }
}
