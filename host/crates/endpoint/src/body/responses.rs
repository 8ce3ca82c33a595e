//! Request bodies of OpenAI's Responses API: `input` is a list of items. A message is an item with
//! its role; each tool call of an answer (`function_call`) and its result (`function_call_output`)
//! are items as well. The whole conversation is sent, so the result does not depend on state in the
//! server.

use veeksha_model::{MediaKind, PreparedMessage, Response, Role};

use super::chat::write_audio;
use super::conversation::Conversation;
use super::media::{MediaSource, cannot_carry, source};
use super::turns::{write_content, write_turns};
use crate::failure::Failure;
use crate::json_writer::string;

/// The start of a message item, up to its role. llama.cpp requires the type, OpenAI does not.
const MESSAGE: &[u8] = br#"{"type":"message","role":"#;

/// Writes the value of `input`.
pub(super) fn write_input(out: &mut Vec<u8>, conversation: &Conversation<'_>) -> Result<(), Failure> {
    write_turns(out, conversation, write_message, write_answer)
}

fn write_message(out: &mut Vec<u8>, message: &PreparedMessage) -> Result<(), Failure> {
    if message.role == Role::Tool {
        out.extend_from_slice(b"{\"type\":\"function_call_output\",\"call_id\":");
        string(out, message.tool_call_id.as_deref().unwrap_or_default());
        out.extend_from_slice(b",\"output\":");
    } else {
        out.extend_from_slice(MESSAGE);
        string(out, message.role.name());
        out.extend_from_slice(b",\"content\":");
    }
    write_content(out, message, "input_text", write_media)?;
    out.extend_from_slice(b"},");
    Ok(())
}

/// Writes an image at any URL, or embedded audio.
fn write_media(out: &mut Vec<u8>, kind: MediaKind, url: &str) -> Result<(), Failure> {
    match (kind, source(kind, url)?) {
        (MediaKind::Image, _) => {
            out.extend_from_slice(b"{\"type\":\"input_image\",\"image_url\":");
            string(out, url);
            out.push(b'}');
            Ok(())
        }
        (MediaKind::Audio, MediaSource::Embedded { .. }) => write_audio(out, url),
        (MediaKind::Audio, MediaSource::Url(_)) => Err(cannot_carry("responses", kind)),
        (MediaKind::Video, _) => Err(cannot_carry("responses", kind)),
    }
}

fn write_answer(out: &mut Vec<u8>, answer: &Response) {
    if !answer.text.is_empty() || answer.tool_calls.is_empty() {
        out.extend_from_slice(MESSAGE);
        out.extend_from_slice(b"\"assistant\",\"content\":");
        string(out, &answer.text);
        out.extend_from_slice(b"},");
    }
    for call in &answer.tool_calls {
        out.extend_from_slice(b"{\"type\":\"function_call\",\"call_id\":");
        string(out, &call.id);
        out.extend_from_slice(b",\"name\":");
        string(out, &call.name);
        out.extend_from_slice(b",\"arguments\":");
        string(out, &call.arguments);
        out.extend_from_slice(b"},");
    }
}
