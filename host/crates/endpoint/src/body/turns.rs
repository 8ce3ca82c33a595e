//! The parts that bodies of OpenAI's APIs have in common: the list of messages, the content of a
//! message.

use std::sync::Arc;

use veeksha_model::MediaKind;

use super::conversation::{Conversation, SentMessage};
use crate::failure::Failure;
use crate::json_writer::{end_list, string};

/// Writes the messages of a conversation as a list. `write` writes one of them, followed by a
/// comma.
pub(super) fn write_turns(
    out: &mut Vec<u8>,
    conversation: &Conversation<'_>,
    write: impl Fn(&mut Vec<u8>, SentMessage<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    out.push(b'[');
    for message in conversation.messages() {
        write(out, message)?;
    }
    end_list(out, b']');
    Ok(())
}

/// Writes the content of a message: its text, or a list of blocks if it has media, text first.
/// `text_type` is the type of a block of text.
pub(super) fn write_content(
    out: &mut Vec<u8>,
    text: &str,
    media: &[(MediaKind, Arc<str>)],
    text_type: &str,
    write_media: fn(&mut Vec<u8>, MediaKind, &str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if media.is_empty() {
        string(out, text);
        return Ok(());
    }
    out.push(b'[');
    if !text.is_empty() {
        write_text_block(out, text_type, text);
    }
    for (kind, url) in media {
        write_media(out, *kind, url)?;
        out.push(b',');
    }
    end_list(out, b']');
    Ok(())
}

/// Writes a block of text, followed by a comma.
pub(super) fn write_text_block(out: &mut Vec<u8>, text_type: &str, text: &str) {
    out.extend_from_slice(b"{\"type\":");
    string(out, text_type);
    out.extend_from_slice(b",\"text\":");
    string(out, text);
    out.extend_from_slice(b"},");
}
