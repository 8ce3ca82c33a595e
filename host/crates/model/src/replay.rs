//! Data that a trace holds about a request: its answer, its arrival, its lengths, and the choice of
//! what is replayed.

use crate::content::{ReasoningContent, Segment};
use crate::ids::{Nanos, SessionId};
use crate::response::ToolCall;

/// The session of an earlier run whose decisions a session sends again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReplayedSession {
    /// Its id in that run.
    pub session: SessionId,
    /// The seed of that run.
    pub seed: u64,
}

/// The history that a request sends of its history parent's conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HistoryMode {
    /// The requests of that conversation, each with the model's real answer.
    #[default]
    Live,
    /// The requests of that conversation, each with its recorded answer (a request without one:
    /// with the real answer).
    Recorded,
    /// Nothing: the edge only orders the two requests.
    Fresh,
}

impl HistoryMode {
    /// Returns the lower-case name used in configuration and files.
    pub fn name(self) -> &'static str {
        match self {
            HistoryMode::Live => "live",
            HistoryMode::Recorded => "recorded",
            HistoryMode::Fresh => "fresh",
        }
    }
}

/// The recorded answer of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedAnswer {
    /// The text of the answer.
    pub content: Vec<Segment>,
    /// The function calls that were asked for.
    pub tool_calls: Vec<ToolCall>,
    /// The reasoning before it.
    pub reasoning: Option<ReasoningContent>,
}

/// Measurements of the recorded request. Informational, except `at`: traffic that replays arrivals
/// does not send the request earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Instant at which it was sent, relative to the earliest arrival of the trace.
    pub at: Option<Nanos>,
    /// Duration of the recorded request.
    pub latency: Option<Nanos>,
    /// Tokens of its whole prompt.
    pub prompt_tokens: Option<u32>,
    /// Tokens of its answer.
    pub output_tokens: Option<u32>,
}

/// The additional data of a request from a replayed trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// The history that it sends.
    pub history: HistoryMode,
    /// The recorded answer, for requests that continue it in [`HistoryMode::Recorded`].
    pub answer: Option<RecordedAnswer>,
    /// Measurements from the recording.
    pub recorded: Recorded,
}
