//! What goes into the engine and what comes out.

use veeksha_model::Nanos;

/// A request for the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineRequest {
    /// The caller's name for it.
    pub id: u64,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Chained hashes of the prompt's full blocks (see [`crate::text`]); fewer than there are mean less to share, never an error.
    pub blocks: Vec<u64>,
    /// Most tokens to generate; without it the context is the limit.
    pub max_tokens: Option<u32>,
    /// Generate as many tokens as the limit allows (`ignore_eos`), instead of ending at a drawn length.
    pub exact: bool,
}

/// Why generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FinishReason {
    /// The drawn length was reached.
    Stop,
    /// The limit was reached.
    Length,
}

impl FinishReason {
    /// The word of the OpenAI API.
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
    /// The connection is closed; terminal. Without a [`EngineEvent::Started`] before it, it is closed without any answer.
    DropConnection,
    /// An error takes the place of the rest; terminal.
    MidStreamError,
    /// The answer ends without a finish reason; terminal.
    Truncate,
    /// No token comes before `until`; then the answer goes on.
    Stall {
        /// When the sequence may decode again.
        until: Nanos,
    },
}

/// Something that happened to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineEvent {
    /// It was not taken; terminal.
    Rejected {
        /// The request.
        id: u64,
        /// The HTTP status that fits.
        status: u16,
        /// One line that says why.
        message: String,
    },
    /// It was admitted to the batch, for the first time.
    Started {
        /// The request.
        id: u64,
        /// The beginning of the step.
        at: Nanos,
        /// Tokens of the prompt that were found in the prefix cache.
        cached_tokens: u32,
    },
    /// A token came out.
    Token {
        /// The request.
        id: u64,
        /// The end of the step.
        at: Nanos,
        /// 0 for the first token.
        index: u32,
    },
    /// It ended well; terminal. Comes at the time of the last token.
    Finished {
        /// The request.
        id: u64,
        /// The end of the step.
        at: Nanos,
        /// Why.
        reason: FinishReason,
        /// Tokens of the prompt.
        prompt_tokens: u32,
        /// Those of them that were found in the prefix cache at the first admission.
        cached_tokens: u32,
        /// Tokens generated.
        completion_tokens: u32,
    },
    /// Something broke; terminal, except for [`Fault::Stall`].
    Fault {
        /// The request.
        id: u64,
        /// When the token would have come in whose place it happens.
        at: Nanos,
        /// What.
        fault: Fault,
    },
}

impl EngineEvent {
    /// The request that it is about.
    pub fn id(&self) -> u64 {
        match self {
            EngineEvent::Rejected { id, .. }
            | EngineEvent::Started { id, .. }
            | EngineEvent::Token { id, .. }
            | EngineEvent::Finished { id, .. }
            | EngineEvent::Fault { id, .. } => *id,
        }
    }

    /// Whether nothing more will come for this request.
    pub fn is_terminal(&self) -> bool {
        match self {
            EngineEvent::Rejected { .. } | EngineEvent::Finished { .. } => true,
            EngineEvent::Fault { fault, .. } => !matches!(fault, Fault::Stall { .. }),
            EngineEvent::Started { .. } | EngineEvent::Token { .. } => false,
        }
    }
}

/// Levels (`running`, `waiting`, `kv_used_tokens`) at one moment, and counters since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Sequences in the batch.
    pub running: u64,
    /// Requests that wait for admission, those of a slow start included.
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
    /// Requests that were not taken.
    pub rejected_total: u64,
    /// Requests that ended with [`FinishReason::Stop`].
    pub finished_stop_total: u64,
    /// Requests that ended with [`FinishReason::Length`].
    pub finished_length_total: u64,
    /// Requests that ended with a fault.
    pub faulted_total: u64,
    /// Requests withdrawn before their end.
    pub cancelled_total: u64,
    /// Times that a sequence lost its memory and had to be computed again.
    pub preemptions_total: u64,
    /// Prompt tokens of admitted requests.
    pub prompt_tokens_total: u64,
    /// Tokens that came out.
    pub generation_tokens_total: u64,
    /// Steps.
    pub steps_total: u64,
}
