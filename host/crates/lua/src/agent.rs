//! `agent = function(session)`: sequential code, one coroutine per live session.

use std::collections::HashMap;

use mlua::thread::ThreadStatus;
use mlua::{Function, MultiValue, Table, Thread};
use veeksha_model::{FailureReason, KnownNodes, Nanos, NodeId, Response, Session, SessionId, check_session};
use veeksha_ports::{AgentSource, AgentStep, PluginFailure};

use crate::agent_turn::AgentTurn;
use crate::fault::LuaFault;
use crate::response;
use crate::rng::Rng;
use crate::vm::Vm;

/// The wait state of a coroutine.
struct WaitingAgent {
    /// Awaited nodes, in request order.
    nodes: Vec<NodeId>,
    results: HashMap<NodeId, Table>,
}

/// State of a live session.
struct LiveAgent {
    thread: Thread,
    turn: AgentTurn,
    known: KnownNodes,
    waiting: WaitingAgent,
    /// Synthetic segments created so far.
    made: u64,
}

/// An agent function in a separate virtual machine, with all its live sessions.
pub(crate) struct Agents {
    vm: Vm,
    function: Function,
    plugin: String,
    length: Option<u64>,
    live: HashMap<SessionId, LiveAgent>,
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
            proven: false,
        }
    }

    /// Begins a session and runs its first step. The session is kept only if it waits for
    /// something.
    fn begin(&self, session: SessionId) -> Result<(Option<LiveAgent>, AgentStep), LuaFault> {
        let seed = self.vm.host.seed;
        let (thread, object) = self.vm.call(|lua| {
            let object = lua.create_table_with_capacity(0, 2)?;
            object.raw_set("index", session.0 as f64)?;
            object.raw_set("rng", lua.create_userdata(Rng::new(seed, session.0))?)?;
            object.set_metatable(Some(self.vm.session_methods.clone()))?;
            object.set_readonly(true);
            Ok((lua.create_thread(self.function.clone())?, object))
        })?;
        let turn = AgentTurn {
            thread: thread.clone(),
            object: object.clone(),
            next_node: 1,
            awaited: Vec::new(),
            pause: 0,
            issued: Vec::new(),
        };
        let waiting = WaitingAgent {
            nodes: Vec::new(),
            results: HashMap::new(),
        };
        let live = LiveAgent {
            thread,
            turn,
            known: KnownNodes::new(),
            waiting,
            made: 0,
        };
        self.resume(session, live, (object,))
    }

    /// Runs the coroutine until it waits or ends.
    fn resume(
        &self,
        session: SessionId,
        live: LiveAgent,
        arguments: impl mlua::IntoLuaMulti,
    ) -> Result<(Option<LiveAgent>, AgentStep), LuaFault> {
        let LiveAgent {
            thread,
            turn,
            mut known,
            mut waiting,
            made,
        } = live;
        let host = &self.vm.host;
        host.enter(session.0, made);
        *host.turn.borrow_mut() = Some(turn);
        let result = self.vm.call(|_| thread.resume::<MultiValue>(arguments));
        let turn = host.turn.borrow_mut().take();
        let made = host.made.get();
        result?;
        let Some(mut turn) = turn else {
            return Err(LuaFault::shape("the session lost its turn"));
        };
        let added = Session::from(std::mem::take(&mut turn.issued));
        let ended = thread.status() != ThreadStatus::Resumable;
        self.check(ended, &added, &known)?;
        if ended {
            // Requests of a call whose error was caught are not sent: their answers would have no
            // receiver.
            return Ok((
                None,
                AgentStep {
                    done: true,
                    ..AgentStep::default()
                },
            ));
        }
        waiting.nodes = added.nodes().collect();
        known.extend(added.kinds());
        let live = LiveAgent {
            thread,
            turn,
            known,
            waiting,
            made,
        };
        Ok((
            Some(live),
            AgentStep {
                added,
                ..AgentStep::default()
            },
        ))
    }

    fn check(&self, ended: bool, added: &Session, known: &KnownNodes) -> Result<(), LuaFault> {
        let wrong = |message: String| Err(LuaFault::at(&self.function, message));
        if ended && known.is_empty() {
            return wrong("the agent ended without a request; a session has at least one".to_owned());
        }
        if !ended && added.requests.is_empty() {
            return wrong(
                "the agent called coroutine.yield itself; session:request and session:parallel wait for answers".to_owned(),
            );
        }
        match check_session(added, known) {
            Err(error) => wrong(format!("the session cannot run: {error}")),
            Ok(()) => Ok(()),
        }
    }

    /// Begins the session a second time and drops it. Detects agents that keep state across
    /// sessions.
    fn prove(&self, session: SessionId, first: &AgentStep) -> Result<(), LuaFault> {
        self.vm.host.quiet.set(true);
        let second = self.begin(session);
        self.vm.host.quiet.set(false);
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

    /// Records a result; resumes the coroutine once it has all results that it waits for.
    fn receive(
        &mut self,
        session: SessionId,
        node: NodeId,
        table: impl FnOnce(&mlua::Lua) -> mlua::Result<Table>,
    ) -> Result<AgentStep, PluginFailure> {
        let Some(mut live) = self.live.remove(&session) else {
            let fault = LuaFault::shape("no such session is live");
            return Err(self.failure(fault, session, &format!("node = {node}")));
        };
        let waited = live.waiting.nodes.contains(&node) && !live.waiting.results.contains_key(&node);
        if !waited {
            self.live.insert(session, live);
            let fault = LuaFault::shape("the session does not wait for this node");
            return Err(self.failure(fault, session, &format!("node = {node}")));
        }
        let stepped = self.vm.call(table).and_then(|table| {
            live.waiting.results.insert(node, table);
            if live.waiting.results.len() < live.waiting.nodes.len() {
                return Ok((Some(live), AgentStep::default()));
            }
            live.turn.awaited = std::mem::take(&mut live.waiting.nodes);
            let mut results = std::mem::take(&mut live.waiting.results);
            let results: Vec<_> = live
                .turn
                .awaited
                .iter()
                .filter_map(|node| results.remove(node))
                .collect();
            self.resume(session, live, mlua::Variadic::from_iter(results))
        });
        match stepped {
            Ok((Some(live), step)) => {
                self.live.insert(session, live);
                Ok(step)
            }
            Ok((None, step)) => Ok(step),
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
                if let Some(live) = live {
                    self.live.insert(session, live);
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
        _completed_at: Nanos,
    ) -> Result<AgentStep, PluginFailure> {
        self.receive(session, node, |lua| response::answered(lua, node, response))
    }

    fn failed(&mut self, session: SessionId, reason: &FailureReason) -> Result<AgentStep, PluginFailure> {
        self.receive(session, reason.request.node, |lua| response::failed(lua, reason))
    }

    fn finish(&mut self, session: SessionId) {
        self.live.remove(&session);
    }
}
