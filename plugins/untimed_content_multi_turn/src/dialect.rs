//! The keys and role names of a data set's messages.

use serde_json::Value;
use veeksha_plugin::Error;
use veeksha_plugin::conversation::RecordedMessage;

use crate::config::Config;

/// The keys and the names of roles of a data set.
pub(crate) struct Dialect {
    role_key: String,
    content_key: String,
    /// Each name of the data set, and the role that it means.
    roles: [(String, &'static str); 4],
}

impl Dialect {
    /// Refuses keys without a name, and names that mean two things.
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let keys = [
            ("conversation_column", &config.conversation_column),
            ("role_key", &config.role_key),
            ("content_key", &config.content_key),
        ];
        if let Some((key, _)) = keys.iter().find(|(_, value)| value.is_empty()) {
            return Err(Error::config(format!("/{key}"), "is empty"));
        }
        if config.role_key == config.content_key {
            return Err(Error::config("/content_key", "is the same key as `role_key`"));
        }
        let values = [
            ("user_role_value", &config.user_role_value, "user"),
            ("assistant_role_value", &config.assistant_role_value, "assistant"),
            ("system_role_value", &config.system_role_value, "system"),
            ("tool_role_value", &config.tool_role_value, "tool"),
        ];
        for (index, (key, value, _)) in values.iter().enumerate() {
            if let Some((other, ..)) = values[..index].iter().find(|(_, earlier, _)| earlier == value) {
                return Err(Error::config(
                    format!("/{key}"),
                    format!("`{value}` is the `{other}` too"),
                ));
            }
        }
        Ok(Dialect {
            role_key: config.role_key.clone(),
            content_key: config.content_key.clone(),
            roles: values.map(|(_, value, role)| (value.clone(), role)),
        })
    }

    /// A message of the data set. In addition to role and content it may have OpenAI's `tool_calls`
    /// and `tool_call_id`.
    pub(crate) fn read(&self, message: &Value) -> Result<RecordedMessage, String> {
        let Some(members) = message.as_object() else {
            return Err("is not an object".into());
        };
        let Some(Value::String(name)) = members.get(&self.role_key) else {
            return Err(format!("has no role: text under the key `{}`", self.role_key));
        };
        let Some(content) = members.get(&self.content_key) else {
            return Err(format!(
                "has no content: text under the key `{}`",
                self.content_key
            ));
        };
        let Some((_, role)) = self.roles.iter().find(|(known, _)| known == name) else {
            let known: Vec<String> = self.roles.iter().map(|(known, _)| format!("`{known}`")).collect();
            return Err(format!("has the role `{name}`; known are {}", known.join(", ")));
        };
        let mut plain = serde_json::Map::new();
        plain.insert("role".into(), (*role).into());
        plain.insert("content".into(), content.clone());
        for key in ["tool_calls", "tool_call_id", "reasoning_content", "reasoning"] {
            if let Some(value) = members.get(key) {
                plain.insert(key.into(), value.clone());
            }
        }
        RecordedMessage::read(&Value::Object(plain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use veeksha_plugin::{Role, config::from_json, text};

    fn dialect(config: &str) -> Result<Dialect, Error> {
        Dialect::new(&from_json(config).unwrap())
    }

    #[test]
    fn the_default_is_sharegpts() {
        let dialect = dialect("{}").unwrap();
        for (name, role) in [
            ("human", Role::User),
            ("gpt", Role::Assistant),
            ("system", Role::System),
            ("tool", Role::Tool),
        ] {
            let read = dialect
                .read(&json!({"from": name, "value": "x", "role": "other"}))
                .unwrap();
            assert_eq!((read.role, read.content), (role, vec![text("x")]));
        }
    }

    #[test]
    fn every_key_and_every_role_can_have_another_name() {
        let dialect = dialect(
            r#"{"role_key": "who", "content_key": "what", "user_role_value": "u", "assistant_role_value": "a",
                "system_role_value": "s", "tool_role_value": "t"}"#,
        )
        .unwrap();
        for (name, role) in [
            ("u", Role::User),
            ("a", Role::Assistant),
            ("s", Role::System),
            ("t", Role::Tool),
        ] {
            assert_eq!(
                dialect.read(&json!({"who": name, "what": "x"})).unwrap().role,
                role
            );
        }
        let called = dialect
            .read(&json!({"who": "a", "what": null, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}))
            .unwrap();
        assert_eq!(called.tool_calls[0].name, "f");
        let answered = dialect
            .read(&json!({"who": "t", "what": "5", "tool_call_id": "1"}))
            .unwrap();
        assert_eq!(answered.tool_call_id.as_deref(), Some("1"));
    }

    #[test]
    fn names_what_is_not_a_message() {
        let dialect = dialect("{}").unwrap();
        let refused = |message: Value| dialect.read(&message).unwrap_err();
        assert_eq!(refused(json!("hi")), "is not an object");
        assert_eq!(
            refused(json!({"value": "hi"})),
            "has no role: text under the key `from`"
        );
        assert_eq!(
            refused(json!({"from": "human"})),
            "has no content: text under the key `value`"
        );
        assert_eq!(
            refused(json!({"from": "bard", "value": "hi"})),
            "has the role `bard`; known are `human`, `gpt`, `system`, `tool`"
        );
        assert_eq!(
            refused(json!({"from": "human", "value": 3})),
            "the content of a message is text or an array of blocks, not a number"
        );
    }

    #[test]
    fn names_that_mean_nothing_or_two_things_are_refused() {
        let path = |config: &str| dialect(config).err().unwrap().path.unwrap();
        assert_eq!(path(r#"{"conversation_column": ""}"#), "/conversation_column");
        assert_eq!(path(r#"{"role_key": ""}"#), "/role_key");
        assert_eq!(path(r#"{"content_key": ""}"#), "/content_key");
        assert_eq!(path(r#"{"content_key": "from"}"#), "/content_key");
        assert_eq!(path(r#"{"tool_role_value": "gpt"}"#), "/tool_role_value");
        assert_eq!(
            path(r#"{"assistant_role_value": "human"}"#),
            "/assistant_role_value"
        );
    }
}
