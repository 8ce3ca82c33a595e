//! The inputs of a live agent, so that it can be rebuilt in a new store after another agent's trap.
//!
//! An agent is a pure function of its configuration, its session and the answers it received: the
//! same answers bring it to the same state.

use crate::bindings::types::{Failure, Response, ToolResult};

/// An answer, the part of a cancelled one, or a failure that an agent received.
#[derive(Clone, Debug)]
pub(crate) enum AgentInput {
    Answered(Response),
    Cancelled(Response),
    Failed(Failure),
    ToolEnded(ToolResult),
}

impl AgentInput {
    /// Returns the approximate memory that it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let texts = match self {
            AgentInput::Answered(response) | AgentInput::Cancelled(response) => {
                let calls = response.tool_calls.iter();
                let calls = calls.map(|call| call.id.len() + call.name.len() + call.arguments.len() + 72);
                response.text.len()
                    + response.reasoning.len()
                    + response.reasoning_signature.as_ref().map_or(0, String::len)
                    + response.finish_reason.len()
                    + calls.sum::<usize>()
                    + response.log_probabilities.as_ref().map_or(0, |tokens| {
                        9 * (tokens.prompt.logarithms.len() + tokens.answer.logarithms.len())
                    })
            }
            AgentInput::Failed(failure) => failure.code.len() + failure.message.len(),
            AgentInput::ToolEnded(_) => 0,
        };
        texts + size_of::<AgentInput>()
    }

    /// Returns the function of the contract that passes it.
    pub(crate) fn function(&self) -> &'static str {
        match self {
            AgentInput::Answered(_) => "agent.answered",
            AgentInput::Cancelled(_) => "agent.cancelled",
            AgentInput::Failed(_) => "agent.failed",
            AgentInput::ToolEnded(_) => "agent.tool-ended",
        }
    }

    /// Returns the node that was answered, cancelled or failed.
    pub(crate) fn node(&self) -> u32 {
        match self {
            AgentInput::Answered(response) | AgentInput::Cancelled(response) => response.node,
            AgentInput::Failed(failure) => failure.node,
            AgentInput::ToolEnded(ended) => ended.node,
        }
    }

    /// Returns an excerpt for a report.
    pub(crate) fn excerpt(&self) -> String {
        const TEXT: usize = 200;
        match self {
            AgentInput::Answered(response) | AgentInput::Cancelled(response) => {
                format!("response = \"{}\"", crate::text::one_line(&response.text, TEXT))
            }
            AgentInput::Failed(failure) => {
                format!(
                    "failure = {} \"{}\"",
                    failure.code,
                    crate::text::one_line(&failure.message, TEXT)
                )
            }
            AgentInput::ToolEnded(ended) => {
                format!("outcome = {:?}, tokens = {}", ended.outcome, ended.tokens)
            }
        }
    }
}

/// The stored inputs of an agent.
#[derive(Debug)]
pub(crate) enum AgentHistory {
    /// All inputs, and their size in bytes.
    Kept { events: Vec<AgentInput>, bytes: usize },
    /// The inputs became too large to keep.
    Forgotten,
}

impl AgentHistory {
    pub(crate) fn new() -> Self {
        AgentHistory::Kept {
            events: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds an input within `budget` bytes that all agents share. Beyond that, this agent's inputs
    /// are dropped.
    pub(crate) fn push(&mut self, event: AgentInput, budget: &mut usize) {
        let cost = event.bytes();
        match self {
            AgentHistory::Kept { events, bytes } if cost <= *budget => {
                *budget -= cost;
                *bytes += cost;
                events.push(event);
            }
            AgentHistory::Kept { .. } => {
                self.forget(budget);
            }
            AgentHistory::Forgotten => {}
        }
    }

    /// Drops the inputs and returns their bytes to the budget.
    pub(crate) fn forget(&mut self, budget: &mut usize) {
        if let AgentHistory::Kept { bytes, .. } = std::mem::replace(self, AgentHistory::Forgotten) {
            *budget += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(length: usize) -> AgentInput {
        AgentInput::Failed(Failure {
            node: 0,
            status: None,
            retry_after: None,
            code: "x".repeat(length),
            message: String::new(),
            completed_at: 0,
        })
    }

    #[test]
    fn drops_history_beyond_budget_and_returns_its_bytes() {
        let mut budget = 2 * (100 + size_of::<AgentInput>());
        let whole = budget;
        let (mut one, mut other) = (AgentHistory::new(), AgentHistory::new());
        one.push(event(100), &mut budget);
        other.push(event(100), &mut budget);
        assert_eq!(budget, 0);
        other.push(event(100), &mut budget);
        assert!(matches!(other, AgentHistory::Forgotten));
        one.push(event(100), &mut budget);
        assert!(matches!(&one, AgentHistory::Kept { events, .. } if events.len() == 2));
        one.forget(&mut budget);
        assert_eq!(budget, whole);
    }
}
