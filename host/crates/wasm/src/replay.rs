//! What a live agent was told, so that it can be rebuilt in a fresh store after another agent's trap.
//!
//! An agent is a pure function of its configuration, its session and the answers it was given; giving it the same
//! answers again brings it to the same state.

use crate::bindings::types::{Failure, Response};

/// Something that an agent was told.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Answered(Response),
    Failed(Failure),
}

impl Event {
    /// The bytes that keeping it costs, near enough.
    pub(crate) fn bytes(&self) -> usize {
        let texts = match self {
            Event::Answered(response) => {
                let calls = response.tool_calls.iter();
                let calls = calls.map(|call| call.id.len() + call.name.len() + call.arguments.len() + 72);
                response.text.len()
                    + response.reasoning.len()
                    + response.finish_reason.len()
                    + calls.sum::<usize>()
            }
            Event::Failed(failure) => failure.code.len() + failure.message.len(),
        };
        texts + size_of::<Event>()
    }

    /// The function of the contract that tells it.
    pub(crate) fn function(&self) -> &'static str {
        match self {
            Event::Answered(_) => "agent.answered",
            Event::Failed(_) => "agent.failed",
        }
    }

    /// The node that it is about.
    pub(crate) fn node(&self) -> u32 {
        match self {
            Event::Answered(response) => response.node,
            Event::Failed(failure) => failure.node,
        }
    }

    /// An excerpt for a report.
    pub(crate) fn excerpt(&self) -> String {
        const TEXT: usize = 200;
        match self {
            Event::Answered(response) => {
                format!("response = \"{}\"", crate::text::one_line(&response.text, TEXT))
            }
            Event::Failed(failure) => {
                format!(
                    "failure = {} \"{}\"",
                    failure.code,
                    crate::text::one_line(&failure.message, TEXT)
                )
            }
        }
    }
}

/// An agent's past.
#[derive(Debug)]
pub(crate) enum Past {
    /// All of it.
    Kept { events: Vec<Event>, bytes: usize },
    /// It became too large to keep.
    Forgotten,
}

impl Past {
    pub(crate) fn new() -> Self {
        Past::Kept {
            events: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds an event, within `budget` bytes that all agents share; gives up on this agent's past beyond that.
    pub(crate) fn push(&mut self, event: Event, budget: &mut usize) {
        let cost = event.bytes();
        match self {
            Past::Kept { events, bytes } if cost <= *budget => {
                *budget -= cost;
                *bytes += cost;
                events.push(event);
            }
            Past::Kept { .. } => {
                self.forget(budget);
            }
            Past::Forgotten => {}
        }
    }

    /// Lets the past go and gives its bytes back.
    pub(crate) fn forget(&mut self, budget: &mut usize) {
        if let Past::Kept { bytes, .. } = std::mem::replace(self, Past::Forgotten) {
            *budget += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(length: usize) -> Event {
        Event::Failed(Failure {
            node: 0,
            code: "x".repeat(length),
            message: String::new(),
            completed_at: 0,
        })
    }

    #[test]
    fn a_past_that_is_too_large_is_given_up_and_paid_back() {
        let mut budget = 2 * (100 + size_of::<Event>());
        let whole = budget;
        let (mut one, mut other) = (Past::new(), Past::new());
        one.push(event(100), &mut budget);
        other.push(event(100), &mut budget);
        assert_eq!(budget, 0);
        other.push(event(100), &mut budget);
        assert!(matches!(other, Past::Forgotten));
        one.push(event(100), &mut budget);
        assert!(matches!(&one, Past::Kept { events, .. } if events.len() == 2));
        one.forget(&mut budget);
        assert_eq!(budget, whole);
    }
}
