//! Conversation of a request: the turns of its history, then its messages.

use std::borrow::Cow;
use std::sync::Arc;

use veeksha_model::{
    ErrorClass, History, MediaKind, Prepared, PreparedMessage, PreparedTools, Response, Role, ToolCall,
};

use super::media::cannot_carry;
use crate::api::Api;
use crate::failure::Failure;

/// The turns of a request, oldest first.
pub(super) struct Conversation<'a> {
    before: &'a [Arc<History<Prepared>>],
    request: &'a Prepared,
}

/// A message as it is sent.
#[derive(Clone, Copy)]
pub(super) enum SentMessage<'a> {
    /// Of the system, the user or a tool.
    Plain(&'a PreparedMessage),
    Assistant(AssistantMessage<'a>),
}

/// A message of the model: an answer of the conversation, or a message of the workload.
#[derive(Clone, Copy)]
pub(super) struct AssistantMessage<'a> {
    pub(super) text: &'a str,
    pub(super) media: &'a [(MediaKind, Arc<str>)],
    pub(super) tool_calls: &'a [ToolCall],
    pub(super) reasoning: Option<SentReasoning<'a>>,
}

/// The reasoning of a message of the model.
#[derive(Clone, Copy)]
pub(super) struct SentReasoning<'a> {
    pub(super) text: &'a str,
    pub(super) signature: Option<&'a str>,
}

impl<'a> AssistantMessage<'a> {
    fn of_message(message: &'a PreparedMessage) -> Self {
        AssistantMessage {
            text: &message.text,
            media: &message.media,
            tool_calls: &message.tool_calls,
            reasoning: message.reasoning.as_ref().map(|reasoning| SentReasoning {
                text: &reasoning.text,
                signature: reasoning.signature.as_deref(),
            }),
        }
    }

    fn of_answer(answer: &'a Response, sends_reasoning: bool) -> Self {
        let reasoning = SentReasoning {
            text: &answer.reasoning,
            signature: answer.reasoning_signature.as_deref(),
        };
        AssistantMessage {
            text: &answer.text,
            media: &[],
            tool_calls: &answer.tool_calls,
            reasoning: Some(reasoning).filter(|_| sends_reasoning),
        }
    }

    /// Returns true if it has neither content nor calls.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.media.is_empty() && self.tool_calls.is_empty()
    }
}

impl<'a> Conversation<'a> {
    pub(super) fn new(before: &'a [Arc<History<Prepared>>], request: &'a Prepared) -> Self {
        Conversation { before, request }
    }

    /// Returns each turn's messages and its answer. The last turn has no answer yet; a failed turn
    /// has none.
    pub(super) fn turns(&self) -> impl Iterator<Item = (&'a [PreparedMessage], Option<&'a Response>)> {
        let before = self
            .before
            .iter()
            .map(|turn| (&turn.request.messages[..], turn.response.as_deref()));
        before.chain([(&self.request.messages[..], None)])
    }

    /// Returns the messages in order, the model's answers among them. The reasoning of an answer is
    /// sent only if the request keeps it, that of a message always.
    pub(super) fn messages(&self) -> impl Iterator<Item = SentMessage<'a>> {
        let request = self.request;
        self.turns().flat_map(move |(messages, answer)| {
            let messages = messages.iter().map(|message| match message.role {
                Role::Assistant => SentMessage::Assistant(AssistantMessage::of_message(message)),
                _ => SentMessage::Plain(message),
            });
            let answer =
                answer.map(|answer| AssistantMessage::of_answer(answer, request.sends_reasoning_of(answer)));
            messages.chain(answer.map(SentMessage::Assistant))
        })
    }

    /// Returns the functions that the model may call: those of the request, or of the newest turn
    /// that states some. An empty list is none.
    pub(super) fn tools(&self) -> Option<&'a PreparedTools> {
        let before = self.before.iter().rev().map(|turn| &turn.request.tools);
        let tools = std::iter::once(&self.request.tools)
            .chain(before)
            .flatten()
            .next();
        tools.map(|tools| &**tools).filter(|tools| !tools.is_empty())
    }

    /// Returns the prompt as token ids, if it is one.
    pub(super) fn token_ids(&self) -> Result<Option<&'a [u32]>, Failure> {
        let of_history = self.before.iter().any(|turn| !turn.request.token_ids.is_empty());
        let ids = &self.request.token_ids[..];
        if of_history || (!ids.is_empty() && !self.before.is_empty()) {
            return Err(Failure::new(
                ErrorClass::Protocol,
                "a prompt of token ids can be neither continued nor the continuation of a conversation",
            ));
        }
        Ok(Some(ids).filter(|ids| !ids.is_empty()))
    }

    /// Returns the approximate size of its JSON in bytes.
    pub(super) fn bytes(&self) -> usize {
        let messages = self.messages().map(|message| match message {
            SentMessage::Plain(message) => message.text.len() + 48,
            SentMessage::Assistant(message) => {
                let calls = message.tool_calls.iter();
                let calls = calls.map(|call| call.arguments.len() + call.name.len() + call.id.len() + 72);
                let reasoning = message.reasoning.map_or(0, |reasoning| reasoning.text.len() + 24);
                message.text.len() + reasoning + calls.sum::<usize>() + 48
            }
        });
        let tools = self.tools().map_or(0, |tools| tools.tokens as usize * 5);
        let ids = self.request.token_ids.len() * 7;
        // Quotes and line ends take a second byte.
        (messages.sum::<usize>() + tools) * 17 / 16 + ids
    }

    /// Returns the system messages, at any position.
    pub(super) fn system(&self) -> impl Iterator<Item = &'a PreparedMessage> {
        let messages = self.turns().flat_map(|(messages, _)| messages);
        messages.filter(|message| message.role == Role::System)
    }

    /// Returns the conversation as one text: rendered by the chat template, else the texts joined
    /// with one line feed, without role names. A single message without a template is exactly its
    /// text. Calls and reasoning were refused before ([`crate::check_request`]); media are refused
    /// with a message that names `api`.
    pub(super) fn flattened(&self, config: &Api, api: &str) -> Result<Cow<'a, str>, Failure> {
        let mut turns: Vec<(Role, &str)> = Vec::new();
        for (messages, answer) in self.turns() {
            for message in messages {
                if let Some((kind, _)) = message.media.first() {
                    return Err(cannot_carry(api, *kind));
                }
                turns.push((message.role, &message.text));
            }
            turns.extend(answer.map(|answer| (Role::Assistant, &*answer.text)));
        }
        if let Some(render) = &config.render {
            return render(&turns)
                .map(Cow::Owned)
                .map_err(|message| Failure::new(ErrorClass::Protocol, message));
        }
        Ok(match turns.as_slice() {
            [(_, only)] => Cow::Borrowed(*only),
            _ => {
                let texts: Vec<&str> = turns.iter().map(|(_, text)| *text).collect();
                Cow::Owned(texts.join("\n"))
            }
        })
    }
}
