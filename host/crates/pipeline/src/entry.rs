//! An event with the optional text and prompt that belong to it.

use std::sync::Arc;

use veeksha_events::Event;
use veeksha_model::{History, Prepared, Response};
use veeksha_prefix::PrefixPiece;

use crate::pieces::{AnswerSource, PromptSource};

/// An item of the event channel.
#[derive(Clone, Debug)]
pub struct EventEntry {
    /// The event.
    pub event: Event,
    /// The text sent or received: only with [`crate::Plan::include_content`].
    pub content: Option<EntryContent>,
    /// The prompt: only with [`crate::Plan::track_prefixes`].
    pub(crate) prompt: Option<PromptSource>,
    /// The answer: only with [`crate::Plan::track_prefixes`].
    pub(crate) answer: Option<AnswerSource>,
}

impl From<Event> for EventEntry {
    fn from(event: Event) -> Self {
        EventEntry {
            event,
            content: None,
            prompt: None,
            answer: None,
        }
    }
}

impl EventEntry {
    /// Returns the pieces of a dispatched request's prompt as it was sent: its conversation,
    /// answers included, then its new messages, without the text that a chat template adds. `None`
    /// for every other event, and without [`crate::Plan::track_prefixes`].
    ///
    /// `count` gives the tokens of a verbatim text. The work is done here, on the caller's thread.
    pub fn pieces(&self, count: &dyn Fn(&str) -> u32) -> Option<Vec<PrefixPiece>> {
        self.prompt.as_ref().map(|prompt| prompt.pieces(count))
    }

    /// Takes the prompt of a dispatched request out of the entry, for a later call of
    /// [`PromptSource::pieces`].
    pub fn take_prompt(&mut self) -> Option<PromptSource> {
        self.prompt.take()
    }

    /// Takes the answer of a finished request out of the entry, if it was answered or cancelled,
    /// and with [`crate::Plan::track_prefixes`].
    pub fn take_answer(&mut self) -> Option<AnswerSource> {
        self.answer.take()
    }

    /// Returns the client of a dispatched request whose prompt is known, if it names one.
    pub fn client(&self) -> Option<&str> {
        self.prompt.as_ref()?.request().client.as_deref()
    }
}

/// The text of a request or an answer, shared with the run: it is formatted only where it is
/// written.
#[derive(Clone, Debug)]
pub enum EntryContent {
    /// With [`Event::Dispatched`].
    Sent {
        /// The new messages.
        request: Arc<Prepared>,
        /// The conversation before them.
        history: Option<Arc<History<Prepared>>>,
    },
    /// With [`Event::Finished`] of an answered request.
    Answered(Arc<Response>),
}

impl EntryContent {
    /// Returns the text: one message per line, each prefixed with its role and a colon.
    pub fn text(&self) -> String {
        let mut text = String::new();
        match self {
            EntryContent::Sent { request, history } => {
                for turn in History::turns(history) {
                    add_request(&mut text, &turn.request);
                    if let Some(response) = &turn.response {
                        line(&mut text, "assistant", &response.text);
                    }
                }
                add_request(&mut text, request);
            }
            EntryContent::Answered(response) => text.push_str(&response.text),
        }
        text
    }
}

fn add_request(text: &mut String, request: &Prepared) {
    for message in &request.messages {
        line(text, message.role.name(), &message.text);
    }
}

fn line(text: &mut String, role: &str, words: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(role);
    text.push_str(": ");
    text.push_str(words);
}
