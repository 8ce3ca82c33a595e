//! The content of messages: segments of text and media.

use crate::ids::{NodeId, Seed};

/// A piece of a message. The host turns it into text with the target's tokenizer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// Sent verbatim.
    Text(String),
    /// Exactly `tokens` tokens of text that depends on (seed, tokens) and the tokenizer alone.
    Synthetic {
        /// Equal seeds give equal text.
        seed: Seed,
        /// Length in tokens of the target's tokenizer.
        tokens: u32,
    },
    /// A reference to a blob.
    Media {
        /// The kind of media.
        kind: MediaKind,
        /// Location: a granted file name or a URL.
        source: String,
    },
    /// Token ids of the target's vocabulary, sent as they are.
    TokenIds(Vec<u32>),
    /// The result of a tool run of the session: generated text of as many tokens as the run
    /// returns. Replaced by such text before the request is prepared.
    ToolResult(NodeId),
}

impl Segment {
    /// Returns true for text without characters or tokens.
    pub fn is_empty(&self) -> bool {
        match self {
            Segment::Text(text) => text.is_empty(),
            Segment::Synthetic { tokens, .. } => *tokens == 0,
            Segment::TokenIds(ids) => ids.is_empty(),
            Segment::Media { .. } | Segment::ToolResult(_) => false,
        }
    }

    /// Returns the name of content that is not text.
    pub fn other_than_text(&self) -> Option<&'static str> {
        match self {
            Segment::Text(_) | Segment::Synthetic { .. } => None,
            Segment::Media { .. } => Some("media"),
            Segment::TokenIds(_) => Some("token ids"),
            Segment::ToolResult(_) => Some("the result of a tool run"),
        }
    }
}

/// The reasoning before an answer, as a message carries it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReasoningContent {
    /// Content, concatenated in order without separators.
    pub content: Vec<Segment>,
    /// The server's proof that the reasoning is its own, if it sent one.
    pub signature: Option<String>,
}

/// The kinds of media a message may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaKind {
    /// A still picture.
    Image,
    /// Sound.
    Audio,
    /// Moving pictures.
    Video,
}

impl MediaKind {
    /// Returns the lower-case name used in configuration and messages.
    pub fn name(self) -> &'static str {
        match self {
            MediaKind::Image => "image",
            MediaKind::Audio => "audio",
            MediaKind::Video => "video",
        }
    }
}

/// The reasoning before an answer that an endpoint can send back to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReasoningSupport {
    /// All of it.
    #[default]
    All,
    /// Reasoning with the server's signature.
    Signed,
    /// None.
    Nothing,
}

/// The reasoning that the servers of a request's client accept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReasoningTarget {
    /// The reasoning that the bodies of requests can have.
    pub support: ReasoningSupport,
    /// The servers: clients with equal numbers have the same ones. A signature is valid only at the
    /// servers that made it.
    pub servers: u16,
}

impl From<ReasoningSupport> for ReasoningTarget {
    /// For a run with one client.
    fn from(support: ReasoningSupport) -> Self {
        ReasoningTarget { support, servers: 0 }
    }
}

impl ReasoningSupport {
    /// Returns true if reasoning is sent. `has_text` is false for reasoning without text, of which
    /// the signature alone can be sent.
    pub fn sends(self, has_text: bool, signature: Option<&str>) -> bool {
        match self {
            ReasoningSupport::All => has_text || signature.is_some(),
            ReasoningSupport::Signed => signature.is_some(),
            ReasoningSupport::Nothing => false,
        }
    }

    /// Returns true if the reasoning of a message or of a recorded answer is sent.
    pub fn sends_content(self, reasoning: &ReasoningContent) -> bool {
        let has_text = !reasoning.content.iter().all(Segment::is_empty);
        self.sends(has_text, reasoning.signature.as_deref())
    }
}
