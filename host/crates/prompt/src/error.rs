//! Errors of tokenizers and prompts.

use std::path::PathBuf;

use veeksha_model::NodeId;

use crate::media::MediaError;

/// An error of loading a tokenizer or of making text.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// The path does not exist.
    #[error("{} has no tokenizer: give a `tokenizer.json`, or a model folder that contains one", path.display())]
    Missing {
        /// The requested path.
        path: PathBuf,
    },
    /// The file could not be read.
    #[error("cannot read the tokenizer {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file is not a tokenizer.
    #[error("{name} is not a usable `tokenizer.json`: {reason}")]
    Corrupt {
        /// The file.
        name: String,
        /// The parser's message.
        reason: String,
    },
    /// The vocabulary has too few words for synthetic text.
    #[error(
        "the tokenizer {name} has only {found} words of plain letters that are one token each, and synthetic text needs \
         {needed}; choose the tokenizer of another model"
    )]
    FewWords {
        /// The tokenizer.
        name: String,
        /// Number of usable words.
        found: usize,
        /// Number of words required.
        needed: usize,
    },
    /// The tokenizer refused a text.
    #[error("the tokenizer {name} cannot encode a text: {reason}")]
    Encode {
        /// The tokenizer.
        name: String,
        /// Its reason.
        reason: String,
    },
    /// A request asks for too many tokens.
    #[error("node {node} asks for a prompt of {tokens} tokens; the limit is {limit}")]
    TooLong {
        /// The node.
        node: NodeId,
        /// Requested synthetic tokens.
        tokens: u64,
        /// Maximum number per request.
        limit: u32,
    },
    /// A part of a request is invalid, or the endpoint cannot express it.
    #[error("node {node}: {reason}")]
    Request {
        /// The node.
        node: NodeId,
        /// The problem, and the remedy.
        reason: String,
    },
    /// A recorded answer asks for too many tokens.
    #[error("a recorded answer asks for {tokens} tokens; the limit is {limit}")]
    AnswerTooLong {
        /// Requested synthetic tokens.
        tokens: u64,
        /// Maximum number per answer.
        limit: u32,
    },
    /// A recorded answer contains media.
    #[error(
        "a recorded answer has a part of kind {kind}, which no API accepts from an assistant; keep only its text"
    )]
    AnswerMedia {
        /// The kind of media.
        kind: &'static str,
    },
    /// No chat template was found.
    #[error(
        "{} has no chat template: give a Jinja file, or a model folder with `chat_template.jinja` or a `tokenizer_config.json` \
         that has one",
        path.display()
    )]
    NoTemplate {
        /// The searched path.
        path: PathBuf,
    },
    /// A file next to the tokenizer could not be read.
    #[error("cannot read {}: {source}", path.display())]
    UnreadableTemplate {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The chat template is invalid, or refuses a conversation.
    #[error("the chat template {name}: {reason}")]
    Template {
        /// The template's file or name.
        name: String,
        /// The problem, or the template's message.
        reason: String,
    },
    /// A medium of a message cannot be sent.
    #[error("node {node}: {source}")]
    Media {
        /// The node.
        node: NodeId,
        /// The reason.
        source: MediaError,
    },
}
