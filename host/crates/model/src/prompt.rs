//! A request whose text exists, and the conversation before it.

use std::sync::Arc;

use crate::content::{MediaKind, ReasoningTarget};
use crate::response::{Response, ToolCall};
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
    /// For [`Role::Assistant`]: the calls that it asks for.
    pub tool_calls: Vec<ToolCall>,
    /// For [`Role::Assistant`]: the reasoning before its content.
    pub reasoning: Option<PreparedReasoning>,
}

impl PreparedMessage {
    /// A message of text only.
    pub fn new(role: Role, text: impl Into<Arc<str>>) -> Self {
        PreparedMessage {
            role,
            text: text.into(),
            media: Vec::new(),
            tool_call_id: None,
            tool_calls: Vec::new(),
            reasoning: None,
        }
    }
}

/// The reasoning before an answer, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedReasoning {
    /// The text.
    pub text: Arc<str>,
    /// The server's proof that the reasoning is its own, if it sent one.
    pub signature: Option<String>,
}

/// A function that the model may call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionDefinition {
    /// The name.
    pub name: String,
    /// The purpose, for the model.
    pub description: Option<String>,
    /// JSON schema of the arguments, as JSON text.
    pub parameters: Option<String>,
}

/// Definitions of functions that can be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedTools {
    /// The definitions.
    pub form: PreparedToolForm,
    /// Their tokens as JSON text, as the workload wrote or requested it. A server's chat template
    /// may write them differently.
    pub tokens: u32,
}

impl PreparedTools {
    /// Returns true if there is no function in it.
    pub fn is_empty(&self) -> bool {
        matches!(&self.form, PreparedToolForm::Functions(functions) if functions.is_empty())
    }

    /// Returns true if a function of this name is defined; `None` if that is not known.
    pub fn defines(&self, name: &str) -> Option<bool> {
        match &self.form {
            PreparedToolForm::Functions(functions) => {
                Some(functions.iter().any(|function| function.name == name))
            }
            PreparedToolForm::Verbatim(_) => None,
        }
    }
}

/// The form of definitions of functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreparedToolForm {
    /// Written in the form of the endpoint.
    Functions(Vec<FunctionDefinition>),
    /// JSON text of an array, sent as it is.
    Verbatim(String),
}

/// A request that can be sent: made ahead of time, off the timed path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// The functions that the model may call, where the request states them; else those of the turn
    /// before it.
    pub tools: Option<Arc<PreparedTools>>,
    /// The whole prompt as token ids; empty if it is text.
    pub token_ids: Vec<u32>,
    /// The reasoning that its endpoint can send.
    pub reasoning: ReasoningTarget,
}

impl Prepared {
    /// Returns true if this request sends the reasoning of the answer to an earlier turn.
    pub fn sends_reasoning_of(&self, turn: &Prepared, answer: &Response) -> bool {
        let signature = self.accepted_signature(turn, answer.reasoning_signature.as_deref());
        let has_text = !answer.reasoning.is_empty();
        self.request.keep_reasoning && self.reasoning.support.sends(has_text, signature)
    }

    /// Returns the signature of reasoning of an earlier turn, if the servers of this request made
    /// it.
    pub fn accepted_signature<'a>(&self, turn: &Prepared, signature: Option<&'a str>) -> Option<&'a str> {
        signature.filter(|_| turn.reasoning.servers == self.reasoning.servers)
    }

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
