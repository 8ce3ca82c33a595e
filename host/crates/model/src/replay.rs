//! What a trace says of a request: the answer it had, when it was sent, how long it was; and what of it is sent again.

use crate::{Nanos, Segment, ToolCall};

/// What a request sends of the conversation that its history parent belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HistoryMode {
    /// The requests of that conversation, each with the model's real answer.
    #[default]
    Live,
    /// The requests of that conversation, each with its recorded answer (a request without one: with the real answer).
    Recorded,
    /// Nothing: the edge only orders the two requests.
    Fresh,
}

impl HistoryMode {
    /// The lower-case name, as it stands in configuration and files.
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
pub struct Answer {
    /// What was said.
    pub content: Vec<Segment>,
    /// The function calls that were asked for.
    pub tool_calls: Vec<ToolCall>,
}

/// What happened to a request when it was recorded. Evidence only, but for `at`: traffic that replays arrivals sends the
/// request no earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// When it was sent, relative to the earliest arrival of the trace.
    pub at: Option<Nanos>,
    /// How long its answer took.
    pub latency: Option<Nanos>,
    /// Tokens of its whole prompt.
    pub prompt_tokens: Option<u32>,
    /// Tokens of its answer.
    pub output_tokens: Option<u32>,
}

/// What a request of a replayed trace has beside what every request has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// What it sends of its conversation.
    pub history: HistoryMode,
    /// Its recorded answer, for requests that continue it in [`HistoryMode::Recorded`].
    pub answer: Option<Answer>,
    /// What happened to it then.
    pub recorded: Recorded,
}
