//! The contract's types that every kind of plugin uses.

pub use crate::bindings::capabilities::veeksha::plugin::types::{
    Answer, Descriptor, Edge, Error, Failure, Guarantees, HistoryMode, Media, MediaKind, Message, Nanos,
    Output, Recording, Request, Response, Role, Seed, Segment, Session, SyntheticText, ToolCall, Trigger,
    Usage,
};
