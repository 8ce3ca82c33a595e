//! An event with what was said, where the run is to record that, and with what its prompt is made of.

use std::sync::Arc;

use veeksha_events::Event;
use veeksha_model::{History, Prepared, Response};
use veeksha_prefix::Piece;

use crate::pieces::Prompt;

/// What the event channel carries.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What happened.
    pub event: Event,
    /// What was said: only with [`crate::Plan::include_content`].
    pub content: Option<Content>,
    /// What was asked: only with [`crate::Plan::track_prefixes`].
    pub(crate) prompt: Option<Prompt>,
}

impl From<Event> for Entry {
    fn from(event: Event) -> Self {
        Entry {
            event,
            content: None,
            prompt: None,
        }
    }
}

impl Entry {
    /// The prompt of a request that was dispatched, as it was sent: its conversation, answers included, then its own messages.
    /// What a chat template adds around the messages is no piece of it. `None` with every other event, and without
    /// [`crate::Plan::track_prefixes`].
    ///
    /// `count` gives the tokens of a verbatim text. The work is done here, on the caller's thread.
    pub fn pieces(&self, count: &dyn Fn(&str) -> u32) -> Option<Vec<Piece>> {
        self.prompt.as_ref().map(|prompt| prompt.pieces(count))
    }
}

/// The words of a request or an answer, shared with the run: text is made of it only where it is written.
#[derive(Clone, Debug)]
pub enum Content {
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

impl Content {
    /// The words, each message after its role and a colon, one message a line.
    pub fn text(&self) -> String {
        let mut text = String::new();
        match self {
            Content::Sent { request, history } => {
                for turn in History::turns(history) {
                    say(&mut text, &turn.request);
                    if let Some(response) = &turn.response {
                        line(&mut text, "assistant", &response.text);
                    }
                }
                say(&mut text, request);
            }
            Content::Answered(response) => text.push_str(&response.text),
        }
        text
    }
}

fn say(text: &mut String, request: &Prepared) {
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
