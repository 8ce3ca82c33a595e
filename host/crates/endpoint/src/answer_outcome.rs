//! Inputs and result of reading a response.

use veeksha_model::{Chunk, Nanos, Response};

use crate::failure::Failure;

/// One read of the socket: bytes that came out of it share its time and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadStamp {
    /// When what it brought had arrived (see [`veeksha_model::Chunk::at`]).
    pub at: Nanos,
    /// How much later the read returned, in nanoseconds; 0 where that is not known.
    pub lag: u32,
    /// Its number on the connection.
    pub read: u64,
}

/// How a body ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// As HTTP says it ends.
    Complete,
    /// Before that, with the reason.
    Broken(Failure),
}

/// What came of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerOutcome {
    /// Every event, in order.
    pub chunks: Vec<Chunk>,
    /// Bytes of text, visible or reasoning, that each *generated* chunk added to the answer, in their order. A piece of a tool call adds
    /// none.
    pub chunk_texts: Vec<u32>,
    /// Tokens that each *generated* chunk added, in their order, by the server's running counts (vLLM's
    /// `stream_options.continuous_usage_stats`). Empty unless every generated chunk came with a count.
    pub chunk_tokens: Vec<u32>,
    /// The answer, or why there is none.
    pub result: Result<Response, Failure>,
    /// When the last event was read or the failure was known; `None`: when the body ended.
    pub completed_at: Option<Nanos>,
}

/// Characters of an unreadable answer that are quoted.
pub(crate) const QUOTED_CHARS: usize = 200;
