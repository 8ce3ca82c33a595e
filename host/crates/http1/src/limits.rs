//! Limits on the parts of an answer that have to be held or counted.

/// Limits on the size of an answer. Anything beyond them is rejected with an error that names the
/// limit.
///
/// They bound the memory of a [`crate::Decoder`]: it holds at most an unfinished head, or
/// unfinished trailers, and nothing of a body. A body has no limit here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecoderLimits {
    /// Bytes of one head: empty lines before it, status line, header fields and the empty line that
    /// ends it. At most 4 GiB; larger values are reduced to that.
    pub head_bytes: usize,
    /// Header fields in one head, and lines in the trailers of one answer.
    pub headers: usize,
    /// Bytes of the line before a chunk: its size, its extensions and the line end.
    pub chunk_line_bytes: usize,
    /// Bytes of the trailers of one answer, with their line ends.
    pub trailer_bytes: usize,
}

impl Default for DecoderLimits {
    fn default() -> Self {
        Self {
            head_bytes: 64 * 1024,
            headers: 128,
            chunk_line_bytes: 4 * 1024,
            trailer_bytes: 16 * 1024,
        }
    }
}
