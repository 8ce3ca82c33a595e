//! The functions of a session object: `request`, `parallel`, `sleep`.

use std::rc::Rc;

use mlua::{Function, Lua, Thread, Value, Variadic};

use crate::agent_turn::AgentTurn;
use crate::budget::Budget;
use crate::duration;
use crate::host::LuaHost;
use crate::shape::{At, ShapeError};

/// Returns `issue`, `issue_all` and `sleep`, in the order that the prelude expects.
pub(crate) fn functions(lua: &Lua, host: &Rc<LuaHost>) -> mlua::Result<(Function, Function, Function)> {
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
    host: &LuaHost,
    call: &str,
    thread: &Thread,
    this: &Value,
    act: impl FnOnce(&mut AgentTurn) -> Result<(), ShapeError>,
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
