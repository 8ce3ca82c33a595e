//! Responses: the answer, its chunks, or the failure.

use crate::ids::{Nanos, RequestId};

/// A function call that the model asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// The server's id of the call.
    pub id: String,
    /// The function's name.
    pub name: String,
    /// Arguments as JSON text, exactly as the server sent them.
    pub arguments: String,
}

/// Token counts that the server reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt, as the server counted them (chat template included).
    pub prompt: u32,
    /// Tokens generated.
    pub completion: u32,
    /// Prompt tokens that were served from the prefix cache.
    pub cached: Option<u32>,
    /// Generated tokens that were reasoning.
    pub reasoning: Option<u32>,
}

/// Log-probabilities of consecutive tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenProbabilities {
    /// The natural logarithm of each token's probability; finite.
    pub logarithms: Vec<f64>,
    /// True for each token that was the most probable one; empty if the server sent no
    /// alternatives.
    pub greedy: Vec<bool>,
}

/// All values are finite.
impl Eq for TokenProbabilities {}

/// The log-probabilities that a server returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogProbabilities {
    /// Of the prompt's tokens from the second on, if they were asked for.
    pub prompt: TokenProbabilities,
    /// Of the answer's tokens.
    pub answer: TokenProbabilities,
}

/// A complete answer, or the part of one that its workload cancelled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The visible text.
    pub text: String,
    /// The reasoning text, where the server sends it apart.
    pub reasoning: String,
    /// The server's proof that the reasoning is its own, if it sent one.
    pub reasoning_signature: Option<String>,
    /// The tool calls asked for.
    pub tool_calls: Vec<ToolCall>,
    /// Finish reason as reported by the server (`stop`, `length`, `tool_calls`, ...).
    pub finish_reason: String,
    /// Token counts, if the server gave them.
    pub usage: Option<Usage>,
    /// Log-probabilities of its tokens, if they were asked for. Boxed, because most answers have
    /// none.
    pub log_probabilities: Option<Box<LogProbabilities>>,
    /// Output tokens: from `usage`, else counted by the host's tokenizer.
    pub output_tokens: u32,
    /// True if the workload cancelled the request: the part that had arrived by then, which is
    /// empty if the request was never sent.
    pub cancelled: bool,
}

/// The content of one event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChunkKind {
    /// The role, or an empty delta: nothing was generated.
    Role,
    /// Reasoning text.
    Reasoning,
    /// Visible text.
    Content,
    /// A part of a tool call.
    Tool,
    /// A finish reason without text, or a whole response that was not streamed.
    Finish,
    /// Token counts.
    Usage,
    /// The end marker `[DONE]`.
    Done,
    /// A comment (keep-alive).
    Comment,
}

impl ChunkKind {
    /// Every kind.
    pub const ALL: [ChunkKind; 8] = [
        ChunkKind::Role,
        ChunkKind::Reasoning,
        ChunkKind::Content,
        ChunkKind::Tool,
        ChunkKind::Finish,
        ChunkKind::Usage,
        ChunkKind::Done,
        ChunkKind::Comment,
    ];

    /// Returns true if the event carried generated output.
    pub fn is_generated(self) -> bool {
        matches!(self, ChunkKind::Reasoning | ChunkKind::Content | ChunkKind::Tool)
    }

    /// Returns the lower-case name used in files.
    pub fn name(self) -> &'static str {
        match self {
            ChunkKind::Role => "role",
            ChunkKind::Reasoning => "reasoning",
            ChunkKind::Content => "content",
            ChunkKind::Tool => "tool",
            ChunkKind::Finish => "finish",
            ChunkKind::Usage => "usage",
            ChunkKind::Done => "done",
            ChunkKind::Comment => "comment",
        }
    }
}

/// The source of an answer's arrival times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StampSource {
    /// The time of the read in this process: what arrived while the process was busy is late by as
    /// much.
    #[default]
    Read,
    /// The kernel's receive time of the last segment that was read: it does not depend on when this
    /// process gets to run. If several segments were waiting, only the last one's time is known.
    Kernel,
}

