//! An agent's turn: the requests of its coroutine between two resumptions.

use std::rc::Rc;

use mlua::{Function, Lua, Table, Thread, Value, Variadic};
use veeksha_model::{Nanos, NodeId, Recorded, Request};

use crate::budget::Budget;
use crate::duration;
use crate::host::Host;
use crate::recorded;
use crate::request::{Draft, MAX_REQUESTS};
use crate::shape::{At, Shape};

/// State of the running session that its functions change. It is stored with the session between
/// turns.
pub(crate) struct Turn {
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

impl Turn {
    fn add(&mut self, at: &At<'_>, request: &Value, budget: &Budget) -> Result<(), Shape> {
        let mut draft = Draft::read(at, request, budget)?;
        if draft.node.is_some() {
            return Err(At::Key(at, "node").shape("the host numbers the requests of an agent; leave it out"));
        }
        let facts = draft.replay.as_deref();
        if facts.is_some_and(|facts| facts.answer.is_some() || facts.recorded != Recorded::default()) {
            let fields = &recorded::FIELDS[1..];
            return Err(at.shape(format!(
                "an agent's requests were never recorded: {} are for sessions; of what a trace says, an agent has \
                 `history_mode`",
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

/// Returns `issue`, `issue_all` and `sleep`, in the order that the prelude expects.
pub(crate) fn functions(lua: &Lua, host: &Rc<Host>) -> mlua::Result<(Function, Function, Function)> {
    let shared = host.clone();
    let issue = lua.create_function(move |_, (thread, this, request): (Thread, Value, Value)| {
        with_turn(&shared, "session:request", &thread, &this, |turn| {
            turn.add(&At::Root("session:request"), &request, &Budget::new())?;
            turn.pause = 0;
            Ok(())
        })
    })?;
    let shared = host.clone();
    let issue_all = lua.create_function(
        move |_, (thread, this, requests): (Thread, Value, Variadic<Value>)| {
            let at = At::Root("session:parallel");
            with_turn(&shared, "session:parallel", &thread, &this, |turn| {
                if requests.is_empty() {
                    return Err(at.shape("expected at least one request"));
                }
                let budget = Budget::new();
                for (index, request) in requests.iter().enumerate() {
                    turn.add(&At::Index(&at, index + 1), request, &budget)?;
                }
                turn.pause = 0;
                Ok(())
            })
        },
    )?;
    let shared = host.clone();
    let sleep = lua.create_function(move |_, (thread, this, time): (Thread, Value, Value)| {
        with_turn(&shared, "session:sleep", &thread, &this, |turn| {
            turn.pause = turn
                .pause
                .saturating_add(duration::nanos(&At::Root("session:sleep"), &time)?);
            Ok(())
        })
    })?;
    Ok((issue, issue_all, sleep))
}

fn with_turn(
    host: &Host,
    call: &str,
    thread: &Thread,
    this: &Value,
    act: impl FnOnce(&mut Turn) -> Result<(), Shape>,
) -> mlua::Result<()> {
    let at = At::Root(call);
    let mut turn = host.turn.borrow_mut();
    let Some(turn) = turn.as_mut() else {
        return Err(at.shape("there is no agent running").into());
    };
    match this {
        Value::Table(table) if *table == turn.object => {}
        Value::Table(table) if table.metatable().is_some() => {
            return Err(at.shape("this is the object of another session").into());
        }
        _ => return Err(at.shape(format!("call it with a colon: {call}(...)")).into()),
    }
    if *thread != turn.thread {
        return Err(at
            .shape("call it from the agent's function itself, not from a coroutine made in it")
            .into());
    }
    let before = (turn.next_node, turn.issued.len());
    act(turn).map_err(|shape| {
        // A refused call has no effect: the agent may catch the error and continue.
        turn.next_node = before.0;
        turn.issued.truncate(before.1);
        shape.into()
    })
}
