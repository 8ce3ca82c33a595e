//! An agent's turn: the requests of its coroutine between two resumptions.

use mlua::{Table, Thread, Value};
use veeksha_model::{Nanos, NodeId, Recorded, Request};

use crate::budget::Budget;
use crate::recorded;
use crate::request::{MAX_REQUESTS, RequestDraft};
use crate::shape::{At, ShapeError};

/// State of the running session that its functions change. It is stored with the session between
/// turns.
pub(crate) struct AgentTurn {
    /// The coroutine. Requests are valid only inside it.
    pub(crate) thread: Thread,
    /// The object that the agent received.
    pub(crate) object: Table,
    /// The number of the next node.
    pub(crate) next_node: u32,
    /// The nodes whose answers the agent awaited last: later requests depend on them.
    pub(crate) awaited: Vec<NodeId>,
    /// Think time that `sleep` has added to the next request.
    pub(crate) pause: Nanos,
    /// The requests of this turn.
    pub(crate) issued: Vec<Request>,
}

impl AgentTurn {
    /// Adds a request to the turn.
    pub(crate) fn add(&mut self, at: &At<'_>, request: &Value, budget: &Budget) -> Result<(), ShapeError> {
        let mut draft = RequestDraft::read(at, request, budget)?;
        if draft.node.is_some() {
            return Err(At::Key(at, "node").shape("the host numbers the requests of an agent; leave it out"));
        }
        let facts = draft.replay.as_deref();
        if facts.is_some_and(|facts| facts.answer.is_some() || facts.recorded != Recorded::default()) {
            let fields = &recorded::FIELDS[1..];
            return Err(at.shape(format!(
                "an agent's requests were never recorded: {} are for sessions; an agent has only `history_mode`",
                fields.join(", ")
            )));
        }
        if self.next_node as usize > MAX_REQUESTS {
            return Err(at.shape(format!("a session may have {MAX_REQUESTS} requests")));
        }
        draft.wait = draft.wait.saturating_add(self.pause);
        let node = NodeId(self.next_node);
        self.next_node += 1;
        self.issued.push(draft.finish(node, &self.awaited));
        Ok(())
    }
}
