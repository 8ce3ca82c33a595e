//! The messages of a recorded body. The body is what is sent; the messages are what its prompt is
//! counted by.

use serde_json::{Map, Value};
use veeksha_plugin::conversation::role;
use veeksha_plugin::{Message, Role, text};

/// The members of messages, content blocks and function calls that hold what a model reads.
const SPOKEN: [&str; 7] = [
    "content",
    "text",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "output",
];

/// The messages of a body of the chat completions API (`messages`), the completions API (`prompt`)
/// or the responses API (`input`). Images, audio and video are left out: they stand in the body.
///
/// # Errors
/// A message for a body with none of them, or one that cannot be read.
pub(crate) fn messages(body: &Map<String, Value>) -> Result<Vec<Message>, String> {
    let (name, value) = ["messages", "prompt", "input"]
        .into_iter()
        .find_map(|name| Some((name, body.get(name)?)))
        .ok_or("it has none of `messages`, `prompt` and `input`")?;
    let found = match value {
        Value::String(_) => vec![message(value)?],
        Value::Array(items) => items.iter().map(message).collect::<Result<_, String>>()?,
        _ => return Err(format!("its `{name}` is neither text nor an array")),
    };
    if found.is_empty() {
        return Err(format!("its `{name}` is empty"));
    }
    Ok(found)
}

/// A message; a text by itself is the user's. What has no role (a function's result in the
/// responses API) is a tool's.
fn message(value: &Value) -> Result<Message, String> {
    let speaker = match value {
        Value::String(_) => Role::User,
        Value::Object(members) => match members.get("role").map(|name| name.as_str().unwrap_or_default()) {
            None => Role::Tool,
            Some(name) => role(name).ok_or_else(|| format!("a message has the unknown role `{name}`"))?,
        },
        other => return Err(format!("a message is `{other}`")),
    };
    Ok(Message {
        tool_call_id: value["tool_call_id"].as_str().map(str::to_owned),
        ..Message::new(speaker, vec![text(spoken(value))])
    })
}

fn spoken(value: &Value) -> String {
    match value {
        Value::String(message) => message.clone(),
        Value::Array(items) => items.iter().map(spoken).collect(),
        Value::Object(members) => SPOKEN
            .into_iter()
            .filter_map(|name| members.get(name))
            .map(spoken)
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: Value) -> Result<Vec<Message>, String> {
        messages(body.as_object().unwrap())
    }

    fn message(role: Role, content: &str) -> Message {
        Message::new(role, vec![text(content)])
    }

    #[test]
    fn reads_messages_of_every_api() {
        let chat = json!({"messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
            {"role": "assistant", "content": null, "tool_calls":
                [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "a cat"}]});
        assert_eq!(
            read(chat).unwrap(),
            [
                message(Role::System, "Be brief."),
                message(Role::User, "What is this?"),
                message(Role::Assistant, "look{}"),
                Message {
                    tool_call_id: Some("c".into()),
                    ..message(Role::Tool, "a cat")
                },
            ]
        );
        assert_eq!(
            read(json!({"prompt": "Once"})).unwrap(),
            [message(Role::User, "Once")]
        );
        assert_eq!(
            read(json!({"input": ["a", {"type": "function_call_output", "call_id": "c", "output": "b"}]}))
                .unwrap(),
            [message(Role::User, "a"), message(Role::Tool, "b")]
        );
    }

    #[test]
    fn refuses_a_body_without_messages() {
        assert!(read(json!({"max_tokens": 5})).unwrap_err().contains("none of"));
        assert!(read(json!({"messages": []})).unwrap_err().contains("empty"));
        assert!(read(json!({"messages": 5})).unwrap_err().contains("neither"));
        assert!(read(json!({"prompt": [[1, 2]]})).unwrap_err().contains("[1,2]"));
        assert!(
            read(json!({"messages": [{"role": "imp", "content": ""}]}))
                .unwrap_err()
                .contains("`imp`")
        );
    }
}
