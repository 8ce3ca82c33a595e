//! Digests as OCI writes them.

use std::fmt;

/// A SHA-256 digest: `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobDigest(String);

impl BlobDigest {
    /// Returns the digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let hash = ring::digest::digest(&ring::digest::SHA256, bytes);
        BlobDigest(format!("sha256:{}", hex(hash.as_ref())))
    }

    /// Reads a digest; none if the text has another form.
    pub fn parse(text: &str) -> Option<Self> {
        veeksha_manifest::is_sha256(text).then(|| BlobDigest(text.to_owned()))
    }

    /// Returns the text: `sha256:…`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the 64 hexadecimal digits.
    pub fn hex(&self) -> &str {
        self.0.strip_prefix("sha256:").unwrap_or(&self.0)
    }
}

impl fmt::Display for BlobDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Returns bytes as lower case hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-4, example of the empty message.
    #[test]
    fn digest_of_nothing_is_that_of_the_standard() {
        let empty = BlobDigest::of(b"");
        assert_eq!(
            empty.as_str(),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(BlobDigest::parse(empty.as_str()), Some(empty));
        assert_eq!(BlobDigest::parse("sha256:ABC"), None);
    }
}
