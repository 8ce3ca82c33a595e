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

/// Replaces every occurrence of `secret` in a text that came from elsewhere: some servers repeat a refused key in full.
pub(crate) fn redact(text: &str, secret: &str) -> String {
    if secret.is_empty() {
        text.to_owned()
    } else {
        text.replace(secret, "***")
    }
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
            redact("bad key sk-1, really sk-1", "sk-1"),
            "bad key ***, really ***"
        );
        assert_eq!(redact("abc", ""), "abc");
    }
}
