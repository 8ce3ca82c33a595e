//! Files that the user granted to the plugin, by name. Only the host has any: in a native test they
//! panic.

pub use crate::bindings::capabilities::veeksha::plugin::blobs::Blob;
