//! Truncation of external text to a bounded length.

/// Returns at most `limit` characters of `text`; an ellipsis marks the cut.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// Cuts like [`cut`], on one line: each run of white space becomes a space.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    // Reads only the part that can remain, so that the cost does not depend on the length of the
    // text.
    let head: String = text.chars().take(limit.saturating_mul(2)).collect();
    let shorter = head.len() < text.len();
    let joined = head.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = cut(&joined, limit);
    if shorter && !line.ends_with('…') {
        format!("{line}…")
    } else {
        line
    }
}

/// Formats a count with thousands separators: `1,000,000`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_between_characters() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöü", 2), "äö…");
        assert_eq!(one_line(" a\n\tb  c ", 10), "a b c");
        assert_eq!(one_line("abcdefgh", 3), "abc…");
    }

    #[test]
    fn groups_thousands() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
