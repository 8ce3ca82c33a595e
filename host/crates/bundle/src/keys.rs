//! Keys of ed25519, as PEM.
//!
//! A private key is PKCS #8, a public key is `SubjectPublicKeyInfo`, both as RFC 8410 defines them,
//! so that `openssl` and `cosign` read them.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use crate::digest::BlobDigest;
use crate::error::BundleError;

/// The DER of a private key up to its 32 bytes.
const PRIVATE_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// The DER of a public key up to its 32 bytes.
const PUBLIC_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];
const PRIVATE_LABEL: &str = "PRIVATE KEY";
const PUBLIC_LABEL: &str = "PUBLIC KEY";

/// A private key.
pub struct SigningKey {
    seed: [u8; 32],
    pair: Ed25519KeyPair,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("SigningKey").field(&self.public()).finish()
    }
}

impl SigningKey {
    /// Makes a key from the system's random numbers.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn generate() -> Result<Self, BundleError> {
        let mut seed = [0; 32];
        let filled = SystemRandom::new().fill(&mut seed);
        filled.map_err(|_| BundleError::BadKey("the system has no random numbers"))?;
        Self::from_seed(seed)
    }

    /// Makes the key of 32 bytes.
    ///
    /// # Errors
    /// If the bytes are not a key.
    pub fn from_seed(seed: [u8; 32]) -> Result<Self, BundleError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed);
        let pair = pair.map_err(|_| BundleError::BadKey("the private key is not valid"))?;
        Ok(SigningKey { seed, pair })
    }

    /// Reads a key.
    ///
    /// # Errors
    /// If the text is not one private key of ed25519 without a password.
    pub fn from_pem(text: &str) -> Result<Self, BundleError> {
        if text.contains("ENCRYPTED") {
            return Err(BundleError::BadKey(
                "the private key has a password: write it without one, `openssl pkey -in KEY -out PLAIN`",
            ));
        }
        let blocks = pem_blocks(text, PRIVATE_LABEL)?;
        let [(_, der)] = blocks.as_slice() else {
            return Err(BundleError::BadKey("expected one block `BEGIN PRIVATE KEY`"));
        };
        let seed = der
            .strip_prefix(&PRIVATE_PREFIX)
            .and_then(|seed| seed.try_into().ok());
        let seed = seed.ok_or(BundleError::BadKey("the private key is of another kind"))?;
        Self::from_seed(seed)
    }

    /// Returns the text that [`SigningKey::from_pem`] reads.
    pub fn to_pem(&self) -> String {
        pem(PRIVATE_LABEL, &[&PRIVATE_PREFIX[..], &self.seed].concat())
    }

    /// Returns the public key.
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.pair.public_key().as_ref());
        PublicKey(bytes)
    }

    /// Signs a message.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }
}

/// A public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Returns true if the key made the signature of the message.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0)
            .verify(message, signature)
            .is_ok()
    }

    /// Returns the text of the key.
    pub fn to_pem(&self) -> String {
        pem(PUBLIC_LABEL, &self.der())
    }

    /// Returns the identity of the key: `ed25519:` and the first 16 digits of the digest of its
    /// DER.
    pub fn id(&self) -> String {
        let digest = BlobDigest::of(&self.der());
        format!("ed25519:{}", &digest.hex()[..16])
    }

    fn der(&self) -> Vec<u8> {
        [&PUBLIC_PREFIX[..], &self.0].concat()
    }
}

/// A public key whose signatures are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedKey {
    /// The name: the comment (`# …`) before the key, else its identity.
    pub name: String,
    /// The key.
    pub key: PublicKey,
}

