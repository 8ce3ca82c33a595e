//! What can go wrong with a tokenizer or a prompt.

use std::path::PathBuf;

use veeksha_model::NodeId;

use crate::MediaError;

/// Why there is no tokenizer, or no text.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// There is nothing to load.
    #[error("{} has no tokenizer: give a `tokenizer.json`, or a model folder that holds one", path.display())]
    Missing {
        /// What was asked for.
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
        /// What the parser says.
        reason: String,
    },
    /// The vocabulary has too few words to write text with.
    #[error(
        "the tokenizer {name} has only {found} words of plain letters that are one token each, and synthetic text needs \
         {needed}; choose the tokenizer of another model"
    )]
    FewWords {
        /// The tokenizer.
        name: String,
        /// Usable words.
        found: usize,
        /// Words needed.
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
    /// A request asks for more than can be meant.
    #[error("node {node} asks for a prompt of {tokens} tokens; the limit is {limit}")]
    TooLong {
        /// The node.
        node: NodeId,
        /// Synthetic tokens asked for.
        tokens: u64,
        /// The most that a request may ask for.
        limit: u32,
    },
    /// A recorded answer asks for more than can be meant.
    #[error("a recorded answer asks for {tokens} tokens; the limit is {limit}")]
    AnswerTooLong {
        /// Synthetic tokens asked for.
        tokens: u64,
        /// The most that an answer may ask for.
        limit: u32,
    },
    /// A recorded answer has media.
    #[error(
        "a recorded answer has a part of kind {kind}, which no API takes back from an assistant; keep its text only"
    )]
    AnswerMedia {
        /// The kind of media.
        kind: &'static str,
    },
    /// No chat template where one was looked for.
    #[error(
        "{} has no chat template: give a Jinja file, or a model folder with `chat_template.jinja` or a `tokenizer_config.json` \
         that has one",
        path.display()
    )]
    NoTemplate {
        /// Where.
        path: PathBuf,
    },
    /// A file beside the tokenizer could not be read.
    #[error("cannot read {}: {source}", path.display())]
    UnreadableTemplate {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The chat template is broken, or refuses a conversation.
    #[error("the chat template {name}: {reason}")]
    Template {
        /// The template's file or name.
        name: String,
        /// What is wrong, or the template's own words.
        reason: String,
    },
    /// A medium of a message cannot be sent.
    #[error("node {node}: {source}")]
    Media {
        /// The node.
        node: NodeId,
        /// Why not.
        source: MediaError,
    },
}
