//! A message as a file has it: OpenAI's members (`role`, `content`, `tool_calls`, `tool_call_id`),
//! those of servers with reasoning (`reasoning_content`, `reasoning`) or ShareGPT's (`from`,
//! `value`).

use serde_json::{Map, Value};

use super::media::media;
use crate::session::text;
use crate::types::{Answer, MediaKind, Message, Reasoning, Role, Segment, ToolCall};

/// One message of a recorded conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedMessage {
    /// Who spoke.
    pub role: Role,
    /// The content.
    pub content: Vec<Segment>,
    /// The function calls that an assistant asked for.
    pub tool_calls: Vec<ToolCall>,
    /// The reasoning of an assistant before its content.
    pub reasoning: Option<Reasoning>,
    /// For the role `tool`: the call that is answered.
    pub tool_call_id: Option<String>,
}

/// The role that a corpus calls by this name; `None` for unknown names.
pub fn role(name: &str) -> Option<Role> {
    Some(match name {
        "user" | "human" => Role::User,
        "assistant" | "gpt" | "chatgpt" | "bing" | "bard" | "model" | "bot" => Role::Assistant,
        "system" | "developer" => Role::System,
        "tool" | "function" | "observation" => Role::Tool,
        _ => return None,
    })
}

/// The verbatim text of some segments, joined as the host joins it; what is made by the host is
/// left out.
pub fn text_of(segments: &[Segment]) -> String {
    let texts = segments.iter().filter_map(|segment| match segment {
        Segment::Text(text) => Some(text.as_str()),
        Segment::Synthetic(_) | Segment::Media(_) | Segment::TokenIds(_) | Segment::ResultOf(_) => None,
    });
    texts.collect()
}

impl RecordedMessage {
    /// Reads a message.
    ///
    /// # Errors
    /// A message for a value that is not an object, an unknown role, content that is neither text
    /// nor content blocks, a block of an unknown type.
    pub fn read(value: &Value) -> Result<Self, String> {
        let members = value
            .as_object()
            .ok_or_else(|| format!("a message is an object, not {}", kind(value)))?;
        let name = member(members, &["role", "from"])
            .and_then(Value::as_str)
            .ok_or("a message has no `role` (or `from`)")?;
        Ok(RecordedMessage {
            role: role(name).ok_or_else(|| format!("unknown role `{name}`"))?,
            content: member(members, &["content", "value"]).map_or_else(|| Ok(Vec::new()), content)?,
            tool_calls: member(members, &["tool_calls"]).map_or_else(|| Ok(Vec::new()), tool_calls)?,
            reasoning: member(members, &["reasoning_content", "reasoning"]).and_then(reasoning),
            tool_call_id: member(members, &["tool_call_id"])
                .and_then(Value::as_str)
                .map(str::to_owned),
        })
    }

    /// True if the message is empty: no text but spaces, no media, no calls.
    pub fn is_blank(&self) -> bool {
        let silent = |segment: &Segment| matches!(segment, Segment::Text(text) if text.trim().is_empty());
        self.tool_calls.is_empty() && self.content.iter().all(silent)
    }

    /// The message as a request sends it.
    ///
    /// # Errors
    /// Calls of another role than the assistant.
    pub fn into_message(self) -> Result<Message, String> {
        if !self.tool_calls.is_empty() && self.role != Role::Assistant {
            return Err("`tool_calls` are in a message that is not the assistant's".into());
        }
        let reasoning = self.reasoning.filter(|_| self.role == Role::Assistant);
        Ok(Message {
            tool_call_id: self.tool_call_id,
            tool_calls: self.tool_calls,
            reasoning,
            ..Message::new(self.role, self.content)
        })
    }

    /// The message as a recorded answer.
    pub fn into_answer(self) -> Answer {
        Answer {
            content: self.content,
            tool_calls: self.tool_calls,
            reasoning: self.reasoning,
        }
    }
}

/// The first of these members that is there and is not null.
fn member<'a>(members: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    let mut found = names.iter().filter_map(|name| members.get(*name));
    found.find(|value| !value.is_null())
}