/// Reads the public keys of a text, each with the comment before it as its name.
///
/// # Errors
/// If the text has no key, or one of another kind.
pub fn trusted_keys(text: &str) -> Result<Vec<TrustedKey>, BundleError> {
    let blocks = pem_blocks(text, PUBLIC_LABEL)?;
    if blocks.is_empty() {
        return Err(BundleError::BadKey("expected a block `BEGIN PUBLIC KEY`"));
    }
    let key = |(name, der): (String, Vec<u8>)| {
        let bytes = der
            .strip_prefix(&PUBLIC_PREFIX)
            .and_then(|bytes| bytes.try_into().ok());
        let key = PublicKey(bytes.ok_or(BundleError::BadKey("the public key is of another kind"))?);
        let name = if name.is_empty() { key.id() } else { name };
        Ok(TrustedKey { name, key })
    };
    blocks.into_iter().map(key).collect()
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

/// Returns the contents of the blocks of a label, each with the last comment before it.
fn pem_blocks(text: &str, label: &str) -> Result<Vec<(String, Vec<u8>)>, BundleError> {
    let (begin, end) = (
        format!("-----BEGIN {label}-----"),
        format!("-----END {label}-----"),
    );
    let mut blocks = Vec::new();
    let mut name = String::new();
    let mut body: Option<String> = None;
    for line in text.lines().map(str::trim) {
        if line == begin {
            body = Some(String::new());
        } else if line == end {
            let body = body
                .take()
                .ok_or(BundleError::BadKey("a block has no beginning"))?;
            let der = STANDARD.decode(body);
            let der = der.map_err(|_| BundleError::BadKey("the block is not base64"))?;
            blocks.push((std::mem::take(&mut name), der));
        } else if let Some(body) = &mut body {
            body.push_str(line);
        } else if let Some(comment) = line.strip_prefix('#') {
            comment.trim().clone_into(&mut name);
        }
    }
    if body.is_some() {
        return Err(BundleError::BadKey("a block has no end"));
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example keys of RFC 8410, sections 10.1 and 10.3.
    const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
        -----END PRIVATE KEY-----\n";
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n\
        -----END PUBLIC KEY-----\n";

    #[test]
    fn the_example_keys_of_the_standard_belong_together() {
        let private = SigningKey::from_pem(PRIVATE).unwrap();
        let public = trusted_keys(PUBLIC).unwrap()[0].key;
        assert_eq!(private.public(), public);
        assert_eq!(private.to_pem(), PRIVATE);
        assert_eq!(public.to_pem(), PUBLIC);
    }

    /// RFC 8032, section 7.1, test 2.
    #[test]
    fn signs_like_the_standard() {
        let hex = |text: &str| -> Vec<u8> {
            let digit = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
            (0..text.len()).step_by(2).map(digit).collect()
        };
        let seed = hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
        let key = SigningKey::from_seed(seed.try_into().unwrap()).unwrap();
        let signature = hex(
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        );
        assert_eq!(key.sign(&[0x72]), signature);
        assert!(key.public().verifies(&[0x72], &signature));
        assert!(!key.public().verifies(&[0x73], &signature));
    }

    #[test]
    fn several_keys_have_the_names_of_their_comments() {
        let other = SigningKey::generate().unwrap().public();
        let text = format!("# a file\n# alice\n{PUBLIC}\n{}", other.to_pem());
        let keys = trusted_keys(&text).unwrap();
        assert_eq!(keys[0].name, "alice");
        assert_eq!(keys[1].name, other.id());
        assert_ne!(keys[0].key, keys[1].key);
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, reason) in [
            ("", "expected a block"),
            (PRIVATE, "expected a block"),
            ("-----BEGIN PUBLIC KEY-----\nMCo", "has no end"),
            (
                "-----BEGIN PUBLIC KEY-----\n*\n-----END PUBLIC KEY-----",
                "not base64",
            ),
            (
                "-----BEGIN PUBLIC KEY-----\nMCow\n-----END PUBLIC KEY-----",
                "another kind",
            ),
        ] {
            let message = trusted_keys(text).unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
        }
        for (text, reason) in [
            (PUBLIC, "expected one block"),
            ("-----BEGIN ENCRYPTED PRIVATE KEY-----", "password"),
        ] {
            let message = SigningKey::from_pem(text).unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
        }
    }
}
