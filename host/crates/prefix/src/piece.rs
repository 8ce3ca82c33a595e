//! A stretch of a prompt, by what it is and not by its words.

use std::hash::{DefaultHasher, Hash, Hasher};

use veeksha_model::{Message, Segment};

/// Text of some tokens. Of two pieces of one identity, the shorter is the beginning of the longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// Equal for equal text.
    pub identity: u64,
    /// Its length.
    pub tokens: u32,
}

/// The piece of a verbatim text.
pub fn text_piece(text: &str, tokens: u32) -> Piece {
    Piece {
        identity: identity(&("text", text)),
        tokens,
    }
}

/// The pieces of messages. The role is part of what begins a message. Media count for nothing.
pub fn pieces_of<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    count: &dyn Fn(&str) -> u32,
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for message in messages {
        pieces.push(Piece {
            identity: identity(&("role", message.role)),
            tokens: 0,
        });
        pieces.extend(message.content.iter().filter_map(|segment| match segment {
            Segment::Text(text) => Some(text_piece(text, count(text))),
            Segment::Synthetic { seed, tokens } => Some(Piece {
                identity: identity(&("synthetic", seed)),
                tokens: *tokens,
            }),
            Segment::Media { .. } => None,
        }));
    }
    pieces
}

fn identity(value: &impl Hash) -> u64 {
    // Keyed with zeros: the same in every process.
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
