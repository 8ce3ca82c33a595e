//! Renders messages of the APIs as one text, with a simple chat template.

use serde::Deserialize;
use serde_json::Value;

use crate::text::MEDIA_TOKENS;

/// A message, or an item of the responses API.
#[derive(Debug, Deserialize)]
pub(super) struct BodyMessage {
    role: Option<String>,
    content: Option<MessageContent>,
    tool_calls: Option<Value>,
    /// The reasoning of an assistant's message, by the names of vLLM and DeepSeek.
    #[serde(alias = "reasoning_content")]
    reasoning: Option<String>,
    /// The kind of an item of the responses API.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// The parts of an item that is reasoning without content.
    summary: Option<MessageContent>,
    /// The parts of an item that is a call or its result.
    arguments: Option<String>,
    output: Option<Value>,
}

impl BodyMessage {
    pub(super) fn new(role: &str, text: String) -> Self {
        BodyMessage {
            role: Some(role.into()),
            content: Some(MessageContent::Text(text)),
            tool_calls: None,
            reasoning: None,
            kind: None,
            summary: None,
            arguments: None,
            output: None,
        }
    }

    pub(super) fn with_parts(role: &str, content: MessageContent) -> Self {
        BodyMessage {
            content: Some(content),
            ..BodyMessage::new(role, String::new())
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum MessageContent {
    Text(String),
    Parts(Vec<MessagePart>),
}

#[derive(Debug, Deserialize)]
pub(super) struct MessagePart {
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    /// Input of a tool's call and of its result.
    input: Option<Value>,
    content: Option<Value>,
    image_url: Option<Value>,
    input_audio: Option<Value>,
    audio_url: Option<Value>,
    video_url: Option<Value>,
    /// Anthropic's images and documents.
    source: Option<Value>,
}

impl MessagePart {
    /// Returns the part as text. An image, a sound or a video becomes a word that depends on its
    /// content, followed by [`MEDIA_TOKENS`] more, about the number of tokens that an engine would
    /// use for it.
    fn into_text(self) -> Result<String, String> {
        if let Some(text) = self.text.or(self.thinking) {
            return Ok(text);
        }
        if let Some(call) = self.input.or(self.content) {
            return Ok(call.as_str().map_or_else(|| call.to_string(), str::to_owned));
        }
        let media = [
            self.image_url,
            self.input_audio,
            self.audio_url,
            self.video_url,
            self.source,
        ];
        match media.into_iter().flatten().next() {
            Some(content) => {
                let identity = crate::text::identity(&content.to_string());
                Ok(format!("<|{identity:016x}|>{}", " the".repeat(MEDIA_TOKENS)))
            }
            None => Err(format!(
                "a content part of type `{}` has neither text nor `image_url`, `input_audio`, `audio_url`, `video_url` or \
                 `source`",
                self.kind
            )),
        }
    }
}

/// The chat template: the functions that the model may call; then `<|ROLE|>`, a line feed, the
/// text, a line feed for each message, and the answer's role at the end. A later turn of a
/// conversation therefore begins with all of the earlier one.
pub(super) fn render(
    tools: Option<&[Value]>,
    messages: Vec<BodyMessage>,
    name: &str,
) -> Result<String, String> {
    if messages.is_empty() {
        return Err(format!("{name} is empty: it needs at least one message"));
    }
    let mut text = String::new();
    if let Some(tools) = tools.filter(|tools| !tools.is_empty()) {
        text.push_str(&format!("<|tools|>\n{}\n", Value::from(tools.to_vec())));
    }
    for message in messages {
        let role = match (&message.role, &message.arguments, &message.output) {
            (Some(role), ..) => role.as_str(),
            _ if message.kind.as_deref() == Some("reasoning") => "assistant",
            (None, Some(_), _) => "assistant",
            (None, None, Some(_)) => "tool",
            (None, None, None) => return Err(format!("one of {name} has no role")),
        };
        text.push_str("<|");
        text.push_str(role);
        text.push_str("|>\n");
        text.push_str(&message.reasoning.unwrap_or_default());
        match message.content.or(message.summary) {
            None => {}
            Some(MessageContent::Text(content)) => text.push_str(&content),
            Some(MessageContent::Parts(parts)) => {
                for part in parts {
                    text.push_str(&part.into_text()?);
                }
            }
        }
        if let Some(calls) = message.tool_calls.or(message.output) {
            text.push_str(&calls.to_string());
        }
        if let Some(arguments) = message.arguments {
            text.push_str(&arguments);
        }
        text.push('\n');
    }
    text.push_str("<|assistant|>\n");
    Ok(text)
}
