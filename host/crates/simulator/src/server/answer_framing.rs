//! The framing of an answer's body.

/// The framing of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerFraming {
    /// By the length in the head.
    Length,
    /// In chunks.
    Chunked(ChunkStyle),
    /// By closing the connection.
    Close,
}

/// The form of the chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkStyle {
    Plain,
    UpperCase,
    Extensions,
    Trailers,
}
