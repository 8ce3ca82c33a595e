//! APIs of inference servers.

use std::borrow::Cow;
use std::sync::Arc;

use veeksha_model::{Framing, ReasoningSupport};

use crate::header::{Header, KeyHeader};
use crate::template::EndpointTemplate;

/// The API of a target.
#[derive(Clone, Debug, Default)]
pub enum EndpointKind {
    /// OpenAI's `POST chat/completions`: messages with roles.
    #[default]
    ChatCompletions,
    /// OpenAI's `POST completions`: one text.
    Completions,
    /// OpenAI's `POST responses`: a list of items as input, typed events as output.
    Responses,
    /// Anthropic's `POST messages`: messages of content blocks.
    AnthropicMessages,
    /// `POST generate_stream` of Hugging Face's Text Generation Inference: one text as input, one
    /// event per token.
    TgiGenerateStream,
    /// A user-defined API: the body of its requests, and pointers to the parts of its answers.
    Template(Arc<EndpointTemplate>),
}

/// The API version, which Anthropic requires in every request. Compatible servers ignore it.
static ANTHROPIC_HEADERS: [Header; 1] = [(Cow::Borrowed("anthropic-version"), Cow::Borrowed("2023-06-01"))];

impl EndpointKind {
    /// Returns the path to append to the base URL. The base of [`EndpointKind::TgiGenerateStream`]
    /// usually has no `/v1`.
    pub fn default_path(&self) -> &str {
        match self {
            EndpointKind::ChatCompletions => "chat/completions",
            EndpointKind::Completions => "completions",
            EndpointKind::Responses => "responses",
            EndpointKind::AnthropicMessages => "messages",
            EndpointKind::TgiGenerateStream => "generate_stream",
            EndpointKind::Template(template) => template.path(),
        }
    }

