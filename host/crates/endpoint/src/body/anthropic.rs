//! Request bodies of Anthropic's Messages API: `system` is separate, and user and assistant
//! alternate.
//!
//! System messages, at any position of the conversation, go into `system`: one as a string, several
//! as blocks. Consecutive messages of one role become one message of blocks, because the results of
//! tool calls (which have the role `user`) must be in one message; a message of text only is a
//! plain string. An answer without text and calls is omitted: the API refuses empty text.
//!
//! Reasoning is a `thinking` block before the text. The API refuses one without the server's
//! signature, so reasoning without one is omitted.
//!
//! The input of a call must be an object. Arguments that are not an object (from a truncated
//! answer) are sent as `{"arguments": TEXT}`.

use std::sync::Arc;

use serde_json::value::RawValue;
use veeksha_model::{MediaKind, PreparedMessage, Role};

use super::conversation::{AssistantMessage, Conversation, SentMessage};
use super::media::{MediaSource, cannot_carry, source};
use super::turns::write_text_block;
use crate::failure::Failure;
use crate::json_writer::{end_list, string};

fn role(message: &SentMessage<'_>) -> &'static str {
    match message {
        SentMessage::Plain(_) => "user",
        SentMessage::Assistant(_) => "assistant",
    }
}

/// Returns the text, if nothing else is sent.
fn plain<'a>(message: &SentMessage<'a>) -> Option<&'a str> {
    match message {
        SentMessage::Plain(message) if message.media.is_empty() && message.role != Role::Tool => {
            Some(&message.text)
        }
        SentMessage::Assistant(message)
            if message.tool_calls.is_empty() && message.media.is_empty() && thinking(message).is_none() =>
        {
            Some(message.text)
        }
        _ => None,
    }
}

/// Returns the reasoning that is sent, and its signature.
fn thinking<'a>(message: &AssistantMessage<'a>) -> Option<(&'a str, &'a str)> {
    let reasoning = message.reasoning?;
    Some((reasoning.text, reasoning.signature?))
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
    let sent = |message: &SentMessage<'_>| match message {
        SentMessage::Plain(message) => message.role != Role::System,
        SentMessage::Assistant(message) => !message.is_empty(),
    };
    let turns: Vec<SentMessage<'_>> = conversation.messages().filter(sent).collect();
    out.push(b'[');
    for row in turns.chunk_by(|one, next| role(one) == role(next)) {
        let Some(first) = row.first() else {
            continue;
        };
        out.extend_from_slice(b"{\"role\":");
        string(out, role(first));
        out.extend_from_slice(b",\"content\":");
        match (row, plain(first)) {
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

/// Writes the blocks of one message, each followed by a comma.
fn write_blocks(out: &mut Vec<u8>, message: &SentMessage<'_>) -> Result<(), Failure> {
    match message {
        SentMessage::Plain(message) if message.role == Role::Tool => write_result(out, message),
        SentMessage::Plain(message) => write_content_blocks(out, &message.text, &message.media),
        SentMessage::Assistant(message) => write_assistant_blocks(out, message),
    }
}

fn write_result(out: &mut Vec<u8>, message: &PreparedMessage) -> Result<(), Failure> {
    out.extend_from_slice(b"{\"type\":\"tool_result\",\"tool_use_id\":");
    string(out, message.tool_call_id.as_deref().unwrap_or_default());
    out.extend_from_slice(b",\"content\":");
    if message.media.is_empty() {
        string(out, &message.text);
    } else {
        out.push(b'[');
        write_content_blocks(out, &message.text, &message.media)?;
        end_list(out, b']');
    }
    out.extend_from_slice(b"},");
    Ok(())
}

fn write_assistant_blocks(out: &mut Vec<u8>, message: &AssistantMessage<'_>) -> Result<(), Failure> {
    if let Some((text, signature)) = thinking(message) {
        out.extend_from_slice(b"{\"type\":\"thinking\",\"thinking\":");
        string(out, text);
        out.extend_from_slice(b",\"signature\":");
        string(out, signature);
        out.extend_from_slice(b"},");
    }
    write_content_blocks(out, message.text, message.media)?;
    for call in message.tool_calls {
        out.extend_from_slice(b"{\"type\":\"tool_use\",\"id\":");
        string(out, &call.id);
        out.extend_from_slice(b",\"name\":");
        string(out, &call.name);
        out.extend_from_slice(b",\"input\":");
        write_input(out, &call.arguments);
        out.extend_from_slice(b"},");
    }
    Ok(())
}

fn write_content_blocks(
    out: &mut Vec<u8>,
    text: &str,
    media: &[(MediaKind, Arc<str>)],
) -> Result<(), Failure> {
    if !text.is_empty() {
        write_text_block(out, "text", text);
    }
    for (kind, url) in media {
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
