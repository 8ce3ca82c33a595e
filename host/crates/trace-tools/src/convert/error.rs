//! Errors of conversions.

use veeksha_model::NodeId;

/// A session that a format cannot express. Session numbers count from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The format has linear sessions of turns only.
    #[error(
        "session {session}, node {node}: `{format}` has only sessions in which each request follows the one before it and \
         continues its conversation; convert to `timed_synthetic_session` or `mooncake`"
    )]
    NotAConversation {
        /// Session number.
        session: u64,
        /// First node that does not fit.
        node: NodeId,
        /// Target format.
        format: &'static str,
    },
    /// The format has linear sessions of requests only.
    #[error(
        "session {session}, node {node}: `{format}` has only sessions in which each request waits for the one before it and for \
         nothing else; the formats of graphs, `timed_synthetic_session` and `mooncake`, keep lengths only"
    )]
    NotALine {
        /// Session number.
        session: u64,
        /// First node that does not fit.
        node: NodeId,
        /// Target format.
        format: &'static str,
    },
    /// A request without tokens.
    #[error("session {session}, node {node}: its messages have no tokens, but `{format}` needs at least one")]
    NothingToSend {
        /// Session number.
        session: u64,
        /// Node.
        node: NodeId,
        /// Target format.
        format: &'static str,
    },
    /// Unknown length of an answer.
    #[error("session {session}, node {node}: the length of its answer is unknown, but `{format}` needs it")]
    UnknownOutput {
        /// Session number.
        session: u64,
        /// Node.
        node: NodeId,
        /// Target format.
        format: &'static str,
    },
    /// The format needs text, and the trace has only lengths.
    #[error(
        "session {session}, node {node}: its text is not in the trace, only its length, and `{format}` holds words; \
         convert to a format of lengths"
    )]
    NoWords {
        /// Session number.
        session: u64,
        /// Node.
        node: NodeId,
        /// Target format.
        format: &'static str,
    },
    /// A conversation of several requests in a format of single requests.
    #[error(
        "session {session}, node {node}: it is part of a conversation, which `single_turn` cannot represent; convert to `multi_turn`"
    )]
    Continues {
        /// Session number.
        session: u64,
        /// Node.
        node: NodeId,
    },
    /// Messages that the format cannot represent.
    #[error("session {session}, node {node}: `{format}` cannot represent {what}")]
    Messages {
        /// Session number.
        session: u64,
        /// Node.
        node: NodeId,
        /// Target format.
        format: &'static str,
        /// Description of the messages.
        what: &'static str,
    },
    /// A turn in the middle of a conversation has no recorded answer.
    #[error(
        "session {session}, node {node}: its answer was not recorded, and in `{format}` the next message would run into it; \
         convert to `multi_turn`"
    )]
    NoAnswer {
        /// Session number.
        session: u64,
        /// Node.
        node: NodeId,
        /// Target format.
        format: &'static str,
    },
    /// The extra fields of a request's body are not a JSON object.
    #[error("session {session}, node {node}: extra body fields are not a JSON object: {why}")]
    Body {
        /// Session number.
        session: u64,
        /// Node.
        node: NodeId,
        /// Message of the parser.
        why: String,
    },
}