    /// Returns the field that usually limits the answer's tokens; `None` for a template, which has
    /// a placeholder instead.
    pub fn default_max_tokens_param(&self) -> Option<&'static str> {
        match self {
            EndpointKind::ChatCompletions => Some("max_completion_tokens"),
            EndpointKind::Completions | EndpointKind::AnthropicMessages => Some("max_tokens"),
            EndpointKind::Responses => Some("max_output_tokens"),
            EndpointKind::TgiGenerateStream => Some("max_new_tokens"),
            EndpointKind::Template(_) => None,
        }
    }

    /// Returns the reasoning that the bodies of requests can have. `reasoning_param` is
    /// [`crate::Api::reasoning_param`]. Endpoints that take no reasoning at all refuse it
    /// ([`crate::check_request`]).
    pub fn reasoning_support(&self, reasoning_param: Option<&str>) -> ReasoningSupport {
        match self {
            EndpointKind::AnthropicMessages => ReasoningSupport::Signed,
            EndpointKind::ChatCompletions | EndpointKind::Template(_) if reasoning_param.is_none() => {
                ReasoningSupport::Nothing
            }
            _ => ReasoningSupport::All,
        }
    }

    /// Returns true if bodies of both have the same form.
    pub(crate) fn has_form_of(&self, other: &EndpointKind) -> bool {
        match (self, other) {
            (EndpointKind::Template(one), EndpointKind::Template(other)) => one.request() == other.request(),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// Returns the framing of the response events.
    pub fn framing(&self) -> Framing {
        match self {
            EndpointKind::Template(template) => template.framing(),
            _ => Framing::EventStream,
        }
    }

    /// Returns the headers of every request in addition to the standard ones.
    pub fn extra_headers(&self) -> &[Header] {
        match self {
            EndpointKind::AnthropicMessages => &ANTHROPIC_HEADERS,
            EndpointKind::Template(template) => template.headers(),
            _ => &[],
        }
    }

    /// Returns the header that carries the API key.
    pub fn auth(&self) -> KeyHeader {
        match self {
            EndpointKind::AnthropicMessages => KeyHeader::XApiKey,
            _ => KeyHeader::Bearer,
        }
    }

    /// Returns true if a body whose newest bytes are `tail` has ended for the endpoint: its last
    /// event is the end marker. Decodes nothing. A true result is always correct, for any start of
    /// `tail`, because a line break cannot occur inside a JSON string. A false result may be wrong:
    /// pass the whole last read, or at least 256 bytes.
    pub fn ends_with(&self, tail: &[u8]) -> bool {
        match self {
            EndpointKind::ChatCompletions | EndpointKind::Completions => last_data_is(tail, b"[DONE]"),
            EndpointKind::Responses => last_event_begins(tail, b"event: response.completed"),
            EndpointKind::AnthropicMessages => last_event_begins(tail, b"event: message_stop"),
            EndpointKind::TgiGenerateStream => false,
            EndpointKind::Template(template) => match (template.framing(), template.end_marker()) {
                (Framing::EventStream, Some(marker)) => last_data_is(tail, marker.as_bytes()),
                (Framing::Lines, Some(marker)) => {
                    last_line(tail).is_some_and(|line| line == marker.as_bytes())
                }
                _ => false,
            },
        }
    }
}

/// Returns the last non-empty line whose beginning and end are both in `tail`.
fn last_line(tail: &[u8]) -> Option<&[u8]> {
    let content = tail.trim_ascii_end();
    if !tail.get(content.len()..)?.contains(&b'\n') {
        return None;
    }
    let start = content.iter().rposition(|byte| *byte == b'\n')? + 1;
    content.get(start..)
}

/// Returns true if the last line is a data line with exactly `data`.
fn last_data_is(tail: &[u8], data: &[u8]) -> bool {
    last_line(tail)
        .and_then(|line| line.strip_prefix(b"data:"))
        .is_some_and(|value| value.trim_ascii() == data)
}

/// Returns true if the last event is complete and begins with `line`.
fn last_event_begins(tail: &[u8], line: &[u8]) -> bool {
    let content = tail.trim_ascii_end();
    let blank = tail.len() - content.len() >= 2 && tail.ends_with(b"\n");
    if !blank {
        return false;
    }
    // The end of the previous event is the start of this one.
    let two = memchr::memmem::rfind(content, b"\n\n").map(|at| at + 2);
    let four = memchr::memmem::rfind(content, b"\r\n\r\n").map(|at| at + 4);
    let Some(event) = two.max(four).and_then(|at| content.get(at..)) else {
        return false;
    };
    event
        .strip_prefix(line)
        .is_some_and(|rest| rest.starts_with(b"\n") || rest.starts_with(b"\r\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_seen_at_the_marker_and_nowhere_else() {
        let chat = EndpointKind::ChatCompletions;
        for tail in [
            &b"data: {}\n\ndata: [DONE]\n\n"[..],
            b"{}\r\n\r\ndata:[DONE]\r\n\r\n",
            b"\ndata: [DONE]\n",
        ] {
            assert!(chat.ends_with(tail), "{}", String::from_utf8_lossy(tail));
        }
        for tail in [
            // The line may continue, or may have begun earlier: a text can contain these bytes.
            &b"\ndata: [DONE]"[..],
            b"data: [DONE]\n\n",
            b"\ndata: {\"content\":\"data: [DONE]\n\n",
            b"\n",
            b"",
        ] {
            assert!(!chat.ends_with(tail), "{}", String::from_utf8_lossy(tail));
        }
        let stop = b"\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
        assert!(EndpointKind::AnthropicMessages.ends_with(stop));
        assert!(!EndpointKind::AnthropicMessages.ends_with(&stop[..stop.len() - 1]));
        assert!(!EndpointKind::AnthropicMessages.ends_with(&stop[2..]));
        assert!(!EndpointKind::Responses.ends_with(stop));
        assert!(EndpointKind::Responses.ends_with(b"}\r\n\r\nevent: response.completed\r\ndata: {}\r\n\r\n"));
    }
}
