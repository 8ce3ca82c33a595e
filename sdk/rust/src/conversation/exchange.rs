//! A recorded conversation as requests and answers.

use std::ops::Range;

use super::message::{RecordedMessage, text_of};
use crate::flavor::Answer;
use crate::session::text;
use crate::types::{Message, Role};

/// A request of a recorded conversation, and what was answered.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The new messages of the request: what was said since the last answer, in order.
    pub messages: Vec<Message>,
    /// Where they stand in the conversation.
    pub asked: Range<usize>,
    /// The answer; `None` where the conversation ends without one.
    pub answer: Option<Answer>,
    /// Where the messages of the answer stand; empty without one.
    pub answered: Range<usize>,
}

impl Exchange {
    /// Tokens of the verbatim text of its messages, by `count`. What a chat template adds is not in
    /// it.
    pub fn prompt_tokens(&self, count: impl Fn(&str) -> u32) -> u32 {
        let texts = self.messages.iter().map(|message| text_of(&message.content));
        texts.fold(0, |sum, text| sum.saturating_add(count(&text)))
    }

    /// The text of its answer, as of [`answer_text`]; empty without one.
    pub fn answer_text(&self) -> String {
        self.answer.as_ref().map(answer_text).unwrap_or_default()
    }
}

/// The text of an answer, as its tokens are counted: the reasoning, the content, then the names and
/// arguments of function calls.
pub fn answer_text(answer: &Answer) -> String {
    let reasoning = answer.reasoning.as_ref();
    let mut text = reasoning.map_or_else(String::new, |reasoning| text_of(&reasoning.content));
    text.push_str(&text_of(&answer.content));
    for call in &answer.tool_calls {
        text.push_str(&call.name);
        text.push_str(&call.arguments);
    }
    text
}

/// Adds to an answer the one after it: one answer, with an empty line between the two.
pub fn continue_answer(answer: &mut Option<Answer>, more: Answer) {
    let Some(answer) = answer else {
        *answer = Some(more);
        return;
    };
    if !answer.content.is_empty() && !more.content.is_empty() {
        answer.content.push(text("\n\n"));
    }
    answer.content.extend(more.content);
    answer.tool_calls.extend(more.tool_calls);
    match (&mut answer.reasoning, more.reasoning) {
        (Some(reasoning), Some(more)) => {
            reasoning.content.push(text("\n\n"));
            reasoning.content.extend(more.content);
            // A signature is of one text.
            reasoning.signature = None;
        }
        (reasoning, more) => *reasoning = reasoning.take().or(more),
    }
}

