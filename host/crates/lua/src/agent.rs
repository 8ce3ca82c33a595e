//! `agent = function(session)`: sequential code, one coroutine per live session and subagent.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use mlua::{Function, IntoLuaMulti, Lua, MultiValue, Table};
use veeksha_model::{FailureReason, KnownNodes, Nanos, NodeId, Response, SessionId, check_session};
use veeksha_ports::{AgentSource, AgentStep, PluginFailure, ToolRunEnd, ToolRunKeys, resolve_tool_results};

use crate::agent_turn::{AgentTurn, Ended};
use crate::fault::LuaFault;
use crate::response;
use crate::vm::Vm;

/// State of a live session.
struct LiveAgent {
    session: SessionId,
    turn: AgentTurn,
    known: KnownNodes,
    keys: ToolRunKeys,
}

/// An agent function in a separate virtual machine, with all its live sessions.
pub(crate) struct Agents {
    vm: Vm,
    function: Function,
    plugin: String,
    length: Option<u64>,
    live: HashMap<SessionId, LiveAgent>,
    /// Sessions whose agent has ended, until they are over.
    ended: HashSet<SessionId>,
    proven: bool,
}

impl Agents {
    pub(crate) fn new(vm: Vm, function: Function, plugin: String, length: Option<u64>) -> Self {
        Agents {
            vm,
            function,
            plugin,
            length,
            live: HashMap::new(),
            ended: HashSet::new(),
            proven: false,
        }
    }

    /// Begins a session and runs its first step. The session is kept only if it waits for
    /// something.
    fn begin(&self, session: SessionId) -> Result<(Option<LiveAgent>, AgentStep), LuaFault> {
        let host = &self.vm.host;
        let turn = self
            .vm
            .call(|lua| AgentTurn::new(lua, host, session, &self.function))?;
        let live = LiveAgent {
            session,
            turn,
            known: KnownNodes::new(),
            keys: ToolRunKeys::default(),
        };
        self.step(live)
    }

    /// Runs the coroutines until all of them wait or have ended.
    fn step(&self, live: LiveAgent) -> Result<(Option<LiveAgent>, AgentStep), LuaFault> {
        let LiveAgent {
            session,
            turn,
            mut known,
            mut keys,
        } = live;
        *self.vm.turn.borrow_mut() = Some(turn);
        let ran = self.vm.call(|lua| self.run_ready(lua));
        let turn = self.vm.turn.borrow_mut().take();
        let yielded_itself = !ran?;
        let Some(mut turn) = turn else {
            return Err(LuaFault::shape("the host has lost the state of the session"));
        };
        if yielded_itself {
            return Err(self.wrong(
                "the agent called coroutine.yield itself; session:request, session:tool, session:parallel, \
                 session:race and join wait for answers",
            ));
        }
        if turn.coroutines.is_stuck() {
            return Err(
                self.wrong("subagents of the session wait for one another, so that none of them can end")
            );
        }
        let AgentStep {
            mut added,
            cancel,
            done,
        } = turn.take_step();
        if done && added.nodes().next().is_none() && known.is_empty() {
            return Err(self.wrong("the agent ended without a request; a session has at least one"));
        }
        keys.assign(&mut added);
        check_session(&added, &known)
            .map_err(|error| self.wrong(format!("the session cannot run: {error}")))?;
        resolve_tool_results(session, &mut added, |run| known.get(&run)?.result());
        known.extend(added.kinds());
        let step = AgentStep { added, cancel, done };
        let live = LiveAgent {
            session,
            turn,
            known,
            keys,
        };
        Ok(((!done).then_some(live), step))
    }

    /// Runs the coroutines that are ready. Returns false if one of them yielded without a wait.
    ///
    /// The error of a subagent is raised where it is joined. One that no coroutine has received is
    /// the session's when all have ended.
    fn run_ready(&self, lua: &Lua) -> mlua::Result<bool> {
        let running = &self.vm.turn;
        let lost = || mlua::Error::runtime("the host has lost the state of the session");
        loop {
            // The functions that a coroutine calls borrow the turn.
            let next = running.borrow_mut().as_mut().ok_or_else(lost)?.next(lua)?;
            let Some((thread, arguments)) = next else {
                break;
            };
            let result = thread.resume::<MultiValue>(arguments);
            if let Err(error) = &result
                && self.vm.is_out_of_memory(error)
            {
                result?;
                break;
            }
            if !running.borrow_mut().as_mut().ok_or_else(lost)?.ran(result)? {
                return Ok(false);
            }
        }
        let turn = running.borrow();
        let coroutines = &turn.as_ref().ok_or_else(lost)?.coroutines;
        if coroutines.is_over() {
            for ended in coroutines.unreceived() {
                if let Ended::Raised(error) = &**ended {
                    return Err(error.clone());
                }
            }
        }
        Ok(true)
    }

