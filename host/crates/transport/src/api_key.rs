//! A value that must never be printed.

use std::fmt;

/// An API key. It is only used in the `Authorization` header: `Debug` and `Display` print `***`,
/// and there is no serialised form.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Wraps a key.
    pub fn new(value: impl Into<String>) -> Self {
        ApiKey(value.into())
    }

    /// Returns the key itself, for the header.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

/// Minimum length of a secret, and of a cut prefix of one, that is redacted in texts. Shorter
/// matches would only garble the text.
const MIN_REDACTED: usize = 6;

/// Replaces every occurrence of `secret` in an external text: some servers repeat a rejected key in
/// full, or in a redirect address, in any encoding that [`spelled`] recognises. Excerpts in the
/// text may have been cut, so a prefix of the secret is also replaced at the end of the text, or
/// before an ellipsis or a closing backquote.
pub(crate) fn redact(text: &str, secret: &str) -> String {
    if secret.len() < MIN_REDACTED {
        return text.to_owned();
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        rest = match after_secret(rest, secret) {
            Some(after) => {
                kept.push_str("***");
                after
            }
            None => {
                kept.push(first);
                &rest[first.len_utf8()..]
            }
        };
    }
    kept
}

/// Returns the text after the secret at the beginning of `text`, or after its prefix where the text
/// was cut within the secret.
fn after_secret<'a>(text: &'a str, secret: &str) -> Option<&'a str> {
    let mut rest = text;
    for (known, wanted) in secret.char_indices() {
        match spelled(rest, wanted) {
            Some(after) => rest = after,
            // The length is compared first: a search for the cut at every character would take
            // quadratic time.
            None if known < MIN_REDACTED => return None,
            None => return after_cut(rest),
        }
    }
    Some(rest)
}

/// Returns the text after a cut: its end, an ellipsis or a closing backquote, possibly after the
/// start of an escape. Returns `None` if the text continues otherwise.
fn after_cut(rest: &str) -> Option<&str> {
    let (escape, after) = rest.split_at(rest.find(['…', '`']).unwrap_or(rest.len()));
    let is_partial = escape.is_empty()
        || escape.starts_with('%') && escape.len() < 3
        || escape.starts_with('\\') && escape.len() < 6;
    is_partial.then_some(after)
}

/// Returns the text after a character at the beginning of `text`: literal, percent-encoded (`%2F`),
/// or escaped as in JSON (`\/`, `\u002f`).
fn spelled(text: &str, wanted: char) -> Option<&str> {
    text.strip_prefix(wanted)
        .or_else(|| text.strip_prefix('\\')?.strip_prefix(wanted))
        .or_else(|| percent_encoded(text, wanted))
        .or_else(|| {
            let (digits, rest) = text.strip_prefix("\\u")?.split_at_checked(4)?;
            (u32::from_str_radix(digits, 16).ok()? == u32::from(wanted)).then_some(rest)
        })
}

fn percent_encoded(text: &str, wanted: char) -> Option<&str> {
    let mut bytes = [0; 4];
    let mut bytes = wanted.encode_utf8(&mut bytes).bytes();
    bytes.try_fold(text, |rest, byte| {
        let (digits, rest) = rest.strip_prefix('%')?.split_at_checked(2)?;
        (u8::from_str_radix(digits, 16).ok()? == byte).then_some(rest)
    })
}

impl From<String> for ApiKey {
    fn from(value: String) -> Self {
        ApiKey(value)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_way_of_printing_shows_the_key() {
        let secret = ApiKey::new("sk-very-secret");
        assert_eq!(
            format!("{secret} {secret:?} {:?}", Some(&secret)),
            "*** *** Some(***)"
        );
    }

    #[test]
    fn redacts_echoed_key_and_ignores_empty_key() {
        assert_eq!(
            redact("bad key sk-123, really sk-123", "sk-123"),
            "bad key ***, really ***"
        );
        assert_eq!(redact("abc", ""), "abc");
        assert_eq!(redact("token 1 of 2", "1"), "token 1 of 2");
    }

    #[test]
    fn redacts_key_in_every_encoding() {
        for written in [
            "sk/a+b\"ü",
            "sk%2Fa%2Bb%22%C3%BC",
            "sk%2fa+b%22ü",
            r#"sk\/a+b\"ü"#,
            r"sk\u002fa\u002Bb\u0022\u00fc",
            "%73%6b/a+b\"ü",
        ] {
            let text = format!("see /login?key={written}&x=%2F and %");
            assert_eq!(
                redact(&text, "sk/a+b\"ü"),
                "see /login?key=***&x=%2F and %",
                "{written}"
            );
        }
        for cut in ["sk%2Fa%2Bb", "sk%2Fa%2Bb%2", r"sk\/a+b\", r"sk\/a+b\u00"] {
            assert_eq!(redact(&format!("see {cut}…"), "sk/a+b\"ü"), "see ***…", "{cut}");
        }
    }

    #[test]
    fn redacts_truncated_key() {
        assert_eq!(redact("bad key sk-12345…", "sk-123456789"), "bad key ***…");
        assert_eq!(redact("bad key sk-12345", "sk-123456789"), "bad key ***");
        assert_eq!(redact("bad key sk-1…", "sk-123456789"), "bad key sk-1…");
        assert_eq!(redact("ends with schlüss", "schlüssel"), "ends with ***");
    }

    /// An excerpt of an HTTP error is in the middle of its message.
    #[test]
    fn beginning_of_a_key_in_a_cut_excerpt_is_replaced() {
        let secret = "sk-123456789";
        for (text, expected) in [
            ("got `key sk-12345…` there", "got `key ***…` there"),
            ("got `key sk-12345` there", "got `key ***` there"),
            ("got `key sk-12345…`, `sk-1234567…`", "got `key ***…`, `***…`"),
            ("got `sk-12345x…` there", "got `sk-12345x…` there"),
            ("got `sk-1…` there", "got `sk-1…` there"),
        ] {
            assert_eq!(redact(text, secret), expected);
        }
    }
}
