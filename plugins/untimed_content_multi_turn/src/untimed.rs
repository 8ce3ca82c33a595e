//! The flavor itself: the exchanges of a conversation become a chain of requests.

use std::collections::HashMap;

use serde_json::Value;
use veeksha_plugin::conversation::{Exchange, chain, exchanges};
use veeksha_plugin::flavor::{
    Cell, Column, Group, HistoryMode, Layout, Replay, Row, Trace, TraceFlavor, Turn,
};
use veeksha_plugin::{Error, Plugin, Request, Role, tokens};

use crate::config::Config;
use crate::dialect::Dialect;

/// Open recorded conversations.
pub struct UntimedContentMultiTurn {
    column: String,
    dialect: Dialect,
    history: HistoryMode,
    keep_unanswered: bool,
    /// The target's tokenizer.
    count: fn(&str) -> u32,
}

/// A row: the list of messages under the name of its column.
type Cells = HashMap<String, Vec<Value>>;

impl Plugin for UntimedContentMultiTurn {
    type Config = Config;
    const NAME: &'static str = "untimed_content_multi_turn";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "recorded conversations with their real text, without think times";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl TraceFlavor for UntimedContentMultiTurn {
    type Row = Cells;

    fn open(config: Config) -> Result<Self, Error> {
        Ok(UntimedContentMultiTurn {
            dialect: Dialect::new(&config)?,
            column: config.conversation_column,
            history: config.history.into(),
            keep_unanswered: config.keep_unanswered,
            count: tokens::count,
        })
    }

    fn layout(&self) -> Layout {
        Layout::new([Column::required(&self.column, Cell::Items)])
    }

    fn session(&self, _: &Trace<Cells>, _epoch: u64, group: &Group<Cells>) -> Result<Replay, Error> {
        let row = group
            .rows
            .first()
            .ok_or_else(|| Error::new("row", format!("group {} has no rows", group.index)))?;
        let mut exchanges = self.exchanges(row)?;
        if !self.keep_unanswered {
            exchanges.retain(|exchange| exchange.answer.is_some());
        }
        // Instructions alone ask for nothing.
        exchanges.retain(|exchange| {
            exchange
                .messages
                .iter()
                .any(|message| message.role != Role::System)
        });
        if exchanges.is_empty() {
            return Err(row
                .error(format!("`{}` has no message with an answer", self.column))
                .hint("`on_bad_row: skip` leaves such conversations out"));
        }
        Ok(chain(self.requests(exchanges), self.history))
    }
}

impl UntimedContentMultiTurn {
    fn exchanges(&self, row: &Row<Cells>) -> Result<Vec<Exchange>, Error> {
        let cells = row.cells.get(&self.column).map_or(&[][..], Vec::as_slice);
        let messages = (1..).zip(cells).map(|(number, message)| {
            self.dialect
                .read(message)
                .map_err(|problem| row.error(format!("`{}`: message {number} {problem}", self.column)))
        });
        Ok(exchanges(messages.collect::<Result<Vec<_>, Error>>()?))
    }

