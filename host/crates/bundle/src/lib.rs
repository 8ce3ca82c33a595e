//! Bundles of plugins: a component with its manifest, scenarios, documentation and debug
//! information, as an OCI image layout in one tar. Pure over bytes: nothing here opens a file or a
//! connection.
//!
//! [`pack()`] makes a bundle whose bytes depend on its content alone. [`Bundle::read_tar`] reads
//! one and refuses whatever is damaged, incomplete, too large, changed, or not part of a bundle.
//! [`SigningKey`] and [`TrustedKey`] sign bundles and check their signatures.
//!
//! The format is that of OCI artifacts for WebAssembly, so that registries store it and `wkg`,
//! `oras` and Spin fetch the component.
#![forbid(unsafe_code)]

mod archive;
mod bundle;
mod describe;
mod digest;
mod error;
mod image;
mod keys;
mod limits;
mod pack;
mod signature;
mod signature_artifact;
mod tar;

pub use bundle::{Bundle, BundleLayer, check_manifest, plugin_manifest};
pub use describe::describe;
pub use digest::BlobDigest;
pub use error::BundleError;
pub use image::{BlobDescriptor, ImageIndex, ImageManifest, LayerKind, MANIFEST_TYPE};
pub use keys::{PublicKey, SigningKey, TrustedKey, trusted_keys};
pub use limits::BundleLimits;
pub use pack::{BundleFile, pack, tag};
pub use signature::{KeySignature, Signature};
pub use signature_artifact::{KEY_ARTIFACT, SIGSTORE_ARTIFACT, SignatureArtifact, is_signature};
