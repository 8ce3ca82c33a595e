//! Conversation of a request: the turns of its history, then its messages.

use std::borrow::Cow;
use std::sync::Arc;

use veeksha_model::{
    ErrorClass, History, MediaKind, Prepared, PreparedMessage, PreparedTools, Response, Role, ToolCall,
};

use super::media::cannot_carry;
use crate::api::Api;
use crate::endpoint_kind::EndpointKind;
use crate::failure::Failure;
use crate::feature::{Feature, FeatureSet, refusal};

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
    /// A message of an earlier turn, or of the request itself.
    fn of_message(message: &'a PreparedMessage, turn: &Prepared, request: &Prepared) -> Self {
        AssistantMessage {
            text: &message.text,
            media: &message.media,
            tool_calls: &message.tool_calls,
            reasoning: message.reasoning.as_ref().map(|reasoning| SentReasoning {
                text: &reasoning.text,
                signature: request.accepted_signature(turn, reasoning.signature.as_deref()),
            }),
        }
    }

    /// The answer to an earlier turn.
    fn of_answer(answer: &'a Response, turn: &Prepared, request: &Prepared) -> Self {
        let sends_reasoning = request.sends_reasoning_of(turn, answer);
        let reasoning = SentReasoning {
            text: &answer.reasoning,
            signature: request.accepted_signature(turn, answer.reasoning_signature.as_deref()),
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

    /// Returns each turn and its answer. The last turn is the request, which has no answer yet; a
    /// failed turn has none.
    pub(super) fn turns(&self) -> impl Iterator<Item = (&'a Prepared, Option<&'a Response>)> {
        let before = self
            .before
            .iter()
            .map(|turn| (&*turn.request, turn.response.as_deref()));
        before.chain([(self.request, None)])
    }

    /// Returns the messages in order, the model's answers among them. The reasoning of an answer is
    /// sent only if the request keeps it, that of a message always; a signature only to the servers
    /// that made it.
    pub(super) fn messages(&self) -> impl Iterator<Item = SentMessage<'a>> {
        let request = self.request;
        self.turns().flat_map(move |(turn, answer)| {
            let messages = turn.messages.iter().map(move |message| match message.role {
                Role::Assistant => {
                    SentMessage::Assistant(AssistantMessage::of_message(message, turn, request))
                }
                _ => SentMessage::Plain(message),
            });
            let answer = answer.map(|answer| AssistantMessage::of_answer(answer, turn, request));
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

    /// Checks that nothing is lost in the bodies of APIs that take one text. The workload's part
    /// was checked before ([`crate::ConversationContent`]); calls of answers to functions that only
    /// the text of a body states are known here.
    pub(super) fn check(&self, endpoint: &EndpointKind) -> Result<(), Failure> {
        if !matches!(
            endpoint,
            EndpointKind::Completions | EndpointKind::TgiGenerateStream
        ) {
            return Ok(());
        }
        let mut used = FeatureSet::default();
        used.add(Feature::Tools, self.tools().is_some());
        for (turn, answer) in self.turns() {
            let calls = |calls: &[ToolCall]| !calls.is_empty();
            let messages = || turn.messages.iter();
            let stated = messages().any(|message| calls(&message.tool_calls));
            let answered = answer.is_some_and(|answer| calls(&answer.tool_calls));
            used.add(Feature::Calls, stated || answered);
            used.add(
                Feature::Reasoning,
                messages().any(|message| message.reasoning.is_some()),
            );
        }
        match used.missing_in(endpoint) {
            Some(missing) => Err(Failure::new(ErrorClass::Protocol, refusal(endpoint, missing))),
            None => Ok(()),
        }
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
        let messages = self.turns().flat_map(|(turn, _)| &turn.messages);
        messages.filter(|message| message.role == Role::System)
    }

    /// Returns the conversation as one text: rendered by the chat template, else the texts joined
    /// with one line feed, without role names. A single message without a template is exactly its
    /// text. Calls and reasoning were refused before ([`Conversation::check`]); media are refused
    /// with a message that names `api`.
    pub(super) fn flattened(&self, config: &Api, api: &str) -> Result<Cow<'a, str>, Failure> {
        let mut turns: Vec<(Role, &str)> = Vec::new();
        for (turn, answer) in self.turns() {
            for message in &turn.messages {
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
