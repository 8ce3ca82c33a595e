//! What came back: the answer, its chunks, or the reason why there is none.

use crate::{Nanos, RequestId};

/// A function call that the model asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// The server's id of the call.
    pub id: String,
    /// The function's name.
    pub name: String,
    /// Its arguments: JSON text, as the server sent it.
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

/// A complete answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The visible text.
    pub text: String,
    /// The reasoning text, where the server sends it apart.
    pub reasoning: String,
    /// The tool calls asked for.
    pub tool_calls: Vec<ToolCall>,
    /// Why generation ended, in the server's own word (`stop`, `length`, `tool_calls`, ...).
    pub finish_reason: String,
    /// Token counts, if the server gave them.
    pub usage: Option<Usage>,
    /// Output tokens: from `usage`, else counted by the host's tokenizer.
    pub output_tokens: u32,
}

/// What an event of a stream carried.
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
    /// A finish reason without text.
    Finish,
    /// Token counts.
    Usage,
    /// The end marker `[DONE]`.
    Done,
    /// A comment (keep-alive).
    Comment,
}

impl ChunkKind {
    /// Whether the event carried something that the model generated.
    pub fn is_generated(self) -> bool {
        matches!(self, ChunkKind::Reasoning | ChunkKind::Content | ChunkKind::Tool)
    }

    /// The lower-case name, as it stands in files.
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

/// What the arrival times of an answer are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StampSource {
    /// The time of the read in this process: what arrived while the process was busy is late by as much.
    #[default]
    Read,
    /// The kernel's receive time of the last segment that was read: it does not depend on when this process gets to run. If
    /// several segments were waiting, only the last one's time is known.
    Kernel,
}

impl StampSource {
    /// The lower-case name, as it stands in files.
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
    /// When it arrived: when the kernel received the segment that completed the event, or, where that is not known, when the
    /// read returned ([`StampSource`]).
    pub at: Nanos,
    /// How much later than `at` the read returned, in nanoseconds (at most 4.29 s); 0 where `at` is the read's own time.
    pub lag: u32,
    /// Bytes of the event's data.
    pub bytes: u32,
    /// What it carried.
    pub kind: ChunkKind,
    /// Whether an earlier event came out of the same read: its own arrival is then not known better than the read's.
    pub merged: bool,
}

/// How an answer's body is cut into events.
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

/// What one event of an answer says, whatever the API: what a plugin that reads answers gives for each. An event may say
/// several things.
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
        /// Which call of the answer it belongs to, from 0.
        index: u32,
        /// The call's id, in the piece that carries it; else empty.
        id: String,
        /// The function's name, in the piece that carries it; else empty.
        name: String,
        /// The next piece of the arguments' JSON text.
        arguments: String,
    },
    /// Generation ended, with the server's word for why.
    Finish(String),
    /// Token counts; the last ones count.
    Usage(Usage),
    /// The end marker: what follows does not count.
    Done,
    /// A keep-alive.
    Comment,
    /// The request failed.
    Error {
        /// The server's words.
        message: String,
        /// Its code, where it is a number.
        code: Option<u16>,
    },
}

/// Where a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// The name did not resolve, or the connection was refused, reset or timed out before anything was sent.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// The request's total deadline passed.
    Timeout,
    /// The server answered with a status other than 2xx.
    Status,
    /// The answer was not what the dialect says: not HTTP, not JSON, not an event stream.
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
    /// The snake-case name, as it stands in files.
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

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureReason {
    /// Which request.
    pub request: RequestId,
    /// Where it failed.
    pub class: ErrorClass,
    /// The HTTP status, or the code of an in-stream error.
    pub status: Option<u16>,
    /// One line for a person; the server's own words where it gave any (cut to 500 characters).
    pub message: String,
    /// When it failed.
    pub at: Nanos,
}
