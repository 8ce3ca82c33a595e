//! Failure of one request, before it is associated with the request and a time.

use veeksha_model::ErrorClass;

/// Maximum length of a message, in characters.
const MAX_MESSAGE_CHARS: usize = 500;

/// A request's failure. The class determines how it is counted; the message is human-readable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The stage at which the request failed.
    pub class: ErrorClass,
    /// The HTTP status, or the code of an error inside a stream.
    pub status: Option<u16>,
    /// One line; the server's message if there is one.
    pub message: String,
}

impl Failure {
    /// Creates a failure without a status.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Failure {
            class,
            status: None,
            message: message.into(),
        }
    }

    /// Creates a failure with the status or code that the server sent.
    pub fn with_status(class: ErrorClass, status: Option<u16>, message: impl Into<String>) -> Self {
        Failure {
            class,
            status,
            message: message.into(),
        }
    }
}

/// Converts a server's message to one line of at most 500 characters: control characters and line
/// ends become spaces.
pub fn one_line(text: &str) -> String {
    shorten(text, MAX_MESSAGE_CHARS)
}

/// Converts like [`one_line`], with a maximum of `limit` characters.
pub fn shorten(text: &str, limit: usize) -> String {
    let mut line = String::new();
    for (count, word) in text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|w| !w.is_empty())
        .enumerate()
    {
        if count > 0 {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > limit * 4 {
            break;
        }
    }
    match line.char_indices().nth(limit) {
        Some((end, _)) => {
            line.truncate(end);
            line.push('…');
            line
        }
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_of_limited_length() {
        assert_eq!(one_line("  a\n\tb\r\n\u{7}c "), "a b c");
        assert_eq!(shorten("äöüß", 3), "äöü…");
        assert_eq!(shorten("äöü", 3), "äöü");
        assert_eq!(one_line(&"x".repeat(100_000)).chars().count(), 501);
    }
}
