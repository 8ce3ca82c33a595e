//! An agent generator: many live agents, distributed over stores. A trap of one agent invalidates
//! the store that it shares, and no other.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use veeksha_model::{FailureReason, KnownNodes, Nanos, NodeId, Response, Session, SessionId};
use veeksha_ports::{
    AgentSource, AgentStep, Guarantees, PluginFailure, ToolRunEnd, ToolRunKeys, resolve_tool_results,
};
use wasmtime::component::ResourceAny;

use crate::agent_history::{AgentHistory, AgentInput};
use crate::agent_store::{AgentStore, START};
use crate::bindings::agent_generator::{Guest, Opening, Step};
use crate::bindings::types::Error;
use crate::bound::BoundPlugin;
use crate::resource::PinnedResource;
use crate::{convert, output_size, validate};

const GUARANTEES: &str = "generator.guarantees";
const LENGTH: &str = "generator.length";

/// The live agents of a component.
pub(crate) struct WasmAgents {
    bound: Arc<BoundPlugin>,
    /// The number of sessions; `None` for an endless workload.
    length: Option<u64>,
    stores: BTreeMap<u64, AgentStore>,
    next_store: u64,
    live: HashMap<SessionId, GuestAgent>,
    /// Bytes of inputs that may still be kept for rebuilding agents.
    budget: usize,
}

struct GuestAgent {
    store: u64,
    /// `None` after a trap in its store, until it is rebuilt.
    handle: Option<ResourceAny>,
    id: SessionId,
    /// The headers and labels of its session, without nodes.
    session: Session,
    /// Every node that it has requested.
    known: KnownNodes,
    keys: ToolRunKeys,
    history: AgentHistory,
    /// True if it adds no more nodes.
    done: bool,
    /// The answers and failures that it received.
    inputs: u64,
    /// The reason why it cannot continue.
    ended: Option<String>,
}

impl WasmAgents {
    /// Opens a generator, so that a bad configuration is refused before anything else happens.
    pub(crate) fn open(bound: Arc<BoundPlugin>) -> Result<Self, PluginFailure> {
        let mut generator = PinnedResource::<Guest>::new(&bound)?;
        let length = generator.call(
            LENGTH,
            || None,
            |store, guest, generator| guest.generator().call_length(store, generator),
        )?;
        let budget = bound.loaded.host.limits.replay_bytes;
        Ok(WasmAgents {
            bound,
            length,
            stores: BTreeMap::from([(0, AgentStore::of(generator))]),
            next_store: 1,
            live: HashMap::new(),
            budget,
        })
    }

    /// Returns the store for the next agent.
    fn store_with_capacity(&mut self) -> u64 {
        if let Some((&id, _)) = self
            .stores
            .iter()
            .rev()
            .find(|(_, store)| store.has_capacity(&self.bound))
        {
            return id;
        }
        let id = self.next_store;
        self.next_store += 1;
        self.stores.insert(id, AgentStore::default());
        id
    }

    /// Starts an agent in a store with capacity.
    fn start_once(&mut self, session: SessionId, input: &str) -> Result<AgentStep, PluginFailure> {
        let id = self.store_with_capacity();
        let store = self.stores.entry(id).or_default();
        store.started += 1;
        let step = match store.start(&self.bound, session.0, || Some(input.to_owned())) {
            Ok(started) => self.insert(session, id, started, input.to_owned()),
            Err(failure) => Err(failure),
        };
        if step.is_ok() {
            self.stores.entry(id).or_default().live += 1;
        }
        self.after_call(id);
        step
    }

    /// Invalidates the handles of a store whose last call trapped.
    fn after_call(&mut self, store: u64) {
        if self
            .stores
            .get_mut(&store)
            .is_some_and(AgentStore::drop_if_trapped)
        {
            for agent in self.live.values_mut().filter(|agent| agent.store == store) {
                agent.handle = None;
            }
        }
    }

    /// Passes an input to an agent and takes its next step.
    fn step(&mut self, session: SessionId, received: AgentInput) -> Result<AgentStep, PluginFailure> {
        // The end of a node may have been on its way when the agent declared that it is done.
        if self.live.get(&session).is_some_and(|agent| agent.done) {
            return Ok(AgentStep {
                done: true,
                ..AgentStep::default()
            });
        }
        let function = received.function();
        let input = format!(
            "session = {session}, node = {}, {}",
            received.node(),
            received.excerpt()
        );
        let mut answer = self.send(session, &received, &input);
        if answer
            .as_ref()
            .is_err_and(|failure| self.bound.restarts_after(failure))
        {
            answer = self.send(session, &received, &input);
        }
        let (Some(agent), bound) = (self.live.get_mut(&session), &self.bound) else {
            return Err(unknown(&self.bound, session, function, input));
        };
        if let (Err(failure), true) = (&answer, agent.ended.is_some()) {
            return Err(failure.clone());
        }
        agent.inputs += 1;
        agent.history.push(received, &mut self.budget);
        let step = match answer {
            Ok(Ok(step)) => agent
                .take(step)
                .inspect(|step| {
                    let bytes = output_size::of_session(&step.added);
                    bound.grants.meter.passed(bytes as u64);
                })
                .map_err(|why| bound.unusable(function, Some(input), why)),
            Ok(Err(error)) => Err(convert::refusal(&bound.loaded.name, function, Some(input), error)),
            Err(failure) => Err(failure),
        };
        if let Err(failure) = &step {
            bound.disable_after(failure);
            agent.end(&failure.message, &mut self.budget);
        }
        step
    }

