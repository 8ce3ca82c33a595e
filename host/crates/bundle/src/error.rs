//! Reasons to refuse a bundle.

/// A bundle that cannot be read. The message states the problem and, where one exists, the fix;
/// callers put the file or reference in front.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The source cannot be read.
    #[error("cannot read it: {0}")]
    Io(#[from] std::io::Error),
    /// The file is compressed.
    #[error(
        "it is compressed with {format}: decompress it first; a bundle is a plain tar, so that its size is known before it is read"
    )]
    Compressed {
        /// The format of the compression.
        format: &'static str,
    },
    /// The file is not a tar.
    #[error("it is not a tar file")]
    NotATar,
    /// The file ends early.
    #[error("it is cut short: {0}")]
    Truncated(&'static str),
    /// The file continues after its end.
    #[error("it has data after the end of the tar")]
    TrailingData,
    /// A header of the tar has a wrong checksum or a field of another form.
    #[error("entry {entry} of the tar is damaged: {reason}")]
    DamagedEntry {
        /// The number of the entry, from 1.
        entry: usize,
        /// The field and its problem.
        reason: &'static str,
    },
    /// A link, device or other entry that is not a file.
    #[error("`{name}` is {kind}: a bundle has only regular files")]
    NotAFile {
        /// The name in the tar.
        name: String,
        /// The kind of the entry.
        kind: &'static str,
    },
    /// A name that leads out of the folder.
    #[error("the name `{name}` leads out of the bundle")]
    PathTraversal {
        /// The name in the tar, or the title of a layer.
        name: String,
    },
    /// A file that an image layout does not have.
    #[error(
        "`{name}` is not part of an OCI image layout: expected `oci-layout`, `index.json` and `blobs/sha256/DIGEST`"
    )]
    UnexpectedEntry {
        /// The name in the tar.
        name: String,
    },
    /// Two entries have the same name.
    #[error("`{name}` occurs twice")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A part is larger than allowed.
    #[error("{part} has {size} bytes, at most {limit} are allowed")]
    TooLarge {
        /// The part.
        part: String,
        /// Its declared size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// There are more parts than allowed.
    #[error("it has more than {limit} {parts}")]
    TooMany {
        /// The parts, in plural.
        parts: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A part that must exist does not.
    #[error("{0} is missing")]
    Missing(String),
    /// A blob is not referenced.
    #[error("the blob {digest} belongs to nothing in the bundle")]
    Unreferenced {
        /// The digest of the blob.
        digest: String,
    },
    /// Content that does not have its digest.
    #[error("{part} was changed: its digest is {found}, expected {expected}")]
    WrongDigest {
        /// The part.
        part: String,
        /// The digest of the content.
        found: String,
        /// The digest that refers to it.
        expected: String,
    },
    /// Content that does not have its size.
    #[error("{part} has {found} bytes, expected {expected}")]
    WrongSize {
        /// The part.
        part: String,
        /// The size of the content.
        found: u64,
        /// The size that refers to it.
        expected: u64,
    },
    /// A document of the layout that cannot be used.
    #[error("{part} cannot be used: {reason}")]
    BadDocument {
        /// The document.
        part: String,
        /// The problem.
        reason: String,
    },
    /// A media type that a bundle does not have.
    #[error("{part} has the media type `{found}`: expected {expected}")]
    MediaType {
        /// The part.
        part: String,
        /// The media type.
        found: String,
        /// The media types that are allowed.
        expected: String,
    },
    /// The component is not WebAssembly or is damaged.
    #[error("the component cannot be read: {0}")]
    BadComponent(String),
    /// A key that cannot be read.
    #[error("not an ed25519 key: {0}")]
    BadKey(&'static str),
}