    /// The request of each exchange, with the facts about it. The whole prompt of a request is what
    /// was said until then.
    fn requests(&self, exchanges: Vec<Exchange>) -> Vec<(Request, Turn)> {
        let mut earlier_tokens = 0u32;
        let asked = exchanges.into_iter().map(|exchange| {
            let prompt = earlier_tokens.saturating_add(exchange.prompt_tokens(self.count));
            let output = exchange
                .answer
                .is_some()
                .then(|| (self.count)(&exchange.answer_text()).max(1));
            earlier_tokens = prompt.saturating_add(output.unwrap_or(0));
            let request = Request {
                messages: exchange.messages,
                ..Request::new(0)
            };
            let turn = Turn {
                answer: exchange.answer,
                prompt_tokens: Some(prompt),
                output_tokens: output,
                ..Turn::new(0)
            };
            match output {
                Some(tokens) => (request.output_exactly(tokens), turn),
                None => (request, turn),
            }
        });
        asked.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use veeksha_plugin::flavor::{Answer, group};
    use veeksha_plugin::{Session, config, text};

    /// Tokens are words here.
    fn words(text: &str) -> u32 {
        text.split_whitespace().count() as u32
    }

    fn replay(config: &str, messages: &Value) -> Result<Replay, Error> {
        let flavor = UntimedContentMultiTurn {
            count: words,
            ..UntimedContentMultiTurn::open(config::from_json(config)?)?
        };
        let row = json!({ flavor.column.clone(): messages }).to_string();
        let facts = Trace::new(1, 1, row.as_str());
        let group = group(0, "", [(3, None, row.clone())])?;
        let made = flavor.session(&facts, 0, &group)?;
        assert_eq!(
            made,
            flavor.session(&facts, 1, &group)?,
            "recorded text is the same in every epoch"
        );
        Ok(made)
    }

    /// Messages written as "role: text".
    fn chat(lines: &[&str]) -> Value {
        let messages = lines.iter().map(|line| {
            let (from, value) = line.split_once(": ").unwrap();
            json!({"from": from, "value": value})
        });
        messages.collect()
    }

    fn answer(content: &str) -> Option<Answer> {
        Some(Answer {
            reasoning: None,
            content: vec![text(content)],
            tool_calls: Vec::new(),
        })
    }

    const LINES: [&str; 7] = [
        "system: Be short.",
        "gpt: Hello!",
        "human: Which planet has rings?",
        "gpt: Saturn.",
        "human: And moons?",
        "gpt: Nearly all of them.",
        "human: Thanks",
    ];

    #[test]
    fn a_conversation_is_sent_as_it_was_recorded() {
        let made = replay("{}", &chat(&LINES)).unwrap();
        let first = Request::new(0)
            .system("Be short.")
            .user("Which planet has rings?")
            .output_exactly(1);
        let second = Request::new(1).history(0).user("And moons?").output_exactly(4);
        assert_eq!(made.session, Session::new([first, second]));
        // 2 + 4 words; these, the answer's 1 and 2 more.
        let turns = [
            Turn {
                answer: answer("Saturn."),
                prompt_tokens: Some(6),
                output_tokens: Some(1),
                ..Turn::new(0)
            },
            Turn {
                history: HistoryMode::Recorded,
                answer: answer("Nearly all of them."),
                prompt_tokens: Some(9),
                output_tokens: Some(4),
                ..Turn::new(1)
            },
        ];
        assert_eq!(made.turns, turns);
    }

    #[test]
    fn real_answers_or_none_can_be_sent_instead() {
        let live = replay(r#"{"history": "live"}"#, &chat(&LINES)).unwrap();
        assert_eq!(live.turns[1].history, HistoryMode::Live);
        assert_eq!(live.session.requests[1].history_parent, Some(0));
        let fresh = replay(r#"{"history": "fresh"}"#, &chat(&LINES)).unwrap();
        assert_eq!(fresh.turns[1].history, HistoryMode::Fresh);
        assert_eq!(fresh.session.requests[1].history_parent, None);
        assert_eq!(fresh.session.requests[1].parents, [0]);
    }

    #[test]
    fn the_unanswered_end_can_be_kept() {
        let made = replay(r#"{"keep_unanswered": true}"#, &chat(&LINES)).unwrap();
        assert_eq!(
            made.session.requests[2],
            Request::new(2).history(1).user("Thanks")
        );
        assert_eq!(made.turns[2].prompt_tokens, Some(14), "9 + 4 + 1");
        assert_eq!(
            (made.turns[2].output_tokens, &made.turns[2].answer),
            (None, &None)
        );
        let alone = replay(r#"{"keep_unanswered": true}"#, &chat(&["human: Hello?"])).unwrap();
        assert_eq!(alone.session.requests.len(), 1);
    }

    #[test]
    fn tools_stay_in_their_conversation() {
        let messages = json!([
            {"role": "user", "content": "What is 2 + 3?"},
            {"role": "assistant", "content": null,
             "tool_calls": [{"id": "c1", "function": {"name": "add", "arguments": "{\"a\": 2, \"b\": 3}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "5"},
            {"role": "assistant", "content": "It is 5."},
        ]);
        let config = r#"{"conversation_column": "messages", "role_key": "role", "content_key": "content",
                         "user_role_value": "user", "assistant_role_value": "assistant"}"#;
        let made = replay(config, &messages).unwrap();
        assert_eq!(
            made.session.requests[1],
            Request::new(1).history(0).tool("c1", "5").output_exactly(3)
        );
        let asked = made.turns[0].answer.as_ref().unwrap();
        assert_eq!(asked.tool_calls[0].name, "add");
    }

    #[test]
    fn conversations_without_a_pair_are_refused() {
        for lines in [
            &[][..],
            &["human: Hello?"],
            &["gpt: Hello!"],
            &["system: Be short.", "gpt: Hello!"],
            &["human: Hello?", "gpt:  "],
        ] {
            let refused = replay("{}", &chat(lines)).unwrap_err();
            assert_eq!(
                refused.message, "row 3: `conversations` has no message with an answer",
                "{lines:?}"
            );
        }
        let instructed = replay(r#"{"keep_unanswered": true}"#, &chat(&["system: Be short."]));
        assert!(instructed.is_err());
    }

    #[test]
    fn a_message_that_cannot_be_read_is_named() {
        let refused = replay("{}", &chat(&["human: Hi", "bing: Hi"]))
            .unwrap_err()
            .message;
        assert_eq!(
            refused,
            "row 3: `conversations`: message 2 has the role `bing`; known are `human`, `gpt`, `system`, `tool`"
        );
    }

    #[test]
    fn the_column_is_the_configured_one() {
        let config = config::from_json(r#"{"conversation_column": "conversation"}"#).unwrap();
        let layout = UntimedContentMultiTurn::open(config).unwrap().layout();
        assert_eq!(layout.columns, [Column::required("conversation", Cell::Items)]);
    }
}
