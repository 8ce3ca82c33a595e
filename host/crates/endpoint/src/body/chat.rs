//! Request bodies of chat completions: `messages` contains the turns of the history (the messages
//! of each, then the model's answer with its tool calls), then the new messages. A turn without an
//! answer contributes only its messages. Text only is a plain string; with media, the content is a
//! list of blocks, text first.
//!
//! OpenAI's API has no member for the reasoning of a message; servers that accept one name it
//! `reasoning_content` (DeepSeek, SGLang, llama.cpp) or `reasoning` (vLLM, OpenRouter).

use veeksha_model::{MediaKind, PreparedMessage};

use super::conversation::{AssistantMessage, Conversation, SentMessage};
use super::media::{MediaSource, audio_data, source};
use super::turns::{write_content, write_turns};
use crate::failure::Failure;
use crate::json_writer::{end_list, string};

/// Writes the value of `messages`. `reasoning` is the name of the member for reasoning; without one
/// it is not sent.
pub(super) fn write_messages(
    out: &mut Vec<u8>,
    conversation: &Conversation<'_>,
    reasoning: Option<&str>,
) -> Result<(), Failure> {
    write_turns(out, conversation, |out, message| match message {
        SentMessage::Plain(message) => write_message(out, message),
        SentMessage::Assistant(message) => write_assistant(out, &message, reasoning),
    })
}

fn write_message(out: &mut Vec<u8>, message: &PreparedMessage) -> Result<(), Failure> {
    out.extend_from_slice(b"{\"role\":");
    string(out, message.role.name());
    if let Some(id) = &message.tool_call_id {
        out.extend_from_slice(b",\"tool_call_id\":");
        string(out, id);
    }
    out.extend_from_slice(b",\"content\":");
    write_content(out, &message.text, &message.media, "text", write_media)?;
    out.extend_from_slice(b"},");
    Ok(())
}

/// Writes one content block. Audio in a `data:` URL is sent as `input_audio` (OpenAI), audio at
/// another URL as `audio_url` (vLLM).
fn write_media(out: &mut Vec<u8>, kind: MediaKind, url: &str) -> Result<(), Failure> {
    if kind == MediaKind::Audio && matches!(source(kind, url)?, MediaSource::Embedded { .. }) {
        return write_audio(out, url);
    }
    source(kind, url)?;
    let block = match kind {
        MediaKind::Image => "image_url",
        MediaKind::Audio => "audio_url",
        MediaKind::Video => "video_url",
    };
    out.extend_from_slice(format!("{{\"type\":\"{block}\",\"{block}\":{{\"url\":").as_bytes());
    string(out, url);
    out.extend_from_slice(b"}}");
    Ok(())
}

/// Writes OpenAI's block for audio in a `data:` URL.
pub(super) fn write_audio(out: &mut Vec<u8>, url: &str) -> Result<(), Failure> {
    let (format, data) = audio_data(url)?;
    out.extend_from_slice(b"{\"type\":\"input_audio\",\"input_audio\":{\"data\":");
    string(out, data);
    out.extend_from_slice(b",\"format\":");
    string(out, format);
    out.extend_from_slice(b"}}");
    Ok(())
}

fn write_assistant(
    out: &mut Vec<u8>,
    message: &AssistantMessage<'_>,
    reasoning: Option<&str>,
) -> Result<(), Failure> {
    out.extend_from_slice(b"{\"role\":\"assistant\",");
    if let (Some(name), Some(reasoning)) = (reasoning, message.reasoning) {
        string(out, name);
        out.push(b':');
        string(out, reasoning.text);
        out.push(b',');
    }
    out.extend_from_slice(b"\"content\":");
    if message.text.is_empty() && message.media.is_empty() && !message.tool_calls.is_empty() {
        out.extend_from_slice(b"null");
    } else {
        write_content(out, message.text, message.media, "text", write_media)?;
    }
    if !message.tool_calls.is_empty() {
        out.extend_from_slice(b",\"tool_calls\":[");
        for call in message.tool_calls {
            out.extend_from_slice(b"{\"id\":");
            string(out, &call.id);
            out.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
            string(out, &call.name);
            out.extend_from_slice(b",\"arguments\":");
            string(out, &call.arguments);
            out.extend_from_slice(b"}},");
        }
        end_list(out, b']');
    }
    out.extend_from_slice(b"},");
    Ok(())
}
