//! A request whose text exists, and the conversation before it.

use std::sync::Arc;

use crate::content::MediaKind;
use crate::response::Response;
use crate::session::{Label, Request, Role};

/// A message with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedMessage {
    /// The author of the message.
    pub role: Role,
    /// The materialised text of all its text segments. Shared, because prefixes repeat.
    pub text: Arc<str>,
    /// Media parts as URLs, in order, after the text. Shared, because a `data:` URL can be large.
    pub media: Vec<(MediaKind, Arc<str>)>,
    /// For [`Role::Tool`]: the call that this message answers.
    pub tool_call_id: Option<String>,
}

/// A request that can be sent: made ahead of time, off the timed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The request as the plugin described it, with the labels of its session at the end of its
    /// labels.
    pub request: Request,
    /// Number of labels that belong to the session.
    pub session_labels: usize,
    /// The new messages of this turn, as text.
    pub messages: Vec<PreparedMessage>,
    /// Tokens of the new messages that were asked for.
    pub target_tokens: u32,
    /// Tokens of the new messages as the tokenizer counts the finished text.
    pub prompt_tokens: u32,
    /// Tokens that the chat template adds around the new messages; 0 where no template is applied.
    pub template_tokens: u32,
    /// The recorded answer as text, where the request has one.
    pub recorded_answer: Option<Arc<Response>>,
}

impl Prepared {
    /// Returns the labels of the request itself, and those of its session.
    pub fn split_labels(&self) -> (&[Label], &[Label]) {
        let labels = &self.request.labels;
        labels.split_at(labels.len().saturating_sub(self.session_labels))
    }
}

/// A finished turn that a later request continues; a shared list that grows at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History<P> {
    /// The turn before, back to the root of the conversation.
    pub before: Option<Arc<History<P>>>,
    /// The request of this turn.
    pub request: Arc<P>,
    /// The model's real answer; `None` after a failure that did not cancel the session.
    pub response: Option<Arc<Response>>,
}

impl<P> History<P> {
    /// The turns from the root of the conversation to the newest.
    pub fn turns(history: &Option<Arc<History<P>>>) -> Vec<Arc<History<P>>> {
        let mut turns = Vec::new();
        let mut next = history.clone();
        while let Some(turn) = next {
            next = turn.before.clone();
            turns.push(turn);
        }
        turns.reverse();
        turns
    }
}

/// A long conversation is a long list; dropping it link by link would recurse once per turn.
impl<P> Drop for History<P> {
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(turn) = next {
            match Arc::try_unwrap(turn) {
                Ok(mut turn) => next = turn.before.take(),
                Err(_) => break,
            }
        }
    }
}
