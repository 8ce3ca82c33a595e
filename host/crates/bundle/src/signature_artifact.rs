//! Manifests of signatures: referrers of a bundle's manifest, in a layout and in a registry.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::bundle::{Bundle, check_size, media_type};
use crate::digest::BlobDigest;
use crate::error::BundleError;
use crate::image::{BlobDescriptor, ImageManifest, MANIFEST_TYPE, json};
use crate::keys::TrustedKey;
use crate::limits::BundleLimits;
use crate::signature::{KeySignature, Signature};

/// The type of a manifest with signatures by keys.
pub const KEY_ARTIFACT: &str = "application/vnd.dev.cosign.artifact.sig.v1+json";
/// The type of a manifest with a sigstore bundle.
pub const SIGSTORE_ARTIFACT: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const PAYLOAD_TYPE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
const SIGNATURE_KEY: &str = "dev.cosignproject.cosign/signature";

impl Bundle {
    /// Returns the first of the keys that signed this bundle.
    pub fn signer<'k>(&self, keys: &'k [TrustedKey]) -> Option<&'k TrustedKey> {
        self.signatures().iter().find_map(|signature| match signature {
            Signature::Key(signature) => signature.signer(self.digest(), keys),
            Signature::Sigstore(_) => None,
        })
    }
}

/// Signatures as a manifest with its blobs: a referrer of the bundle's manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureArtifact {
    /// The bytes of the manifest.
    pub manifest: Vec<u8>,
    /// The configuration and the layers.
    pub blobs: Vec<Vec<u8>>,
}

/// Returns true for the type of a manifest with signatures.
pub fn is_signature(artifact_type: Option<&str>) -> bool {
    artifact_type.is_some_and(|found| [KEY_ARTIFACT, SIGSTORE_ARTIFACT].contains(&found))
}

impl SignatureArtifact {
    /// Returns the manifests of a bundle's signatures: one with all signatures by keys, which
    /// cosign expects together, and one for each sigstore bundle.
    ///
    /// # Errors
    /// None that depends on the bundle.
    pub fn all(bundle: &Bundle) -> Result<Vec<Self>, BundleError> {
        let mut layers = Vec::new();
        let mut artifacts = Vec::new();
        for signature in bundle.signatures() {
            match signature {
                Signature::Key(signature) => {
                    let mut layer = BlobDescriptor::of(PAYLOAD_TYPE, &signature.payload);
                    let encoded = STANDARD.encode(&signature.signature);
                    layer.annotations.insert(SIGNATURE_KEY.to_owned(), encoded);
                    layers.push((layer, signature.payload.clone()));
                }
                Signature::Sigstore(content) => {
                    let layer = BlobDescriptor::of(SIGSTORE_ARTIFACT, content);
                    let layers = vec![(layer, content.clone())];
                    artifacts.push(Self::new(bundle, SIGSTORE_ARTIFACT, layers)?);
                }
            }
        }
        if !layers.is_empty() {
            artifacts.insert(0, Self::new(bundle, KEY_ARTIFACT, layers)?);
        }
        Ok(artifacts)
    }

    fn new(
        bundle: &Bundle,
        artifact_type: &str,
        layers: Vec<(BlobDescriptor, Vec<u8>)>,
    ) -> Result<Self, BundleError> {
        let config = b"{}".to_vec();
        let (layers, contents): (Vec<BlobDescriptor>, Vec<Vec<u8>>) = layers.into_iter().unzip();
        let manifest = json(&ImageManifest {
            schema_version: 2,
            media_type: Some(MANIFEST_TYPE.to_owned()),
            artifact_type: Some(artifact_type.to_owned()),
            config: BlobDescriptor::of(EMPTY_TYPE, &config),
            layers,
            subject: Some(bundle.descriptor()),
            annotations: BTreeMap::new(),
        })?;
        let mut blobs = vec![config];
        blobs.extend(contents);
        Ok(SignatureArtifact { manifest, blobs })
    }

    /// Returns the descriptor of the manifest.
    pub fn descriptor(&self) -> BlobDescriptor {
        let mut descriptor = BlobDescriptor::of(MANIFEST_TYPE, &self.manifest);
        let image = serde_json::from_slice::<ImageManifest>(&self.manifest).ok();
        descriptor.artifact_type = image.and_then(|image| image.artifact_type);
        descriptor
    }

    /// Adds the signatures to the bundle that they are about.
    ///
    /// # Errors
    /// If they are about another bundle, a blob was changed, or a media type is unknown.
    pub fn add_to(&self, bundle: &mut Bundle, limits: &BundleLimits) -> Result<(), BundleError> {
        let bad = |reason: String| BundleError::BadDocument {
            part: "a signature".to_owned(),
            reason,
        };
        check_size("a signature", self.manifest.len() as u64, limits.document)?;
        let image: ImageManifest =
            serde_json::from_slice(&self.manifest).map_err(|error| bad(error.to_string()))?;
        let subject = image.subject.as_ref().map(|subject| subject.digest.as_str());
        if subject != Some(bundle.digest().as_str()) {
            return Err(bad("it belongs to another bundle".to_owned()));
        }
        for layer in &image.layers {
            let blob = self
                .blobs
                .iter()
                .find(|blob| BlobDigest::of(blob).as_str() == layer.digest);
            let blob = blob.ok_or_else(|| BundleError::Missing("a part of a signature".to_owned()))?;
            check_size("a signature", blob.len() as u64, limits.document)?;
            let signature = match layer.media_type.as_str() {
                PAYLOAD_TYPE => {
                    let encoded = layer.annotations.get(SIGNATURE_KEY);
                    let signature = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
                    Signature::Key(KeySignature {
                        payload: blob.clone(),
                        signature: signature.ok_or_else(|| bad("it is not base64".to_owned()))?,
                    })
                }
                SIGSTORE_ARTIFACT => Signature::Sigstore(blob.clone()),
                other => {
                    let expected = format!("{PAYLOAD_TYPE} or {SIGSTORE_ARTIFACT}");
                    return Err(media_type("a signature".to_owned(), other, &expected));
                }
            };
            if bundle.signatures().len() >= limits.signatures {
                return Err(BundleError::TooMany {
                    parts: "signatures",
                    limit: limits.signatures,
                });
            }
            bundle.add_signature(signature);
        }
        Ok(())
    }
}
