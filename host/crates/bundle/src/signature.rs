//! Signatures of a bundle.
//!
//! A signature is detached: a separate manifest whose subject is that of the bundle. Signatures by
//! a key have the form of cosign ("simple signing"): the signed text names the digest of the
//! bundle's manifest, and therefore everything that the manifest refers to. Bundles of sigstore are
//! carried as they are.

use serde::{Deserialize, Serialize};

use crate::digest::BlobDigest;
use crate::error::BundleError;
use crate::image::json;
use crate::keys::{SigningKey, TrustedKey};

const CLAIM: &str = "cosign container image signature";

/// A signature of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signature {
    /// By a key of ed25519.
    Key(KeySignature),
    /// A sigstore bundle (`*.sigstore.json`), as it was made.
    Sigstore(Vec<u8>),
}

/// A signature by a key: the signed text and the 64 bytes of the signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySignature {
    pub(crate) payload: Vec<u8>,
    pub(crate) signature: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Payload {
    critical: Critical,
    optional: Option<serde_json::Value>,
}

#[derive(Serialize, Deserialize)]
struct Critical {
    identity: Identity,
    image: SignedImage,
    #[serde(rename = "type")]
    claim: String,
}

#[derive(Serialize, Deserialize)]
struct Identity {
    #[serde(rename = "docker-reference")]
    reference: String,
}

#[derive(Serialize, Deserialize)]
struct SignedImage {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

impl KeySignature {
    /// Signs a digest. `reference` is the name in a registry; it may be empty and is not checked.
    ///
    /// # Errors
    /// None that depends on the arguments.
    pub fn new(digest: &BlobDigest, reference: &str, key: &SigningKey) -> Result<Self, BundleError> {
        let payload = json(&Payload {
            critical: Critical {
                identity: Identity {
                    reference: reference.to_owned(),
                },
                image: SignedImage {
                    digest: digest.to_string(),
                },
                claim: CLAIM.to_owned(),
            },
            optional: None,
        })?;
        let signature = key.sign(&payload);
        Ok(KeySignature { payload, signature })
    }

    /// Returns the key that signed this digest; none if none of the keys did.
    pub fn signer<'k>(&self, digest: &BlobDigest, keys: &'k [TrustedKey]) -> Option<&'k TrustedKey> {
        let payload: Payload = serde_json::from_slice(&self.payload).ok()?;
        if payload.critical.claim != CLAIM || payload.critical.image.digest != digest.as_str() {
            return None;
        }
        keys.iter()
            .find(|trusted| trusted.key.verifies(&self.payload, &self.signature))
    }
}
