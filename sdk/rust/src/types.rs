//! The contract's types that every kind of plugin uses.

pub use crate::bindings::capabilities::veeksha::plugin::types::{
    Answer, AnswerForm, Cancellation, Descriptor, Edge, Error, Failure, Guarantees, HistoryMode,
    LogProbabilities, Media, MediaKind, Message, Nanos, Output, Reasoning, Recording, Request, Response,
    Role, Seed, Segment, Session, SyntheticText, SyntheticTools, TokenProbabilities, ToolCall, ToolChoice,
    ToolOutcome, ToolResult, ToolRun, Tools, Trigger, Usage,
};
