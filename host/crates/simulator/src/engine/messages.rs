//! Input and output of the engine.

use veeksha_model::Nanos;

/// A request for the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineRequest {
    /// The caller's id.
    pub id: u64,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Chained hashes of the prompt's full blocks (see [`crate::text`]); missing ones reduce
    /// sharing, but are not an error.
    pub blocks: Vec<u64>,
    /// Maximum number of tokens to generate; `None` for the context limit.
    pub max_tokens: Option<u32>,
    /// Generate as many tokens as the limit allows (`ignore_eos`), instead of a drawn length.
    pub exact: bool,
}

/// The reason why generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FinishReason {
    /// The drawn length was reached.
    Stop,
    /// The limit was reached.
    Length,
}

impl FinishReason {
    /// Returns the name in the OpenAI API.
    pub fn name(self) -> &'static str {
        match self {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
        }
    }
}

/// A fault inside an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The connection is closed; terminal. Without a preceding [`EngineEvent::Started`], it is
    /// closed without any answer.
    DropConnection,
    /// An error replaces the rest; terminal.
    MidStreamError,
    /// The answer ends without a finish reason; terminal.
    Truncate,
    /// No token is generated before `until`; then the answer continues.
    Stall {
        /// The time at which the sequence continues decoding.
        until: Nanos,
    },
}

/// An event of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineEvent {
    /// The request was rejected; terminal.
    Rejected {
        /// The request.
        id: u64,
        /// The HTTP status for the rejection.
        status: u16,
        /// The reason, on one line.
        message: String,
    },
    /// The request was admitted to the batch for the first time.
    Started {
        /// The request.
        id: u64,
        /// The beginning of the step.
        at: Nanos,
        /// Prompt tokens found in the prefix cache.
        cached_tokens: u32,
    },
    /// A token was generated.
    Token {
        /// The request.
        id: u64,
        /// The end of the step.
        at: Nanos,
        /// Zero-based index of the token.
        index: u32,
    },
    /// The request finished regularly; terminal. Has the time of the last token.
    Finished {
        /// The request.
        id: u64,
        /// The end of the step.
        at: Nanos,
        /// The finish reason.
        reason: FinishReason,
        /// Tokens of the prompt.
        prompt_tokens: u32,
        /// Prompt tokens found in the prefix cache at the first admission.
        cached_tokens: u32,
        /// Tokens generated.
        completion_tokens: u32,
    },
    /// A fault occurred; terminal, except for [`Fault::Stall`].
    Fault {
        /// The request.
        id: u64,
        /// The due time of the token that the fault replaces.
        at: Nanos,
        /// The fault.
        fault: Fault,
    },
}

impl EngineEvent {
    /// Returns the event's request.
    pub fn id(&self) -> u64 {
        match self {
            EngineEvent::Rejected { id, .. }
            | EngineEvent::Started { id, .. }
            | EngineEvent::Token { id, .. }
            | EngineEvent::Finished { id, .. }
            | EngineEvent::Fault { id, .. } => *id,
        }
    }

    /// Returns true if it is the last event of its request.
    pub fn is_terminal(&self) -> bool {
        match self {
            EngineEvent::Rejected { .. } | EngineEvent::Finished { .. } => true,
            EngineEvent::Fault { fault, .. } => !matches!(fault, Fault::Stall { .. }),
            EngineEvent::Started { .. } | EngineEvent::Token { .. } => false,
        }
    }
}

/// Current levels (`running`, `waiting`, `kv_used_tokens`), and counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Sequences in the batch.
    pub running: u64,
    /// Requests that wait for admission, including those of a slow start.
    pub waiting: u64,
    /// Tokens of the KV blocks that running sequences hold; a shared block counts once.
    pub kv_used_tokens: u64,
    /// Tokens that the KV memory holds.
    pub kv_capacity_tokens: u64,
    /// Prompt tokens found in the prefix cache at first admissions.
    pub prefix_hits_tokens: u64,
    /// Prompt tokens looked up there.
    pub prefix_queries_tokens: u64,
    /// Requests submitted.
    pub requests_total: u64,
    /// Requests that were rejected.
    pub rejected_total: u64,
    /// Requests that ended with [`FinishReason::Stop`].
    pub finished_stop_total: u64,
    /// Requests that ended with [`FinishReason::Length`].
    pub finished_length_total: u64,
    /// Requests that ended with a fault.
    pub faulted_total: u64,
    /// Requests cancelled before their end.
    pub cancelled_total: u64,
    /// Number of times that a sequence lost its memory and had to be recomputed.
    pub preemptions_total: u64,
    /// Prompt tokens of admitted requests.
    pub prompt_tokens_total: u64,
    /// Generated tokens.
    pub generation_tokens_total: u64,
    /// Steps.
    pub steps_total: u64,
}