    /// Passes an input to an agent, which is rebuilt if its store was lost.
    fn send(
        &mut self,
        session: SessionId,
        received: &AgentInput,
        input: &str,
    ) -> Result<Result<Step, Error>, PluginFailure> {
        let function = received.function();
        let handle = self.handle(session, function, input)?;
        let (Some(agent), bound) = (self.live.get(&session), &self.bound) else {
            return Err(unknown(&self.bound, session, function, input.to_owned()));
        };
        let store_id = agent.store;
        let store = self.stores.entry(store_id).or_default();
        let call = (handle, session.0, agent.inputs + 1);
        let answer = store.send(bound, call, received, || Some(input.to_owned()));
        self.after_call(store_id);
        answer
    }

    /// Returns the agent's handle. Rebuilds the agent if its store was lost to another agent's
    /// trap.
    fn handle(
        &mut self,
        session: SessionId,
        function: &str,
        input: &str,
    ) -> Result<ResourceAny, PluginFailure> {
        let Some(agent) = self.live.get(&session) else {
            return Err(unknown(&self.bound, session, function, input.to_owned()));
        };
        if let Some(why) = &agent.ended {
            return Err(self.bound.unusable(
                function,
                Some(input.to_owned()),
                format!("session {session} has ended: {why}"),
            ));
        }
        if let Some(handle) = agent.handle {
            return Ok(handle);
        }
        let store = agent.store;
        let rebuilt = self.rebuild(session);
        if let (Err(failure), Some(agent)) = (&rebuilt, self.live.get_mut(&session)) {
            agent.end(&failure.message, &mut self.budget);
        }
        self.after_call(store);
        if let (Ok(handle), Some(agent)) = (&rebuilt, self.live.get_mut(&session)) {
            agent.handle = Some(*handle);
        }
        rebuilt
    }

    /// Starts an agent again and passes it all its inputs.
    fn rebuild(&mut self, session: SessionId) -> Result<ResourceAny, PluginFailure> {
        let bound = &self.bound;
        let input = || format!("session = {session}, rebuilt after another session's trap");
        let lost = |why: &str| {
            bound.unusable(
                START,
                Some(input()),
                format!("session {session} was lost with its store: {why}"),
            )
        };
        let Some(agent) = self.live.get(&session) else {
            return Err(unknown(bound, session, START, input()));
        };
        let AgentHistory::Kept { events, .. } = &agent.history else {
            return Err(lost(
                "its answers exceed the limit for rebuilding (`replay_bytes`)",
            ));
        };
        let store = self.stores.entry(agent.store).or_default();
        let started = store.start(bound, session.0, || Some(input()))?;
        let (handle, first) =
            started.map_err(|error| lost(&format!("started again, it refused: {}", error.message)))?;
        let mut again: HashSet<NodeId> = nodes(&first.step).collect();
        for (call, received) in (1..).zip(events) {
            let call = (handle, session.0, call);
            let step = store.send(bound, call, received, || Some(input()))?;
            let step = step.map_err(|error| lost(&format!("started again, it failed: {}", error.message)))?;
            again.extend(nodes(&step));
        }
        if again.len() != agent.known.len() || !again.iter().all(|node| agent.known.contains_key(node)) {
            return Err(lost(
                "given the same answers again, it requested other nodes; agents must be deterministic",
            ));
        }
        Ok(handle)
    }

    /// Adds a started agent, if its first step is valid.
    fn insert(
        &mut self,
        session: SessionId,
        store: u64,
        started: Result<(ResourceAny, Opening), Error>,
        input: String,
    ) -> Result<AgentStep, PluginFailure> {
        let (handle, opening) = started
            .map_err(|error| convert::refusal(&self.bound.loaded.name, START, Some(input.clone()), error))?;
        let mut agent = GuestAgent {
            store,
            handle: Some(handle),
            id: session,
            session: Session {
                headers: opening.headers,
                labels: opening.labels,
                ..Session::default()
            },
            known: KnownNodes::new(),
            keys: ToolRunKeys::default(),
            history: AgentHistory::new(),
            done: false,
            inputs: 0,
            ended: None,
        };
        match agent.take(opening.step) {
            Ok(step) => {
                self.live.insert(session, agent);
                Ok(step)
            }
            Err(why) => {
                if let Some(store) = self.stores.get_mut(&store) {
                    store.release(handle);
                }
                Err(self.bound.unusable(START, Some(input), why))
            }
        }
    }
}

