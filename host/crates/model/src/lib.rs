//! Ids, sessions, requests, responses: plain data for all layers.
//!
//! Nothing here does IO, reads a clock or defines a serialized form: the wire types of files are in
//! `veeksha-events` and `veeksha-scenario`, those of the plugin boundary in `veeksha-wasm`.
//!
//! All times are [`Nanos`]: nanoseconds on one monotonic clock, relative to the start of the run.
#![forbid(unsafe_code)]

mod content;
mod csv_cell;
mod edge;
mod graph;
mod headers;
mod held;
mod ids;
mod measure;
mod node_kind;
mod printable;
mod prompt;
mod record;
mod redact;
mod replay;
mod response;
mod session;
mod shortened;

pub use content::{MediaKind, ReasoningContent, ReasoningSupport, ReasoningTarget, Segment};
pub use csv_cell::csv_cell;
pub use edge::{Edge, EventInstants, Trigger, edges_met_at};
pub use graph::{GraphError, MAX_NODES, MAX_SYNTHETIC_TOKENS, check_session};
pub use headers::{
    HeaderError, HeaderField, TRACEPARENT, check_headers, is_header_name, is_header_text, trace_id_in,
};
pub use held::Held;
pub use ids::{Nanos, NodeId, RequestId, Seed, SessionId, seconds};
pub use measure::{Better, MetricDefinition, MetricSample};
pub use node_kind::{KnownNodes, NodeKind};
pub use printable::{alters_display, printable, printable_lines};
pub use prompt::{
    FunctionDefinition, History, Prepared, PreparedMessage, PreparedReasoning, PreparedToolForm,
    PreparedTools,
};
pub use record::{CacheKnowledge, RequestRecord, Status, ToolRunRecord};
pub use redact::{REDACTED, is_reserved_header, is_safe_header, redact_address, redact_addresses};
pub use replay::{HistoryMode, Recorded, RecordedAnswer, Replay, ReplayedSession};
pub use response::{
    AnswerPart, Chunk, ChunkKind, ErrorClass, FailureReason, Framing, LogProbabilities, Response,
    StampSource, TokenProbabilities, ToolCall, Usage,
};
pub use session::{
    AnswerForm, Cancellation, DEFAULT_CLIENT, Label, Message, OutputSpec, Request, Role, SUBAGENT_LABEL,
    Session, TIMER, ToolChoice, ToolDefinitions, ToolRun,
};
pub use shortened::shortened;
