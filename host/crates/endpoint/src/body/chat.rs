//! Request bodies of chat completions: `messages` contains the turns of the history (the messages
//! of each, then the model's actual answer with its tool calls; reasoning is not sent back), then
//! the new messages. A turn without an answer contributes only its messages. Text only is a plain
//! string; with media, the content is a list of blocks, text first.

use veeksha_model::{MediaKind, PreparedMessage, Response};

use super::conversation::Conversation;
use super::media::{MediaSource, audio_data, source};
use super::turns::{write_content, write_turns};
use crate::failure::Failure;
use crate::json_writer::{end_list, string};

/// Writes the value of `messages`.
pub(super) fn write_messages(out: &mut Vec<u8>, conversation: &Conversation<'_>) -> Result<(), Failure> {
    write_turns(out, conversation, write_message, write_answer)
}

fn write_message(out: &mut Vec<u8>, message: &PreparedMessage) -> Result<(), Failure> {
    out.extend_from_slice(b"{\"role\":");
    string(out, message.role.name());
    if let Some(id) = &message.tool_call_id {
        out.extend_from_slice(b",\"tool_call_id\":");
        string(out, id);
    }
    out.extend_from_slice(b",\"content\":");
    write_content(out, message, "text", write_media)?;
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

fn write_answer(out: &mut Vec<u8>, response: &Response) {
    out.extend_from_slice(b"{\"role\":\"assistant\",\"content\":");
    if response.text.is_empty() && !response.tool_calls.is_empty() {
        out.extend_from_slice(b"null");
    } else {
        string(out, &response.text);
    }
    if !response.tool_calls.is_empty() {
        out.extend_from_slice(b",\"tool_calls\":[");
        for call in &response.tool_calls {
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
}
