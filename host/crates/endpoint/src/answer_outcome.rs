//! Inputs and result of reading a response.

use veeksha_model::{Chunk, Nanos, Response};

use crate::failure::Failure;

/// One read of the socket. All bytes of a read share its time and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadStamp {
    /// Arrival time of the read's bytes (see [`veeksha_model::Chunk::at`]).
    pub at: Nanos,
    /// Delay between arrival and the return of the read, in nanoseconds; 0 if unknown.
    pub lag: u32,
    /// Sequence number of the read on its connection.
    pub read: u64,
}

/// End of a response body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// The body is complete as defined by HTTP.
    Complete,
    /// The client wants no more of it: what was read is the result.
    Cancelled,
    /// The body ended early, for this reason.
    Broken(Failure),
}

impl From<Result<(), Failure>> for BodyEnd {
    fn from(end: Result<(), Failure>) -> Self {
        match end {
            Ok(()) => BodyEnd::Complete,
            Err(failure) => BodyEnd::Broken(failure),
        }
    }
}

/// Result of reading one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerOutcome {
    /// All events, in order.
    pub chunks: Vec<Chunk>,
    /// Bytes of text, visible or reasoning, that each *generated* chunk added to the answer, in
    /// order. 0 for a piece of a tool call.
    pub chunk_texts: Vec<u32>,
    /// Tokens that each *generated* chunk added, in order, from the server's running counts (vLLM's
    /// `stream_options.continuous_usage_stats`). Empty unless every generated chunk had a count.
    pub chunk_tokens: Vec<u32>,
    /// The id that the server gave the response, as far as its events contain one.
    pub response_id: Option<String>,
    /// The answer, or the reason why there is none.
    pub result: Result<Response, Failure>,
    /// Time at which the last event was read or the failure was detected; `None` if the end of the
    /// body completed the answer.
    pub completed_at: Option<Nanos>,
}

impl AnswerOutcome {
    /// Creates the result of an answer of which nothing was read.
    pub fn failed(failure: Failure) -> AnswerOutcome {
        AnswerOutcome {
            chunks: Vec::new(),
            chunk_texts: Vec::new(),
            chunk_tokens: Vec::new(),
            response_id: None,
            result: Err(failure),
            completed_at: None,
        }
    }
}

/// Maximum length, in characters, of a quote from an unreadable answer.
pub(crate) const QUOTED_CHARS: usize = 200;
