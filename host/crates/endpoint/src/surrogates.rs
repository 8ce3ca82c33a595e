//! Lone surrogates in JSON escapes.
//!
//! A server that serializes half of an emoji with Python's `json.dumps` writes `"\ud83d"`. Python
//! and JavaScript accept this; `serde_json` refuses it, because a Rust string cannot hold it.

use std::borrow::Cow;

/// Returns `json` with each lone surrogate escape replaced by `\ufffd`, the replacement character.
pub(crate) fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    // Nearly all events are without such an escape and pay for one search only.
    let has_escape = |prefix: &[u8]| memchr::memmem::find(json.as_bytes(), prefix).is_some();
    if !has_escape(b"\\ud") && !has_escape(b"\\uD") {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = match code_unit(escape) {
            Some(0xD800..=0xDBFF) if is_low_surrogate(escape.get(6..)) => 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str("\\ufffd");
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            Some(_) => 6,
            // An escape of two characters, of which the second may take several bytes in invalid
            // JSON.
            None => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (escape, behind) = escape.split_at(length);
        out.push_str(escape);
        rest = behind;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns the code unit of the escape `\uXXXX` at the start of `text`.
fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

fn is_low_surrogate(text: Option<&str>) -> bool {
    matches!(text.and_then(code_unit), Some(0xDC00..=0xDFFF))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn replaces_only_lone_surrogates() {
        for (json, expected) in [
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""a\uDE00b""#, r#""a\ufffdb""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ud83d\ud83d\ude00\ude00""#, r#""\ufffd\ud83d\ude00\ufffd""#),
            (r#""\ud83d\u0041""#, r#""\ufffd\u0041""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#""\u00e9\n\"\ud83dx""#, r#""\u00e9\n\"\ufffdx""#),
            (r#""\ud83""#, r#""\ud83""#),
        ] {
            assert_eq!(replace_lone_surrogates(json), expected, "{json}");
        }
    }

    proptest! {
        /// Text with any escapes becomes valid JSON, and text that was valid before is unchanged.
        #[test]
        fn result_is_json(pieces in prop::collection::vec(
            prop::sample::select(vec!["\\ud83d", "\\uDE00", "\\\\", "\\\"", "\\n", "x", "ä", "\\u0041"]), 0..12,
        )) {
            let json = format!("\"{}\"", pieces.concat());
            let repaired = replace_lone_surrogates(&json);
            let text = serde_json::from_str::<String>(&repaired);
            prop_assert!(text.is_ok(), "{json} {repaired}");
            if let Ok(before) = serde_json::from_str::<String>(&json) {
                prop_assert_eq!(before, text.unwrap_or_default());
            }
        }

        #[test]
        fn survives_arbitrary_input(json in "(\\\\|u|d|8|ä|x|\"){0,30}") {
            let _ = replace_lone_surrogates(&json);
        }
    }
}