impl StampSource {
    /// Returns the lower-case name used in files.
    pub fn name(self) -> &'static str {
        match self {
            StampSource::Read => "read",
            StampSource::Kernel => "kernel",
        }
    }
}

/// One event of a stream, with the time at which it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Arrival time: when the kernel received the segment that completed the event, or, if that is
    /// unknown, when the read returned ([`StampSource`]).
    pub at: Nanos,
    /// Delay between `at` and the return of the read, in nanoseconds (at most 4.29 s); 0 if `at` is
    /// the time of the read.
    pub lag: u32,
    /// Bytes of the event's data.
    pub bytes: u32,
    /// The content of the event.
    pub kind: ChunkKind,
    /// True if an earlier event came out of the same read; its arrival is then known only to the
    /// precision of that read.
    pub merged: bool,
}

/// The rule by which an answer's body is split into events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events: an event is the data of one.
    #[default]
    EventStream,
    /// One event on each line that is not empty.
    Lines,
    /// The whole body is one event.
    Whole,
}

/// One part of an answer's event, independent of the server's API; codec plugins return these. An
/// event may have several parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerPart {
    /// Nothing was generated: the role, an empty delta, an opening frame.
    Role,
    /// Reasoning text.
    Reasoning(String),
    /// Visible text.
    Content(String),
    /// A piece of a tool call.
    Tool {
        /// Index of the tool call in the answer, from 0.
        index: u32,
        /// The call's id, in the piece that carries it; else empty.
        id: String,
        /// The function's name, in the piece that carries it; else empty.
        name: String,
        /// The next piece of the arguments' JSON text.
        arguments: String,
    },
    /// Generation ended, with the server's finish reason.
    Finish(String),
    /// Token counts; the last ones count.
    Usage(Usage),
    /// The next piece of the server's proof that the reasoning is its own.
    Signature(String),
    /// Log-probabilities of the next tokens of the answer.
    LogProbabilities(TokenProbabilities),
    /// The id that the server gave the answer; the first one counts.
    ResponseId(String),
    /// The end marker: what follows does not count.
    Done,
    /// A keep-alive.
    Comment,
    /// The request failed.
    Error {
        /// The server's message.
        message: String,
        /// The server's error code, if it is a number.
        code: Option<u16>,
    },
}

/// The class of a request's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// The name did not resolve, or the connection was refused, reset or timed out before anything
    /// was sent.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// The request's total deadline passed.
    Timeout,
    /// The server answered with a status other than 2xx.
    Status,
    /// The answer did not follow the API: not HTTP, not JSON, not an event stream.
    Protocol,
    /// An `error` event inside a stream that had begun with 200.
    InStream,
    /// The stream ended without a finish reason.
    Truncated,
    /// The request was withdrawn while in flight (Ctrl-C, end of the grace period).
    Cancelled,
    /// The plugin that reads the answers failed on this one.
    Codec,
}

impl ErrorClass {
    /// Returns the snake-case name used in files.
    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::Connect => "connect",
            ErrorClass::Tls => "tls",
            ErrorClass::Timeout => "timeout",
            ErrorClass::Status => "status",
            ErrorClass::Protocol => "protocol",
            ErrorClass::InStream => "in_stream",
            ErrorClass::Truncated => "truncated",
            ErrorClass::Cancelled => "cancelled",
            ErrorClass::Codec => "codec",
        }
    }
}

/// The failure of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureReason {
    /// The request's id.
    pub request: RequestId,
    /// Class of the failure.
    pub class: ErrorClass,
    /// The HTTP status, or the code of an in-stream error.
    pub status: Option<u16>,
    /// The time after which the server asked for another attempt (`retry-after`), if it did.
    pub retry_after: Option<Nanos>,
    /// One readable line; the server's message if there was one (cut to 500 characters).
    pub message: String,
    /// Instant of the failure.
    pub at: Nanos,
}
