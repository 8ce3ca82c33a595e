//! A value that must never be printed.

use std::fmt;

/// An API key. It goes into the `Authorization` header and nowhere else: `Debug` and `Display` print `***`, and there is no
/// serialised form.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key.
    pub fn new(value: impl Into<String>) -> Self {
        Secret(value.into())
    }

    /// The key itself, for the header.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

/// The shortest secret, and the shortest beginning of one, that is looked for in texts: shorter ones would only garble them.
const MIN_REDACTED: usize = 6;

/// Replaces every occurrence of `secret` in a text that came from elsewhere: some servers repeat a refused key in full. The
/// text may have been cut, so a beginning of the secret at its very end is replaced, too.
pub(crate) fn redact(text: &str, secret: &str) -> String {
    if secret.len() < MIN_REDACTED {
        return text.to_owned();
    }
    let mut text = text.replace(secret, "***");
    let (body, cut) = text
        .strip_suffix('…')
        .map_or((text.as_str(), ""), |body| (body, "…"));
    let ends = secret
        .char_indices()
        .map(|(end, _)| end)
        .filter(|end| *end >= MIN_REDACTED);
    if let Some(kept) = ends.rev().find_map(|end| body.strip_suffix(&secret[..end])) {
        text = format!("{kept}***{cut}");
    }
    text
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Secret(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_way_of_printing_shows_the_key() {
        let secret = Secret::new("sk-very-secret");
        assert_eq!(
            format!("{secret} {secret:?} {:?}", Some(&secret)),
            "*** *** Some(***)"
        );
    }

    #[test]
    fn an_echoed_key_is_replaced_and_an_empty_one_changes_nothing() {
        assert_eq!(
            redact("bad key sk-123, really sk-123", "sk-123"),
            "bad key ***, really ***"
        );
        assert_eq!(redact("abc", ""), "abc");
        assert_eq!(redact("token 1 of 2", "1"), "token 1 of 2");
    }

    #[test]
    fn a_key_that_was_cut_off_is_replaced_too() {
        assert_eq!(redact("bad key sk-12345…", "sk-123456789"), "bad key ***…");
        assert_eq!(redact("bad key sk-12345", "sk-123456789"), "bad key ***");
        assert_eq!(redact("bad key sk-1…", "sk-123456789"), "bad key sk-1…");
        assert_eq!(redact("ends with schlüss", "schlüssel"), "ends with ***");
    }
}