/// The exchanges of a conversation: each answer ends one.
///
/// Everything said between two answers belongs to one request: system messages, several messages of
/// the user, the results of tools. Answers that follow one another are one answer (with an empty
/// line between them). An answer before any question has no request, and is left out; so are
/// empty messages. Only the last exchange can be without an answer.
pub fn exchanges(messages: impl IntoIterator<Item = RecordedMessage>) -> Vec<Exchange> {
    let mut made: Vec<Exchange> = Vec::new();
    let mut open: Option<Exchange> = None;
    for (index, message) in messages.into_iter().enumerate() {
        if message.role != Role::Tool && message.is_blank() {
            continue;
        }
        if message.role != Role::Assistant {
            let exchange = open.get_or_insert_with(|| Exchange {
                messages: Vec::new(),
                asked: index..index,
                answer: None,
                answered: 0..0,
            });
            exchange.asked.end = index + 1;
            exchange.messages.push(Message {
                tool_call_id: message.tool_call_id,
                ..Message::new(message.role, message.content)
            });
            continue;
        }
        let answer = message.into_answer();
        match open.take_if(|exchange| {
            exchange
                .messages
                .iter()
                .any(|message| message.role != Role::System)
        }) {
            Some(asked) => made.push(Exchange {
                answer: Some(answer),
                answered: index..index + 1,
                ..asked
            }),
            None => {
                if let Some(last) = made.last_mut() {
                    continue_answer(&mut last.answer, answer);
                    last.answered.end = index + 1;
                }
            }
        }
    }
    made.extend(open);
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Each message is "role: content"; each exchange, its messages and its answer.
    fn split(lines: &[&str]) -> Vec<(Vec<String>, String)> {
        let messages = lines.iter().map(|line| {
            let (role, content) = line.split_once(": ").unwrap();
            RecordedMessage::read(&json!({"role": role, "content": content})).unwrap()
        });
        let made = exchanges(messages).into_iter().map(|exchange| {
            let messages = exchange.messages.iter().map(|message| text_of(&message.content));
            (messages.collect(), exchange.answer_text())
        });
        made.collect()
    }

    fn exchange(messages: &[&str], answer: &str) -> (Vec<String>, String) {
        (messages.iter().map(|&line| line.into()).collect(), answer.into())
    }

    #[test]
    fn everything_between_two_answers_is_one_request() {
        assert_eq!(
            split(&[
                "system: s",
                "user: a",
                "assistant: A",
                "user: b",
                "user: c",
                "assistant: B",
                "tool: t",
                "assistant: T",
            ]),
            [
                exchange(&["s", "a"], "A"),
                exchange(&["b", "c"], "B"),
                exchange(&["t"], "T")
            ]
        );
    }

    #[test]
    fn answers_in_a_row_are_one_and_answers_to_nothing_are_left_out() {
        assert_eq!(
            split(&["assistant: ?", "user: a", "assistant: A", "assistant: B"]),
            [exchange(&["a"], "A\n\nB")]
        );
        assert_eq!(
            split(&["system: s", "assistant: ?", "user: a", "assistant: A"]),
            [exchange(&["s", "a"], "A")]
        );
        assert_eq!(
            split(&["user: a", "assistant: A", "system: s", "assistant: B", "user: c"]),
            [exchange(&["a"], "A\n\nB"), exchange(&["s", "c"], "")]
        );
    }

    #[test]
    fn skips_empty_messages_and_keeps_an_open_last_question() {
        assert_eq!(
            split(&[
                "user: a",
                "assistant:  ",
                "user: b",
                "assistant: B",
                "user:   ",
                "user: c"
            ]),
            [exchange(&["a", "b"], "B"), exchange(&["c"], "")]
        );
        assert_eq!(split(&[]), []);
        assert_eq!(split(&["assistant: A"]), []);
    }

    #[test]
    fn an_exchange_has_the_index_of_its_messages() {
        let roles = ["system", "user", "assistant", "assistant", "user"];
        let messages =
            roles.map(|role| RecordedMessage::read(&json!({"role": role, "content": "x"})).unwrap());
        let places: Vec<_> = exchanges(messages)
            .into_iter()
            .map(|exchange| (exchange.asked, exchange.answered))
            .collect();
        assert_eq!(places, [(0..2, 2..4), (4..5, 0..0)]);
    }

    /// Every conversation of up to seven messages of every role, numbered as they stand: what is
    /// asked is asked once and in order, what is answered is answered once, and only the end is
    /// open.
    #[test]
    fn every_message_is_in_exactly_one_exchange() {
        const ROLES: [&str; 4] = ["system", "user", "assistant", "tool"];
        for length in 0..=7u32 {
            for choice in 0..4usize.pow(length) {
                let roles: Vec<&str> = (0..length).map(|at| ROLES[choice / 4usize.pow(at) % 4]).collect();
                let messages = roles.iter().enumerate().map(|(at, role)| {
                    RecordedMessage::read(&json!({"role": role, "content": format!("{at} ")})).unwrap()
                });
                let made = exchanges(messages);
                let asked: String = made
                    .iter()
                    .flat_map(|exchange| &exchange.messages)
                    .map(|message| text_of(&message.content))
                    .collect();
                let numbers = |wanted: &dyn Fn(usize) -> bool| -> String {
                    (0..roles.len())
                        .filter(|at| wanted(*at))
                        .map(|at| format!("{at} "))
                        .collect()
                };
                assert_eq!(asked, numbers(&|at| roles[at] != "assistant"), "{roles:?}");
                let first_question = roles.iter().position(|role| matches!(*role, "user" | "tool"));
                let answered: String = made.iter().map(Exchange::answer_text).collect();
                assert_eq!(
                    answered.replace("\n\n", ""),
                    numbers(&|at| roles[at] == "assistant" && first_question.is_some_and(|first| at > first)),
                    "{roles:?}"
                );
                for (number, exchange) in made.iter().enumerate() {
                    assert!(exchange.answer.is_some() || number + 1 == made.len(), "{roles:?}");
                }
            }
        }
    }
}
