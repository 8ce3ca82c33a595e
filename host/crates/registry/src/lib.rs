//! Bundles in registries of the OCI distribution specification: push, pull, authentication.
//!
//! [`pull()`] reads a manifest, checks everything that it declares, and only then the parts, each
//! at most as long as declared. [`push()`] uploads what the repository does not have. Signatures
//! are referrers of the bundle; where a registry has no list of referrers, the tag that the
//! specification defines replaces it.
//!
//! The client is written here: `oci-client` would add 63 crates to the program, and neither limits
//! the size of what it reads nor lists referrers of older registries.
#![forbid(unsafe_code)]

mod auth;
mod connection;
mod credentials;
mod error;
mod transfer;

pub use error::RegistryError;
pub use transfer::{TransferOptions, pull, push};