fn content(value: &Value) -> Result<Vec<Segment>, String> {
    match value {
        Value::String(content) => Ok(vec![text(content)]),
        Value::Array(blocks) => blocks.iter().map(block).collect(),
        other => Err(format!(
            "the content of a message is text or an array of blocks, not {}",
            kind(other)
        )),
    }
}

/// A content block of the chat completions API.
fn block(value: &Value) -> Result<Segment, String> {
    if let Value::String(content) = value {
        return Ok(text(content));
    }
    let name = value["type"].as_str().ok_or("a content block has no `type`")?;
    let url = |kind| {
        let inside = &value[name];
        let source = inside.as_str().or_else(|| inside["url"].as_str());
        media(
            kind,
            source.ok_or_else(|| format!("a block `{name}` has no `url`"))?,
        )
    };
    match name {
        "text" | "input_text" | "output_text" => value["text"]
            .as_str()
            .map(text)
            .ok_or_else(|| format!("a block `{name}` has no `text`")),
        "image_url" => match value[name]["detail"].as_str() {
            None | Some("auto") => url(MediaKind::Image),
            Some(other) => Err(format!(
                "the detail `{other}` of an image cannot be replayed; only `auto` can"
            )),
        },
        "audio_url" => url(MediaKind::Audio),
        "video_url" => url(MediaKind::Video),
        "input_audio" => {
            let inside = &value[name];
            match (inside["format"].as_str(), inside["data"].as_str()) {
                (Some(format), Some(data)) => {
                    media(MediaKind::Audio, &format!("data:audio/{format};base64,{data}"))
                }
                _ => Err("a block `input_audio` has no `data` and `format`".into()),
            }
        }
        other => Err(format!("a content block of the unknown type `{other}`")),
    }
}

/// Reasoning as text; another form is that of one server and ignored, like every unknown member.
fn reasoning(value: &Value) -> Option<Reasoning> {
    let words = value.as_str().filter(|words| !words.is_empty())?;
    Some(Reasoning {
        content: vec![text(words)],
        signature: None,
    })
}

