//! The turns of a row, read into requests.

use serde::Deserialize;
use serde_json::{Map, Value};
use veeksha_plugin::conversation::{Modalities, RecordedMessage, role};
use veeksha_plugin::flavor::Answer;
use veeksha_plugin::{Message, Role};

/// A turn as the file has it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Written {
    #[serde(flatten)]
    pub(crate) content: Modalities,
    pub(crate) messages: Option<Vec<Value>>,
    pub(crate) role: Option<String>,
    pub(crate) tool_call_id: Option<String>,
    pub(crate) timestamp: Option<f64>,
    pub(crate) delay: Option<f64>,
    pub(crate) output_length: Option<u64>,
    pub(crate) extra: Option<Map<String, Value>>,
    pub(crate) image_uuids: Option<Value>,
}

/// The role of a turn in the conversation.
pub(crate) enum Part {
    /// A request, and its recorded answer if that is in the same turn.
    Request(Vec<Message>, Option<Answer>),
    /// Something that is said before the next request, and sent with it.
    Preface(Message),
    /// The recorded answer to the request before.
    Answer(Answer),
}

impl Written {
    /// The turn, interpreted.
    ///
    /// # Errors
    /// A message for members that contradict each other.
    pub(crate) fn part(&self) -> Result<Part, String> {
        if self.image_uuids.is_some() {
            return Err(
                "`image_uuids` is not supported; `extra` carries what a server knows beyond the standard"
                    .into(),
            );
        }
        if self.timestamp.is_some() && self.delay.is_some() {
            return Err("`timestamp` and `delay` stand together; a turn has one of them".into());
        }
        let part = match &self.messages {
            Some(messages) => self.of_messages(messages)?,
            None => self.of_one_message()?,
        };
        if !matches!(part, Part::Request(..)) {
            self.check_no_request_members()?;
        }
        Ok(part)
    }

    /// AIPerf's turn: one message. A system message belongs to the request after it, as AIPerf has
    /// it too, and what the assistant said is the answer to the request before it.
    fn of_one_message(&self) -> Result<Part, String> {
        let content = self.content.segments()?;
        let role = match self.role.as_deref() {
            None => Role::User,
            Some(name) => {
                role(name).ok_or_else(|| format!("`role` is `{name}`, which is not a known role"))?
            }
        };
        Ok(match role {
            Role::System => Part::Preface(Message::new(role, content)),
            Role::Assistant => Part::Answer(Answer {
                reasoning: None,
                content,
                tool_calls: Vec::new(),
            }),
            Role::User | Role::Tool => {
                let message = Message {
                    tool_call_id: self.tool_call_id.clone(),
                    ..Message::new(role, content)
                };
                Part::Request(vec![message], None)
            }
        })
    }

    /// Messages of several roles; the assistant's messages at the end are the recorded answer.
    fn of_messages(&self, messages: &[Value]) -> Result<Part, String> {
        if self.content != Modalities::default() || self.role.is_some() || self.tool_call_id.is_some() {
            return Err("`messages` is in a turn that is itself a message; give one of them".into());
        }
        let mut read = (1..)
            .zip(messages)
            .map(|(number, value)| {
                RecordedMessage::read(value).map_err(|why| format!("message {number}: {why}"))
            })
            .collect::<Result<Vec<_>, String>>()?;
        let answer = read
            .pop_if(|last| last.role == Role::Assistant)
            .map(RecordedMessage::into_answer);
        let messages_before_answer: Vec<Message> = (1..)
            .zip(read)
            .map(|(number, message)| {
                message
                    .into_message()
                    .map_err(|why| format!("message {number}: {why}"))
            })
            .collect::<Result<_, String>>()?;
        match (messages_before_answer.is_empty(), answer) {
            (false, answer) => Ok(Part::Request(messages_before_answer, answer)),
            (true, Some(answer)) => Ok(Part::Answer(answer)),
            (true, None) => Err("`messages` is empty".into()),
        }
    }

    /// A turn that is not a request has nothing that only a request can have.
    fn check_no_request_members(&self) -> Result<(), String> {
        let keys = [
            ("timestamp", self.timestamp.is_some()),
            ("delay", self.delay.is_some()),
            ("output_length", self.output_length.is_some()),
            ("extra", self.extra.is_some()),
        ];
        match keys.into_iter().find(|(_, there)| *there) {
            None => Ok(()),
            Some((key, _)) => Err(format!("`{key}` is in a turn that is not a request; remove it")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use veeksha_plugin::text;

    fn part(json: &str) -> Result<Part, String> {
        serde_json::from_str::<Written>(json).unwrap().part()
    }

    fn request(json: &str) -> (Vec<Message>, Option<Answer>) {
        match part(json).unwrap() {
            Part::Request(messages, answer) => (messages, answer),
            Part::Preface(_) | Part::Answer(_) => panic!("{json} is not a request"),
        }
    }

    fn refused(json: &str) -> String {
        part(json).err().unwrap()
    }

    #[test]
    fn one_message_is_interpreted_by_its_role() {
        let user = |content: &str| Message::new(Role::User, vec![text(content)]);
        assert_eq!(request(r#"{"text": "Hi"}"#), (vec![user("Hi")], None));
        assert!(
            matches!(part(r#"{"text": "Be brief.", "role": "system"}"#), Ok(Part::Preface(message)) if message.role == Role::System)
        );
        assert!(matches!(
            part(r#"{"text": "Hello", "role": "assistant"}"#),
            Ok(Part::Answer(_))
        ));
        let (messages, _) = request(r#"{"text": "3", "role": "tool", "tool_call_id": "c1"}"#);
        assert_eq!(messages[0].tool_call_id.as_deref(), Some("c1"));
    }

    #[test]
    fn messages_of_several_roles_are_one_request() {
        let (messages, answer) = request(
            r#"{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"},
                {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}]}"#,
        );
        let roles: Vec<_> = messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::User]);
        assert_eq!(answer.unwrap().tool_calls[0].name, "f");
        assert!(matches!(
            part(r#"{"messages": [{"role": "assistant", "content": "A"}]}"#),
            Ok(Part::Answer(_))
        ));
    }

    #[test]
    fn names_invalid_values() {
        assert!(refused("{}").starts_with("the message is empty"));
        assert!(refused(r#"{"messages": []}"#).contains("empty"));
        assert!(refused(r#"{"text": "a", "messages": []}"#).contains("one of them"));
        assert!(refused(r#"{"text": "a", "timestamp": 1, "delay": 1}"#).contains("`timestamp` and `delay`"));
        assert!(refused(r#"{"text": "a", "role": "owl"}"#).contains("`owl`"));
        assert!(refused(r#"{"images": ["a"], "image_uuids": ["u"]}"#).contains("`image_uuids`"));
        assert!(
            refused(r#"{"messages": [{"role": "user", "content": "a"}, {"role": "owl"}]}"#)
                .starts_with("message 2")
        );
        let calls = r#"{"messages": [{"role": "user", "content": "a", "tool_calls": [{"name": "f"}]}, {"role": "user", "content": "a"}]}"#;
        assert!(refused(calls).contains("`tool_calls`"));
        for key in [
            r#""timestamp": 1"#,
            r#""delay": 1"#,
            r#""output_length": 1"#,
            r#""extra": {}"#,
        ] {
            for role in ["system", "assistant"] {
                let message = refused(&format!(r#"{{"text": "a", "role": "{role}", {key}}}"#));
                assert!(message.contains("in a turn that is not a request"), "{message}");
            }
        }
    }
}
