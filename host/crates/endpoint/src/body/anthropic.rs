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
use super::media::{Source, cannot_carry, source};
use crate::failure::Failure;
use crate::json_writer::{end_list, string};

/// Consecutive messages of one role.
enum Said<'a> {
    Message(&'a PreparedMessage),
    Answer(&'a Response),
}

impl Said<'_> {
    fn role(&self) -> &'static str {
        match self {
            Said::Message(message) if message.role == Role::Assistant => "assistant",
            Said::Message(_) => "user",
            Said::Answer(_) => "assistant",
        }
    }

    /// Returns the text, if there is nothing else.
    fn plain(&self) -> Option<&str> {
        match self {
            Said::Message(message) if message.media.is_empty() && message.role != Role::Tool => {
                Some(&message.text)
            }
            Said::Answer(answer) if answer.tool_calls.is_empty() => Some(&answer.text),
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
                text_block(out, text);
            }
            end_list(out, b']');
        }
    }
    true
}

/// Writes the value of `messages`.
pub(super) fn write_messages(out: &mut Vec<u8>, conversation: &Conversation<'_>) -> Result<(), Failure> {
    let mut said: Vec<Said<'_>> = Vec::new();
    for (messages, answer) in conversation.turns() {
        let messages = messages.iter().filter(|message| message.role != Role::System);
        said.extend(messages.map(Said::Message));
        let answer = answer.filter(|answer| !answer.text.is_empty() || !answer.tool_calls.is_empty());
        said.extend(answer.map(Said::Answer));
    }
    out.push(b'[');
    for row in said.chunk_by(|one, next| one.role() == next.role()) {
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
                for said in row {
                    write_blocks(out, said)?;
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
fn write_blocks(out: &mut Vec<u8>, said: &Said<'_>) -> Result<(), Failure> {
    match said {
        Said::Message(message) if message.role == Role::Tool => {
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
        Said::Message(message) => content_blocks(out, message)?,
        Said::Answer(answer) => {
            if !answer.text.is_empty() {
                text_block(out, &answer.text);
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
        text_block(out, &message.text);
    }
    for (kind, url) in &message.media {
        let source = source(*kind, url)?;
        if *kind != MediaKind::Image {
            return Err(cannot_carry("messages", *kind));
        }
        out.extend_from_slice(b"{\"type\":\"image\",\"source\":{\"type\":");
        match source {
            Source::Url(url) => {
                out.extend_from_slice(b"\"url\",\"url\":");
                string(out, url);
            }
            Source::Embedded { media_type, data } => {
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

fn text_block(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
    string(out, text);
    out.extend_from_slice(b"},");
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
