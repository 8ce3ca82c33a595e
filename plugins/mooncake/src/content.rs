//! The prompt of a row: a length made of hash blocks, a text, messages, or a whole body.

use serde_json::{Map, Value};
use veeksha_plugin::flavor::Row;
use veeksha_plugin::{Error, Message, Request, Role, text};

use crate::row::Cells;

/// The prompt of a row.
#[derive(Debug)]
pub(crate) enum Prompt<'a> {
    /// `input_length`: tokens of the whole prompt.
    Length(u32),
    /// `text_input`: a message of the user.
    Text(&'a str),
    /// `messages`: the whole conversation.
    Messages(&'a [Map<String, Value>]),
    /// `payload`: the body of the request.
    Payload(&'a Map<String, Value>),
}

impl<'a> Prompt<'a> {
    /// The one prompt that a row has.
    pub(crate) fn of(row: &'a Row<Cells>) -> Result<Self, Error> {
        let cells = &row.cells;
        let length = cells
            .input_length
            .map(|tokens| row.tokens("input_length", tokens));
        let there = [
            ("input_length", length.transpose()?.map(Prompt::Length)),
            ("text_input", cells.text_input.as_deref().map(Prompt::Text)),
            ("messages", cells.messages.as_deref().map(Prompt::Messages)),
            ("payload", cells.payload.as_ref().map(Prompt::Payload)),
        ];
        let mut there = there
            .into_iter()
            .filter_map(|(name, prompt)| Some((name, prompt?)));
        let one_of = "a row has one of `input_length`, `text_input`, `messages` and `payload`";
        match (there.next(), there.next()) {
            (Some((_, prompt)), None) => Ok(prompt),
            (Some((one, _)), Some((two, _))) => {
                Err(row.error(format!("`{one}` and `{two}` are both there; {one_of}")))
            }
            (None, _) => Err(row.error(format!("there is nothing to send; {one_of}"))),
        }
    }
}

/// Puts messages on a request. What the contract's messages do not hold (calls of tools, names,
/// parts) goes into the body unchanged; the messages then serve to count and to compare.
pub(crate) fn messages(
    row: &Row<Cells>,
    messages: &[Map<String, Value>],
    body: &mut Map<String, Value>,
    mut request: Request,
) -> Result<Request, Error> {
    if messages.is_empty() {
        return Err(row.error("`messages` is empty: there is nothing to send"));
    }
    let mut whole = true;
    for message in messages {
        let (message, complete) = read(message);
        whole &= complete;
        request = request.message(message);
    }
    if !whole {
        body.insert(
            "messages".into(),
            messages.iter().cloned().map(Value::Object).collect(),
        );
    }
    Ok(request)
}

/// Puts a whole body on a request. The messages serve to count and to compare.
pub(crate) fn payload(
    payload: &Map<String, Value>,
    body: &mut Map<String, Value>,
    mut request: Request,
) -> Request {
    body.extend(payload.clone());
    for message in payload
        .get("messages")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        if let Value::Object(message) = message {
            request = request.message(read(message).0);
        }
    }
    if request.messages.is_empty() {
        let prompt = payload.get("prompt").and_then(Value::as_str);
        request = request.user(prompt.unwrap_or_default());
    }
    request
}

/// A message, and whether that is all of it.
fn read(message: &Map<String, Value>) -> (Message, bool) {
    let role = match message.get("role").and_then(Value::as_str) {
        Some("system") => Some(Role::System),
        Some("user") => Some(Role::User),
        Some("assistant") => Some(Role::Assistant),
        Some("tool") => Some(Role::Tool),
        _ => None,
    };
    let content = message.get("content").and_then(Value::as_str);
    let call = message.get("tool_call_id").and_then(Value::as_str);
    let known = 2 + usize::from(call.is_some());
    let complete = role.is_some() && content.is_some() && message.len() == known;
    let read = Message {
        reasoning: None,
        tool_calls: Vec::new(),
        role: role.unwrap_or(Role::User),
        content: vec![text(content.map_or_else(|| parts(message), str::to_owned))],
        tool_call_id: call.map(str::to_owned),
    };
    (read, complete)
}

/// The text of a content of parts.
fn parts(message: &Map<String, Value>) -> String {
    let parts = message.get("content").and_then(Value::as_array);
    parts
        .into_iter()
        .flatten()
        .filter_map(|part| part.get("text")?.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::row;

    fn object(value: Value) -> Map<String, Value> {
        let Value::Object(object) = value else {
            panic!("only objects are expected");
        };
        object
    }

    #[test]
    fn a_row_has_exactly_one_prompt() {
        assert!(matches!(
            Prompt::of(&row(1, r#"{"input_length": 5}"#)),
            Ok(Prompt::Length(5))
        ));
        assert!(matches!(
            Prompt::of(&row(1, r#"{"text_input": "hi"}"#)),
            Ok(Prompt::Text("hi"))
        ));
        let refused = |cells: &str| Prompt::of(&row(6, cells)).unwrap_err().message;
        assert_eq!(
            refused(r#"{"input_length": 5, "payload": {}}"#),
            "row 6: `input_length` and `payload` are both there; a row has one of `input_length`, `text_input`, `messages` and `payload`"
        );
        assert!(refused("{}").starts_with("row 6: there is nothing to send"));
    }

    #[test]
    fn plain_messages_are_messages() {
        let array = [
            object(json!({"role": "system", "content": "Be short."})),
            object(json!({"role": "user", "content": "Weather?"})),
            object(json!({"role": "tool", "content": "rain", "tool_call_id": "c1"})),
        ];
        let mut body = Map::new();
        let request = messages(&row(1, "{}"), &array, &mut body, Request::new(0)).unwrap();
        let expected = Request::new(0)
            .system("Be short.")
            .user("Weather?")
            .tool("c1", "rain");
        assert_eq!(request, expected);
        assert!(body.is_empty());
    }

    #[test]
    fn members_outside_messages_go_into_the_body() {
        let cases = [
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c1"}]}),
            json!({"role": "developer", "content": "Be short."}),
            json!({"role": "user", "content": "hi", "name": "ann"}),
            json!({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
        ];
        let texts = ["", "Be short.", "hi", "ab"];
        for (case, expected) in cases.into_iter().zip(texts) {
            let mut body = Map::new();
            let array = [object(case.clone())];
            let request = messages(&row(1, "{}"), &array, &mut body, Request::new(0)).unwrap();
            assert_eq!(request.messages[0].content, [text(expected)]);
            assert_eq!(body, object(json!({"messages": [case]})));
        }
        let error = messages(&row(2, "{}"), &[], &mut Map::new(), Request::new(0)).unwrap_err();
        assert_eq!(
            error.message,
            "row 2: `messages` is empty: there is nothing to send"
        );
    }

    #[test]
    fn a_payload_is_the_body() {
        let chat = object(json!({"messages": [{"role": "user", "content": "hi"}], "temperature": 0}));
        let mut body = Map::new();
        let request = payload(&chat, &mut body, Request::new(0));
        assert_eq!((request, body), (Request::new(0).user("hi"), chat));
        let completion = object(json!({"prompt": "Once"}));
        assert_eq!(
            payload(&completion, &mut Map::new(), Request::new(0)),
            Request::new(0).user("Once")
        );
        let other = object(json!({"input": [1, 2]}));
        assert_eq!(
            payload(&other, &mut Map::new(), Request::new(0)),
            Request::new(0).user("")
        );
    }
}