/// `[{id, function: {name, arguments}}]`, or the same without `function` around the two.
fn tool_calls(value: &Value) -> Result<Vec<ToolCall>, String> {
    let calls = value
        .as_array()
        .ok_or_else(|| format!("`tool_calls` is an array, not {}", kind(value)))?;
    let call = |value: &Value| {
        let function = value.get("function").unwrap_or(value);
        let name = function["name"].as_str().ok_or("a tool call has no `name`")?;
        Ok(ToolCall {
            id: value["id"].as_str().unwrap_or_default().into(),
            name: name.into(),
            arguments: match &function["arguments"] {
                Value::Null => "{}".into(),
                Value::String(arguments) => arguments.clone(),
                other => other.to_string(),
            },
        })
    };
    calls.iter().map(call).collect()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Media;
    use serde_json::json;

    fn read(value: Value) -> RecordedMessage {
        RecordedMessage::read(&value).unwrap()
    }

    fn refused(value: Value) -> String {
        RecordedMessage::read(&value).unwrap_err()
    }

    #[test]
    fn both_forms_of_messages_are_equal() {
        let openai = read(json!({"role": "user", "content": "Hi"}));
        assert_eq!(openai, read(json!({"from": "human", "value": "Hi"})));
        assert_eq!(
            openai.into_message(),
            Ok(Message::new(Role::User, vec![text("Hi")]))
        );
        for name in ["gpt", "chatgpt", "bing", "bard", "assistant"] {
            assert_eq!(role(name), Some(Role::Assistant), "{name}");
        }
        assert_eq!(role("gtp"), None);
    }

    #[test]
    fn blocks_become_segments_in_their_order() {
        let media = |kind, source: &str| {
            Segment::Media(Media {
                kind,
                source: source.into(),
            })
        };
        let message = read(json!({"role": "user", "content": [
            {"type": "text", "text": "Look: "},
            {"type": "image_url", "image_url": {"url": "https://x.test/a.png", "detail": "auto"}},
            {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
            {"type": "video_url", "video_url": "clip.mp4"},
        ]}));
        assert_eq!(
            message.content,
            [
                text("Look: "),
                media(MediaKind::Image, "https://x.test/a.png"),
                media(MediaKind::Audio, "data:audio/wav;base64,QUJD"),
                media(MediaKind::Video, "clip.mp4"),
            ]
        );
        assert_eq!(text_of(&message.content), "Look: ");
    }

    #[test]
    fn tools_are_kept() {
        let asked = read(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 1}"}},
            {"id": "c2", "name": "now", "arguments": {"zone": "UTC"}},
        ]}));
        let calls: Vec<_> = asked
            .tool_calls
            .iter()
            .map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str()))
            .collect();
        assert_eq!(
            calls,
            [("c1", "add", "{\"a\": 1}"), ("c2", "now", "{\"zone\":\"UTC\"}")]
        );
        assert!(!asked.is_blank());
        let calls = asked.tool_calls.clone();
        assert_eq!(asked.into_message().unwrap().tool_calls, calls);
        let misplaced = json!({"role": "user", "content": "x", "tool_calls": [{"name": "add"}]});
        assert!(
            read(misplaced)
                .into_message()
                .unwrap_err()
                .contains("`tool_calls`")
        );
        let answered = read(json!({"role": "tool", "tool_call_id": "c1", "content": "3"}));
        assert_eq!(
            answered.into_message().unwrap().tool_call_id.as_deref(),
            Some("c1")
        );
    }

    #[test]
    fn reasoning_is_kept_under_both_names() {
        for name in ["reasoning", "reasoning_content"] {
            let mut value = json!({"role": "assistant", "content": "4"});
            value[name] = "2 + 2".into();
            let message = read(value);
            let expected = Some(Reasoning {
                content: vec![text("2 + 2")],
                signature: None,
            });
            assert_eq!(message.clone().into_answer().reasoning, expected);
            assert_eq!(message.into_message().unwrap().reasoning, expected);
        }
        let details = json!({"role": "assistant", "content": "4", "reasoning": {"effort": "low"}});
        assert_eq!(read(details).reasoning, None);
    }

    #[test]
    fn names_what_cannot_be_read() {
        assert_eq!(refused(json!("Hi")), "a message is an object, not text");
        assert_eq!(
            refused(json!({"content": "Hi"})),
            "a message has no `role` (or `from`)"
        );
        assert_eq!(
            refused(json!({"role": "wizard", "content": ""})),
            "unknown role `wizard`"
        );
        assert_eq!(
            refused(json!({"role": "user", "content": 5})),
            "the content of a message is text or an array of blocks, not a number"
        );
        assert_eq!(
            refused(json!({"role": "user", "content": [{"type": "smell"}]})),
            "a content block of the unknown type `smell`"
        );
        assert!(
            refused(json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a", "detail": "high"}}]}))
                .contains("`high`")
        );
        assert!(refused(json!({"role": "user", "content": [{"type": "video_url", "video_url": {"url": "generated:video"}}]}))
            .contains("generated video"));
    }

    /// Values of every kind in every place: each is read, or refused with a message that names it.
    #[test]
    fn refuses_strange_values_without_panic() {
        let values = [
            json!(null),
            json!(true),
            json!(-1.5),
            json!(""),
            json!("x"),
            json!([]),
            json!([[]]),
            json!([null]),
            json!({}),
            json!({"type": "image_url"}),
            json!({"type": "input_audio", "input_audio": 5}),
            json!([{"type": 5}]),
            json!([{"type": "text"}]),
            json!([{"function": {"name": 3}}]),
        ];
        let mut refused = 0;
        for value in &values {
            for place in [
                "role",
                "from",
                "content",
                "value",
                "tool_calls",
                "reasoning",
                "tool_call_id",
            ] {
                let mut message = json!({"role": "assistant"});
                message[place] = value.clone();
                match RecordedMessage::read(&message) {
                    Ok(read) => drop(read.into_message()),
                    Err(why) => {
                        assert!(why.len() > 10, "{why}");
                        refused += 1;
                    }
                }
            }
            assert!(RecordedMessage::read(value).is_err());
        }
        assert!(refused > values.len(), "{refused}");
    }
}
