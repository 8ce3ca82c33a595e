//! Sessions, requests and messages, written down shortly.

use std::time::Duration;

use crate::types::{
    Guarantees, HistoryMode, Message, Output, Recording, Request, Role, Seed, Segment, Session, SyntheticText,
};

impl From<u64> for Seed {
    fn from(value: u64) -> Self {
        Seed {
            high: (value >> 32) as u32,
            low: value as u32,
        }
    }
}

/// A piece of text, sent verbatim.
pub fn text(text: impl Into<String>) -> Segment {
    Segment::Text(text.into())
}

/// A piece of text that the host makes: exactly `tokens` tokens that depend on the seed, the length
/// and the target's tokenizer alone. Texts of one seed share their beginning.
pub fn synthetic(seed: impl Into<Seed>, tokens: u32) -> Segment {
    Segment::Synthetic(SyntheticText {
        seed: seed.into(),
        tokens,
    })
}

impl From<&str> for Segment {
    fn from(value: &str) -> Self {
        text(value)
    }
}

impl From<String> for Segment {
    fn from(value: String) -> Self {
        text(value)
    }
}

impl Message {
    /// A message of one role; its segments are joined without separators.
    pub fn new(role: Role, content: Vec<Segment>) -> Self {
        Message {
            role,
            content,
            tool_call_id: None,
        }
    }
}

impl Request {
    /// A root of the session: no parents, no messages yet, no wish about the length of the answer.
    pub fn new(node: u32) -> Self {
        Request {
            node,
            parents: Vec::new(),
            history_parent: None,
            wait_after_ready: 0,
            messages: Vec::new(),
            output: Output {
                target_tokens: None,
                exact: false,
            },
            body: None,
            labels: Vec::new(),
            recording: None,
        }
    }

    /// Replays a recording.
    pub fn recording(mut self, recording: Recording) -> Self {
        self.recording = Some(recording);
        self
    }

    /// Waits for a node of the session. Naming one twice is the same as naming it once.
    pub fn after(mut self, parent: u32) -> Self {
        if !self.parents.contains(&parent) {
            self.parents.push(parent);
        }
        self
    }

    /// Continues the conversation of a node, and waits for it.
    pub fn history(self, parent: u32) -> Self {
        let mut request = self.after(parent);
        request.history_parent = Some(parent);
        request
    }

    /// Thinks for this long once every parent is complete (a root: once the session started).
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait_after_ready = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        self
    }

    /// Adds a message.
    pub fn message(mut self, message: Message) -> Self {
        self.messages.push(message);
        self
    }

    /// Adds a system message.
    pub fn system(self, content: impl Into<Segment>) -> Self {
        self.message(Message::new(Role::System, vec![content.into()]))
    }

    /// Adds a user message.
    pub fn user(self, content: impl Into<Segment>) -> Self {
        self.message(Message::new(Role::User, vec![content.into()]))
    }

    /// Adds the result of a tool call.
    pub fn tool(self, call_id: impl Into<String>, content: impl Into<Segment>) -> Self {
        let message = Message::new(Role::Tool, vec![content.into()]);
        self.message(Message {
            tool_call_id: Some(call_id.into()),
            ..message
        })
    }

    /// Asks for exactly this many tokens (the end-of-sequence token is ignored).
    pub fn output_exactly(mut self, tokens: u32) -> Self {
        self.output = Output {
            target_tokens: Some(tokens),
            exact: true,
        };
        self
    }

    /// Asks for at most this many tokens.
    pub fn output_at_most(mut self, tokens: u32) -> Self {
        self.output = Output {
            target_tokens: Some(tokens),
            exact: false,
        };
        self
    }

    /// Merges a JSON object into the request's body, over everything the host puts there.
    pub fn body(mut self, object: impl Into<String>) -> Self {
        self.body = Some(object.into());
        self
    }

    /// Adds a label to the request's record.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.push((name.into(), value.into()));
        self
    }
}

impl Default for Recording {
    /// A recording of which nothing is known; the request sends the model's real answers.
    fn default() -> Self {
        Recording {
            history: HistoryMode::Live,
            answer: None,
            at: None,
            latency: None,
            prompt_tokens: None,
            output_tokens: None,
        }
    }
}

impl Default for Guarantees {
    /// Guarantees nothing.
    fn default() -> Self {
        Guarantees {
            max_output_tokens: None,
            max_depth: None,
            distinct_prompts: false,
        }
    }
}

impl Session {
    /// A session of these requests.
    pub fn new(requests: impl Into<Vec<Request>>) -> Self {
        Session {
            requests: requests.into(),
            arrives_at: None,
            labels: Vec::new(),
        }
    }

    /// The recorded arrival, relative to the start of the run.
    pub fn arrives_at(mut self, instant: Duration) -> Self {
        self.arrives_at = Some(u64::try_from(instant.as_nanos()).unwrap_or(u64::MAX));
        self
    }

    /// Adds a label to the record of each of its requests.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.push((name.into(), value.into()));
        self
    }
}

impl From<Request> for Session {
    fn from(request: Request) -> Self {
        Session::new([request])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_parent_is_a_parent_once() {
        let request = Request::new(3).after(1).history(1).after(2).after(2);
        assert_eq!(request.parents, [1, 2]);
        assert_eq!(request.history_parent, Some(1));
    }

    #[test]
    fn a_wait_is_in_nanoseconds() {
        assert_eq!(
            Request::new(0).wait(Duration::from_millis(350)).wait_after_ready,
            350_000_000
        );
    }

    #[test]
    fn a_seed_keeps_its_64_bits() {
        assert_eq!(
            Seed::from(0x0123_4567_89ab_cdef),
            Seed {
                high: 0x0123_4567,
                low: 0x89ab_cdef
            }
        );
    }
}
