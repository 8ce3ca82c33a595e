//! Names and texts from elsewhere (folders, plugins, servers, files) on their way to a terminal or
//! a log: without what would steer it.

/// Replacement for a removed character.
const TAKEN_OUT: char = '\u{fffd}';

/// Returns true if a character affects the terminal or the surrounding text instead of being
/// visible: control characters (including ESC and C1), line and paragraph separators, and
/// characters that change the writing direction (Unicode's `Bidi_Control`, annex 9), which could
/// display text in another order.
pub fn alters_display(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{2028}' | '\u{2029}' | '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Replaces every control character, including line breaks, so that the text stays within its line.
/// The number of characters does not change.
pub fn printable(text: &str) -> String {
    text.replace(alters_display, TAKEN_OUT.encode_utf8(&mut [0; 4]))
}

/// A text of several lines: as [`printable`], but its line breaks and tabs stay.
pub fn printable_lines(text: &str) -> String {
    let taken_out = |character: char| alters_display(character) && !matches!(character, '\n' | '\t');
    text.replace(taken_out, TAKEN_OUT.encode_utf8(&mut [0; 4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_removes_control_characters() {
        let hostile = "a\u{1b}[2J\u{9b}1m\r\n::error::b\u{202e}c\u{2066}d\u{2028}e\u{7f}\tf";
        assert_eq!(
            printable(hostile),
            "a\u{fffd}[2J\u{fffd}1m\u{fffd}\u{fffd}::error::b\u{fffd}c\u{fffd}d\u{fffd}e\u{fffd}\u{fffd}f"
        );
        assert_eq!(
            printable_lines(hostile),
            "a\u{fffd}[2J\u{fffd}1m\u{fffd}\n::error::b\u{fffd}c\u{fffd}d\u{fffd}e\u{fffd}\tf"
        );
    }

    /// Letters of every script, joiners of emoji and of Indic scripts, and right-to-left letters
    /// themselves are only seen.
    #[test]
    fn printable_keeps_visible_characters() {
        for seen in ["größe µs … →", "模型", "مرحبا", "שלום", "क्‍ष", "👩‍🚀"]
        {
            assert_eq!(printable(seen), seen);
        }
    }
}
