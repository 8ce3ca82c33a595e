//! Request bodies of Anthropic's Messages API: `system` is separate, and user and assistant
//! alternate.
//!
//! System messages, at any position of the conversation, go into `system`: one as a string, several
//! as blocks. Consecutive messages of one role become one message of blocks, because the results of
//! tool calls (which have the role `user`) must be in one message; a message of text only is a
//! plain string. An answer without text and calls is omitted: the API refuses empty text.
//!
//! The input of a call must be an object. Arguments that are not an object (from a truncated
//! answer) are sent as `{"arguments": TEXT}`.

use serde_json::value::RawValue;
use veeksha_model::{MediaKind, PreparedMessage, Response, Role};

use super::conversation::Conversation;
use super::media::{MediaSource, cannot_carry, source};
use super::turns::write_text_block;
use crate::failure::Failure;
use crate::json_writer::{end_list, string};

/// A message of a request, or a response in the history.
enum MessageSource<'a> {
    Message(&'a PreparedMessage),
    Answer(&'a Response),
}

impl MessageSource<'_> {
    fn role(&self) -> &'static str {
        match self {
            MessageSource::Message(message) if message.role == Role::Assistant => "assistant",
            MessageSource::Message(_) => "user",
            MessageSource::Answer(_) => "assistant",
        }
    }

    /// Returns the text, if there is nothing else.
    fn plain(&self) -> Option<&str> {
        match self {
            MessageSource::Message(message) if message.media.is_empty() && message.role != Role::Tool => {
                Some(&message.text)
            }
            MessageSource::Answer(answer) if answer.tool_calls.is_empty() => Some(&answer.text),
            _ => None,
        }
    }
}

/// Writes the value of `system` and returns true, if the conversation has system messages.
pub(super) fn write_system(out: &mut Vec<u8>, conversation: &Conversation<'_>) -> bool {
    let texts: Vec<&str> = conversation.system().map(|message| &*message.text).collect();
    match texts.as_slice() {
        [] => return false,
        [only] => string(out, only),
        several => {
            out.push(b'[');
            for text in several.iter().filter(|text| !text.is_empty()) {
                write_text_block(out, "text", text);
            }
            end_list(out, b']');
        }
    }
    true
}

/// Writes the value of `messages`.
pub(super) fn write_messages(out: &mut Vec<u8>, conversation: &Conversation<'_>) -> Result<(), Failure> {
    let mut turns: Vec<MessageSource<'_>> = Vec::new();
    for (messages, answer) in conversation.turns() {
        let messages = messages.iter().filter(|message| message.role != Role::System);
        turns.extend(messages.map(MessageSource::Message));
        let answer = answer.filter(|answer| !answer.text.is_empty() || !answer.tool_calls.is_empty());
        turns.extend(answer.map(MessageSource::Answer));
    }
    out.push(b'[');
    for row in turns.chunk_by(|one, next| one.role() == next.role()) {
        let Some(first) = row.first() else {
            continue;
        };
        out.extend_from_slice(b"{\"role\":");
        string(out, first.role());
        out.extend_from_slice(b",\"content\":");
        match (row, first.plain()) {
            ([_], Some(text)) => string(out, text),
            _ => {
                out.push(b'[');
                for turn in row {
                    write_blocks(out, turn)?;
                }
                end_list(out, b']');
            }
        }
        out.extend_from_slice(b"},");
    }
    end_list(out, b']');
    Ok(())
}

/// Writes the blocks of one message or answer, each followed by a comma.
fn write_blocks(out: &mut Vec<u8>, turn: &MessageSource<'_>) -> Result<(), Failure> {
    match turn {
        MessageSource::Message(message) if message.role == Role::Tool => {
            out.extend_from_slice(b"{\"type\":\"tool_result\",\"tool_use_id\":");
            string(out, message.tool_call_id.as_deref().unwrap_or_default());
            out.extend_from_slice(b",\"content\":");
            if message.media.is_empty() {
                string(out, &message.text);
            } else {
                out.push(b'[');
                content_blocks(out, message)?;
                end_list(out, b']');
            }
            out.extend_from_slice(b"},");
        }
        MessageSource::Message(message) => content_blocks(out, message)?,
        MessageSource::Answer(answer) => {
            if !answer.text.is_empty() {
                write_text_block(out, "text", &answer.text);
            }
            for call in &answer.tool_calls {
                out.extend_from_slice(b"{\"type\":\"tool_use\",\"id\":");
                string(out, &call.id);
                out.extend_from_slice(b",\"name\":");
                string(out, &call.name);
                out.extend_from_slice(b",\"input\":");
                write_input(out, &call.arguments);
                out.extend_from_slice(b"},");
            }
        }
    }
    Ok(())
}

fn content_blocks(out: &mut Vec<u8>, message: &PreparedMessage) -> Result<(), Failure> {
    if !message.text.is_empty() {
        write_text_block(out, "text", &message.text);
    }
    for (kind, url) in &message.media {
        let source = source(*kind, url)?;
        if *kind != MediaKind::Image {
            return Err(cannot_carry("messages", *kind));
        }
        out.extend_from_slice(b"{\"type\":\"image\",\"source\":{\"type\":");
        match source {
            MediaSource::Url(url) => {
                out.extend_from_slice(b"\"url\",\"url\":");
                string(out, url);
            }
            MediaSource::Embedded { media_type, data } => {
                out.extend_from_slice(b"\"base64\",\"media_type\":");
                string(out, media_type);
                out.extend_from_slice(b",\"data\":");
                string(out, data);
            }
        }
        out.extend_from_slice(b"}},");
    }
    Ok(())
}

fn write_input(out: &mut Vec<u8>, arguments: &str) {
    if arguments.trim().is_empty() {
        out.extend_from_slice(b"{}");
        return;
    }
    match serde_json::from_str::<&RawValue>(arguments) {
        Ok(json) if json.get().starts_with('{') => out.extend_from_slice(json.get().as_bytes()),
        _ => {
            out.extend_from_slice(b"{\"arguments\":");
            string(out, arguments);
            out.push(b'}');
        }
    }
}