    fn wrong(&self, message: impl Into<String>) -> LuaFault {
        LuaFault::at(&self.function, message)
    }

    /// Begins the session a second time and drops it. Detects agents that keep state across
    /// sessions.
    fn prove(&self, session: SessionId, first: &AgentStep) -> Result<(), LuaFault> {
        let was_quiet = self.vm.host.log.quiet.replace(true);
        let second = self.begin(session);
        self.vm.host.log.quiet.set(was_quiet);
        if second?.1 == *first {
            return Ok(());
        }
        Err(LuaFault::at(
            &self.function,
            "the session began differently when it was begun again: the agent must depend on session.index, session.rng \
             and the answers alone, so it must not change locals or tables outside itself",
        ))
    }

    fn failure(&self, fault: LuaFault, session: SessionId, what: &str) -> PluginFailure {
        self.vm.quote(fault).into_failure(
            &self.plugin,
            "agent",
            Some(format!("session = {session}, {what}")),
        )
    }

    /// Passes an answer to the coroutine that waits for it, and runs those that it makes ready.
    fn receive(
        &mut self,
        session: SessionId,
        node: NodeId,
        table: impl FnOnce(&Lua) -> mlua::Result<Table>,
    ) -> Result<AgentStep, PluginFailure> {
        // The end of a node may have been on its way when the agent ended.
        if self.ended.contains(&session) {
            return Ok(AgentStep {
                done: true,
                ..AgentStep::default()
            });
        }
        let Some(mut live) = self.live.remove(&session) else {
            let fault = LuaFault::shape("no such session is live");
            return Err(self.failure(fault, session, &format!("node = {node}")));
        };
        let answer = self
            .vm
            .call(|lua| Ok(Ended::Values(table(lua)?.into_lua_multi(lua)?)));
        let answer = match answer {
            Ok(answer) => Rc::new(answer),
            Err(fault) => return Err(self.failure(fault, session, &format!("after node = {node}"))),
        };
        if live.turn.coroutines.answer(node.0, answer).is_err() {
            self.live.insert(session, live);
            let fault = LuaFault::shape("the session does not wait for this node");
            return Err(self.failure(fault, session, &format!("node = {node}")));
        }
        let stepped = self.step(live);
        match stepped {
            Ok((Some(live), step)) => {
                self.live.insert(session, live);
                Ok(step)
            }
            Ok((None, step)) => {
                self.ended.insert(session);
                Ok(step)
            }
            Err(fault) => Err(self.failure(fault, session, &format!("after node = {node}"))),
        }
    }
}

impl AgentSource for Agents {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        Ok(self.length)
    }

    fn start(&mut self, session: SessionId) -> Result<AgentStep, PluginFailure> {
        let begun = self.begin(session).and_then(|(live, step)| {
            if !self.proven {
                self.prove(session, &step)?;
            }
            Ok((live, step))
        });
        match begun {
            Ok((live, step)) => {
                self.proven = true;
                match live {
                    Some(live) => {
                        self.live.insert(session, live);
                    }
                    None => {
                        self.ended.insert(session);
                    }
                }
                Ok(step)
            }
            Err(fault) => Err(self.failure(fault, session, "start")),
        }
    }

    fn answered(
        &mut self,
        session: SessionId,
        node: NodeId,
        response: &Response,
        completed_at: Nanos,
    ) -> Result<AgentStep, PluginFailure> {
        self.receive(session, node, |lua| {
            response::answered(lua, node, response, completed_at)
        })
    }

    fn failed(&mut self, session: SessionId, reason: &FailureReason) -> Result<AgentStep, PluginFailure> {
        self.receive(session, reason.request.node, |lua| response::failed(lua, reason))
    }

    fn tool_ended(&mut self, session: SessionId, end: ToolRunEnd<'_>) -> Result<AgentStep, PluginFailure> {
        let node = end.node();
        if let Some(live) = self.live.get_mut(&session) {
            let kind = live.known.get_mut(&node);
            kind.into_iter()
                .for_each(|kind| kind.end_tool_run(end.result_tokens()));
        }
        self.receive(session, node, |lua| response::tool_result(lua, end))
    }

    fn finish(&mut self, session: SessionId) {
        self.live.remove(&session);
        self.ended.remove(&session);
    }
}
