//! The parts that bodies of OpenAI's APIs have in common: the list of turns, the content of a
//! message.

use veeksha_model::{MediaKind, PreparedMessage, Response};

use super::conversation::Conversation;
use crate::failure::Failure;
use crate::json_writer::{end_list, string};

/// Writes the messages and the answers of a conversation as a list. `message` and `answer` write
/// one of them, followed by a comma.
pub(super) fn write_turns(
    out: &mut Vec<u8>,
    conversation: &Conversation<'_>,
    message: fn(&mut Vec<u8>, &PreparedMessage) -> Result<(), Failure>,
    answer: fn(&mut Vec<u8>, &Response),
) -> Result<(), Failure> {
    out.push(b'[');
    for (messages, response) in conversation.turns() {
        for each in messages {
            message(out, each)?;
        }
        if let Some(response) = response {
            answer(out, response);
        }
    }
    end_list(out, b']');
    Ok(())
}

/// Writes the content of a message: its text, or a list of blocks if it has media, text first.
/// `text_type` is the type of a block of text.
pub(super) fn write_content(
    out: &mut Vec<u8>,
    message: &PreparedMessage,
    text_type: &str,
    media: fn(&mut Vec<u8>, MediaKind, &str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if message.media.is_empty() {
        string(out, &message.text);
        return Ok(());
    }
    out.push(b'[');
    if !message.text.is_empty() {
        write_text_block(out, text_type, &message.text);
    }
    for (kind, url) in &message.media {
        media(out, *kind, url)?;
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
