//! Conversation of a request: the turns of its history, then its messages.

use std::borrow::Cow;
use std::sync::Arc;

use veeksha_model::{ErrorClass, History, Prepared, PreparedMessage, Response, Role};

use super::media::cannot_carry;
use crate::api::Api;
use crate::failure::Failure;

/// The turns of a request, oldest first.
pub(super) struct Conversation<'a> {
    before: &'a [Arc<History<Prepared>>],
    request: &'a Prepared,
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

    /// Returns the approximate size of its JSON in bytes.
    pub(super) fn bytes(&self) -> usize {
        let text: usize = self
            .turns()
            .map(|(messages, answer)| {
                let messages = messages.iter().map(|message| message.text.len() + 48);
                messages.sum::<usize>() + answer.map_or(0, |answer| answer.text.len() + 48)
            })
            .sum();
        // Quotes and line ends take a second byte.
        text * 17 / 16
    }

    /// Returns the system messages, at any position.
    pub(super) fn system(&self) -> impl Iterator<Item = &'a PreparedMessage> {
        let messages = self.turns().flat_map(|(messages, _)| messages);
        messages.filter(|message| message.role == Role::System)
    }

    /// Returns the conversation as one text: rendered by the chat template, else the texts joined
    /// with one line feed, without role names. A single message without a template is exactly its
    /// text. Tool calls cannot be represented and are omitted; media are refused with a message
    /// that names `api`.
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