impl GuestAgent {
    /// Validates a step and remembers its nodes.
    fn take(&mut self, step: Step) -> Result<AgentStep, String> {
        let mut added = Session {
            requests: convert::requests(step.requests),
            tool_runs: convert::tool_runs(step.tool_runs),
            ..self.session.clone()
        };
        self.keys.assign(&mut added);
        validate::step(&added, &self.known)?;
        let cancel: Vec<NodeId> = step.cancel.into_iter().map(NodeId).collect();
        resolve_tool_results(self.id, &mut added, |run| self.known.get(&run)?.result());
        self.known.extend(added.kinds());
        validate::cancelled(&cancel, &self.known)?;
        self.done = step.done;
        Ok(AgentStep {
            added,
            cancel,
            done: step.done,
        })
    }

    fn end(&mut self, why: &str, budget: &mut usize) {
        self.ended = Some(why.to_owned());
        self.history.forget(budget);
    }
}

fn nodes(step: &Step) -> impl Iterator<Item = NodeId> {
    let requests = step.requests.iter().map(|request| request.node);
    requests
        .chain(step.tool_runs.iter().map(|run| run.node))
        .map(NodeId)
}

fn unknown(bound: &BoundPlugin, session: SessionId, function: &str, input: String) -> PluginFailure {
    bound.unusable(
        function,
        Some(input),
        format!("session {session} was not started, or has ended"),
    )
}

impl AgentSource for WasmAgents {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        Ok(self.length)
    }

    fn start(&mut self, session: SessionId) -> Result<AgentStep, PluginFailure> {
        let input = format!("session = {session}");
        if self.live.contains_key(&session) {
            return Err(self.bound.unusable(
                START,
                Some(input),
                format!("session {session} was started before"),
            ));
        }
        self.bound.check_enabled(START)?;
        let mut step = self.start_once(session, &input);
        if step
            .as_ref()
            .is_err_and(|failure| self.bound.restarts_after(failure))
        {
            step = self.start_once(session, &input);
        }
        step.inspect_err(|failure| self.bound.disable_after(failure))
    }

    fn answered(
        &mut self,
        session: SessionId,
        node: NodeId,
        response: &Response,
        completed_at: Nanos,
    ) -> Result<AgentStep, PluginFailure> {
        let answer = convert::response(node, response, completed_at);
        let input = if response.cancelled {
            AgentInput::Cancelled(answer)
        } else {
            AgentInput::Answered(answer)
        };
        self.step(session, input)
    }

    fn failed(&mut self, session: SessionId, reason: &FailureReason) -> Result<AgentStep, PluginFailure> {
        self.step(session, AgentInput::Failed(convert::failure(reason)))
    }

    fn tool_ended(&mut self, session: SessionId, end: ToolRunEnd<'_>) -> Result<AgentStep, PluginFailure> {
        if let Some(agent) = self.live.get_mut(&session) {
            let kind = agent.known.get_mut(&end.node());
            kind.into_iter()
                .for_each(|kind| kind.end_tool_run(end.result_tokens()));
        }
        self.step(session, AgentInput::ToolEnded(convert::tool_result(end)))
    }

    fn finish(&mut self, session: SessionId) {
        let Some(mut agent) = self.live.remove(&session) else {
            return;
        };
        agent.history.forget(&mut self.budget);
        let Some(store) = self.stores.get_mut(&agent.store) else {
            return;
        };
        store.live = store.live.saturating_sub(1);
        if let Some(handle) = agent.handle {
            store.release(handle);
        }
        // A store without capacity for further agents is dropped with its last one.
        if store.live == 0 && !store.has_capacity(&self.bound) {
            self.stores.remove(&agent.store);
        } else {
            self.after_call(agent.store);
        }
    }
}

/// Asks a component for the properties that all its sessions share.
pub(crate) fn guarantees(bound: &BoundPlugin) -> Result<Guarantees, PluginFailure> {
    let mut generator = PinnedResource::<Guest>::new(bound)?;
    let guarantees = generator.call(
        GUARANTEES,
        || None,
        |store, guest, generator| guest.generator().call_guarantees(store, generator),
    )?;
    Ok(convert::guarantees(guarantees))
}
