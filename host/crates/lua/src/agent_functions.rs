//! The functions of a session object: `request`, `tool`, `parallel`, `race`, `join`, `spawn`,
//! `sleep`, `header`, `label`.

use mlua::{Lua, Table, Thread, Value, Variadic};
use veeksha_coroutines::Mode;

use crate::agent_turn::{AgentTurn, PendingWait, Returned, RunningTurn, SessionProperty};
use crate::duration;
use crate::shape::{At, ShapeError};

/// What the arguments of a call that waits describe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaits {
    Request,
    ToolRun,
    /// The subagent that the method is called with.
    Subagent,
    /// Any number of all of them.
    Several,
}

/// A call that waits.
#[derive(Clone, Copy)]
struct WaitCall {
    name: &'static str,
    awaits: Awaits,
    mode: Mode,
    returned: Returned,
}

const REQUEST: WaitCall = WaitCall {
    name: "session:request",
    awaits: Awaits::Request,
    mode: Mode::All,
    returned: Returned::AllValues,
};
const TOOL: WaitCall = WaitCall {
    name: "session:tool",
    awaits: Awaits::ToolRun,
    ..REQUEST
};
const PARALLEL: WaitCall = WaitCall {
    name: "session:parallel",
    awaits: Awaits::Several,
    returned: Returned::FirstValues,
    ..REQUEST
};
const RACE: WaitCall = WaitCall {
    name: "session:race",
    mode: Mode::First,
    ..PARALLEL
};
const JOIN: WaitCall = WaitCall {
    name: "join",
    awaits: Awaits::Subagent,
    ..REQUEST
};

/// Returns the functions by the names that the prelude uses.
pub(crate) fn functions(lua: &Lua, running: &RunningTurn) -> mlua::Result<Table> {
    let waits = |call: WaitCall| {
        let running = running.clone();
        lua.create_function(
            move |_, (thread, this, targets): (Thread, Value, Variadic<Value>)| {
                with_turn(&running, call.name, &thread, |turn| {
                    wait(turn, call, &this, &targets)
                })
            },
        )
    };
    let shared = running.clone();
    let spawn = lua.create_function(move |lua, (thread, this, run): (Thread, Value, Value)| {
        with_turn(&shared, "session:spawn", &thread, |turn| {
            let at = At::Root("session:spawn");
            turn.check_object(&at, &this)?;
            let Value::Function(run) = &run else {
                return Err(at.expected("a function", &run).into());
            };
            turn.spawn(lua, &at, run)
        })
    })?;
    let shared = running.clone();
    let sleep = lua.create_function(move |_, (thread, this, time): (Thread, Value, Value)| {
        with_turn(&shared, "session:sleep", &thread, |turn| {
            let at = At::Root("session:sleep");
            turn.check_object(&at, &this)?;
            let time = duration::nanos(&at, &time)?;
            turn.sleep(time);
            Ok(())
        })
    })?;
    let describes = |name: &'static str, what: SessionProperty| {
        let running = running.clone();
        lua.create_function(
            move |_, (thread, this, key, value): (Thread, Value, Value, Value)| {
                with_turn(&running, name, &thread, |turn| {
                    let at = At::Root(name);
                    turn.check_object(&at, &this)?;
                    Ok(turn.describe_session(&at, what, (&key, &value))?)
                })
            },
        )
    };
    let functions = lua.create_table()?;
    functions.raw_set("request", waits(REQUEST)?)?;
    functions.raw_set("tool", waits(TOOL)?)?;
    functions.raw_set("parallel", waits(PARALLEL)?)?;
    functions.raw_set("race", waits(RACE)?)?;
    functions.raw_set("join", waits(JOIN)?)?;
    functions.raw_set("spawn", spawn)?;
    functions.raw_set("sleep", sleep)?;
    functions.raw_set("header", describes("session:header", SessionProperty::Header)?)?;
    functions.raw_set("label", describes("session:label", SessionProperty::Label)?)?;
    Ok(functions)
}

/// Reads what a coroutine waits for. The wait begins when the coroutine yields: a refused call has
/// no effect, so that the agent may catch the error and continue.
fn wait(turn: &mut AgentTurn, call: WaitCall, this: &Value, targets: &[Value]) -> mlua::Result<()> {
    let at = At::Root(call.name);
    if call.awaits != Awaits::Subagent {
        turn.check_object(&at, this)?;
    }
    // A missing argument is reported as nil.
    let argument = |index: usize| targets.get(index).unwrap_or(&Value::Nil);
    let targets = match call.awaits {
        Awaits::Request => vec![turn.request(&at, argument(0))?],
        Awaits::ToolRun => vec![turn.tool_call(&at, argument(0), argument(1))?],
        Awaits::Subagent => vec![turn.subagent(&at, argument(0))?],
        Awaits::Several if targets.is_empty() => {
            return Err(at
                .shape("expected at least one request, tool run, sleep or subagent")
                .into());
        }
        Awaits::Several => targets
            .iter()
            .enumerate()
            .map(|(index, target)| turn.target(&At::Index(&at, index + 1), target))
            .collect::<Result<_, ShapeError>>()?,
    };
    turn.check_number(&at, &targets)?;
    turn.pending = Some(PendingWait {
        mode: call.mode,
        returned: call.returned,
        targets,
    });
    Ok(())
}

fn with_turn<R>(
    running: &RunningTurn,
    call: &str,
    thread: &Thread,
    act: impl FnOnce(&mut AgentTurn) -> mlua::Result<R>,
) -> mlua::Result<R> {
    let at = At::Root(call);
    let mut turn = running.borrow_mut();
    let Some(turn) = turn.as_mut() else {
        return Err(at.shape("there is no agent running").into());
    };
    if !turn.is_running(thread) {
        return Err(at
            .shape("call it from the agent's function itself, not from a coroutine made in it")
            .into());
    }
    act(turn)
}
