//! Limits of a bundle that is read.

/// The sizes that a bundle may have. A bundle is not compressed, so that its declared sizes bound
/// the memory that reading it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleLimits {
    /// All layers together, in bytes.
    pub total: u64,
    /// One layer, in bytes.
    pub layer: u64,
    /// One JSON document, in bytes.
    pub document: u64,
    /// The number of layers.
    pub layers: usize,
    /// The number of signatures.
    pub signatures: usize,
    /// The number of entries of the tar.
    pub entries: usize,
}

impl Default for BundleLimits {
    fn default() -> Self {
        BundleLimits {
            total: 512 << 20,
            layer: 256 << 20,
            document: 4 << 20,
            layers: 64,
            signatures: 16,
            entries: 256,
        }
    }
}
