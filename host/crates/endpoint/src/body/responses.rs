//! Request bodies of OpenAI's Responses API: `input` is a list of items. A message is an item with
//! its role; the reasoning before an answer, each of its tool calls (`function_call`) and their
//! results (`function_call_output`) are items as well. The whole conversation is sent, so the
//! result does not depend on state in the server.

use veeksha_model::{MediaKind, PreparedMessage, Role};

use super::chat::write_audio;
use super::conversation::{AssistantMessage, Conversation, SentMessage, SentReasoning};
use super::media::{MediaSource, cannot_carry, source};
use super::turns::{write_content, write_text_block, write_turns};
use crate::failure::Failure;
use crate::json_writer::{end_list, string};

/// The start of a message item, up to its role. llama.cpp requires the type, OpenAI does not.
const MESSAGE: &[u8] = br#"{"type":"message","role":"#;

/// Writes the value of `input`.
pub(super) fn write_input(out: &mut Vec<u8>, conversation: &Conversation<'_>) -> Result<(), Failure> {
    write_turns(out, conversation, |out, message| match message {
        SentMessage::Plain(message) => write_message(out, message),
        SentMessage::Assistant(message) => write_assistant(out, &message),
    })
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
    write_content(out, &message.text, &message.media, "input_text", write_media)?;
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

fn write_assistant(out: &mut Vec<u8>, message: &AssistantMessage<'_>) -> Result<(), Failure> {
    if let Some(reasoning) = &message.reasoning {
        write_reasoning(out, reasoning);
    }
    if !message.text.is_empty() || !message.media.is_empty() || message.tool_calls.is_empty() {
        out.extend_from_slice(MESSAGE);
        out.extend_from_slice(b"\"assistant\",\"content\":");
        write_content(out, message.text, message.media, "output_text", write_media)?;
        out.extend_from_slice(b"},");
    }
    for call in message.tool_calls {
        out.extend_from_slice(b"{\"type\":\"function_call\",\"call_id\":");
        string(out, &call.id);
        out.extend_from_slice(b",\"name\":");
        string(out, &call.name);
        out.extend_from_slice(b",\"arguments\":");
        string(out, &call.arguments);
        out.extend_from_slice(b"},");
    }
    Ok(())
}

/// Writes a reasoning item. OpenAI reads `encrypted_content`, with the text as its summary; servers
/// of open models have the text in `content`, and vLLM requires an id of such an item.
fn write_reasoning(out: &mut Vec<u8>, reasoning: &SentReasoning<'_>) {
    out.extend_from_slice(b"{\"type\":\"reasoning\",");
    match reasoning.signature {
        Some(signature) => {
            out.extend_from_slice(b"\"encrypted_content\":");
            string(out, signature);
            out.extend_from_slice(b",\"summary\":[");
            if !reasoning.text.is_empty() {
                write_text_block(out, "summary_text", reasoning.text);
            }
        }
        None => {
            out.extend_from_slice(format!("\"id\":\"rs_{}\",", out.len()).as_bytes());
            out.extend_from_slice(b"\"summary\":[],\"content\":[");
            write_text_block(out, "reasoning_text", reasoning.text);
        }
    }
    end_list(out, b']');
    out.extend_from_slice(b"},");
}
