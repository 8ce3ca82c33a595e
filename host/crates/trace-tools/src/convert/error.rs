//! Why a session has no form in a format.

use veeksha_model::NodeId;

/// A session that a format cannot express. The session's number counts from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotConvert {
    /// The format's sessions are lines of turns.
    #[error(
        "session {session}, node {node}: `{format}` has only sessions in which each request follows the one before it and \
         continues its conversation; convert to `timed_synthetic_session` or `mooncake`"
    )]
    NotAConversation {
        /// Which session.
        session: u64,
        /// The first node that does not.
        node: NodeId,
        /// The format.
        format: &'static str,
    },
    /// The format's sessions are lines of requests.
    #[error(
        "session {session}, node {node}: `{format}` has only sessions in which each request waits for the one before it and for \
         nothing else; the formats of graphs, `timed_synthetic_session` and `mooncake`, keep lengths only"
    )]
    NotALine {
        /// Which session.
        session: u64,
        /// The first node that does not.
        node: NodeId,
        /// The format.
        format: &'static str,
    },
    /// A request without any tokens.
    #[error("session {session}, node {node}: its messages have no tokens, and `{format}` needs at least one")]
    NothingToSend {
        /// Which session.
        session: u64,
        /// The node.
        node: NodeId,
        /// The format.
        format: &'static str,
    },
    /// How long the answer is, is not known.
    #[error("session {session}, node {node}: the length of its answer is not known, and `{format}` needs it")]
    UnknownOutput {
        /// Which session.
        session: u64,
        /// The node.
        node: NodeId,
        /// The format.
        format: &'static str,
    },
    /// The format holds words, and the trace has only lengths.
    #[error(
        "session {session}, node {node}: its text is not in the trace, only its length, and `{format}` holds words; \
         convert to a format of lengths"
    )]
    NoWords {
        /// Which session.
        session: u64,
        /// The node.
        node: NodeId,
        /// The format.
        format: &'static str,
    },
    /// Several requests of a conversation, in a format of single requests.
    #[error(
        "session {session}, node {node}: it sends a conversation, and `single_turn` has none; convert to `multi_turn`"
    )]
    Continues {
        /// Which session.
        session: u64,
        /// The node.
        node: NodeId,
    },
    /// Messages that the format cannot hold.
    #[error("session {session}, node {node}: `{format}` has no place for {what}")]
    Messages {
        /// Which session.
        session: u64,
        /// The node.
        node: NodeId,
        /// The format.
        format: &'static str,
        /// Which messages.
        what: &'static str,
    },
    /// A turn in the middle of a conversation has no recorded answer.
    #[error(
        "session {session}, node {node}: its answer was not recorded, and in `{format}` the next message would run into it; \
         convert to `multi_turn`"
    )]
    NoAnswer {
        /// Which session.
        session: u64,
        /// The node.
        node: NodeId,
        /// The format.
        format: &'static str,
    },
    /// The body of a request is not the JSON object that it must be.
    #[error("session {session}, node {node}: the fields for its body are no JSON object: {why}")]
    Body {
        /// Which session.
        session: u64,
        /// The node.
        node: NodeId,
        /// What the reader said.
        why: String,
    },
}
