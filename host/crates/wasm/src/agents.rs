//! Many live agents, in shards: what one agent's trap can take along is the store it shares, and no more.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use veeksha_model::{FailureReason, Nanos, NodeId, Response, SessionId};
use veeksha_ports::{AgentSource, AgentStep, PluginFailure};
use wasmtime::component::ResourceAny;

use crate::bindings::agent_generator::Step;
use crate::bindings::types::Error;
use crate::replay::{Event, Past};
use crate::shard::{START, Shard};
use crate::workload::Bound;
use crate::{admit, convert};

pub(crate) struct Agents {
    bound: Arc<Bound>,
    shards: BTreeMap<u64, Shard>,
    next_shard: u64,
    live: HashMap<SessionId, Agent>,
    /// Bytes that may still be kept for replays.
    budget: usize,
}

struct Agent {
    shard: u64,
    /// None after a trap in its shard, until it is rebuilt.
    handle: Option<ResourceAny>,
    /// Every node that it has asked for.
    known: HashSet<NodeId>,
    past: Past,
    /// Why it can go no further.
    over: Option<String>,
}

impl Agents {
    /// Makes the first store now, so that a component that cannot be instantiated is refused at once.
    pub(crate) fn open(bound: Arc<Bound>) -> Result<Self, PluginFailure> {
        drop(bound.loaded.reactive(&bound.grants)?);
        let budget = bound.loaded.host.limits.replay_bytes;
        Ok(Agents {
            bound,
            shards: BTreeMap::new(),
            next_shard: 0,
            live: HashMap::new(),
            budget,
        })
    }

    /// The shard for the next agent.
    fn shard_with_room(&mut self) -> u64 {
        if let Some((&id, _)) = self
            .shards
            .iter()
            .rev()
            .find(|(_, shard)| shard.has_room(&self.bound))
        {
            return id;
        }
        let id = self.next_shard;
        self.next_shard += 1;
        self.shards.insert(id, Shard::default());
        id
    }

    /// After a call into a shard: if it trapped, its agents have no handles any more.
    fn after_call(&mut self, shard: u64) {
        if self.shards.get_mut(&shard).is_some_and(Shard::drop_if_trapped) {
            for agent in self.live.values_mut().filter(|agent| agent.shard == shard) {
                agent.handle = None;
            }
        }
    }

    /// Tells an agent something and takes its next step.
    fn step(&mut self, session: SessionId, event: Event) -> Result<AgentStep, PluginFailure> {
        let function = event.function();
        let input = format!(
            "session = {session}, node = {}, {}",
            event.node(),
            event.excerpt()
        );
        let handle = self.handle(session, function, &input)?;
        let (Some(agent), bound) = (self.live.get_mut(&session), &self.bound) else {
            return Err(unknown(&self.bound, session, function, input));
        };
        let shard_id = agent.shard;
        let shard = self.shards.entry(shard_id).or_default();
        let told = shard.tell(bound, handle, &event, || Some(input.clone()));
        agent.past.push(event, &mut self.budget);
        let step = match told {
            Ok(Ok(step)) => agent
                .take(step)
                .map_err(|why| bound.unusable(function, input, why)),
            // An error is an answer: the agent lives on.
            Ok(Err(error)) => return Err(convert::refusal(&bound.loaded.name, function, Some(input), error)),
            Err(failure) => Err(failure),
        };
        if let Err(failure) = &step {
            agent.end(&failure.message, &mut self.budget);
        }
        self.after_call(shard_id);
        step
    }

    /// The agent's handle; rebuilds the agent if its store was lost to another one's trap.
    fn handle(
        &mut self,
        session: SessionId,
        function: &str,
        input: &str,
    ) -> Result<ResourceAny, PluginFailure> {
        let Some(agent) = self.live.get(&session) else {
            return Err(unknown(&self.bound, session, function, input.to_owned()));
        };
        if let Some(why) = &agent.over {
            return Err(self.bound.unusable(
                function,
                input.to_owned(),
                format!("session {session} has ended: {why}"),
            ));
        }
        if let Some(handle) = agent.handle {
            return Ok(handle);
        }
        let shard = agent.shard;
        let rebuilt = self.rebuild(session);
        if let (Err(failure), Some(agent)) = (&rebuilt, self.live.get_mut(&session)) {
            agent.end(&failure.message, &mut self.budget);
        }
        self.after_call(shard);
        if let (Ok(handle), Some(agent)) = (&rebuilt, self.live.get_mut(&session)) {
            agent.handle = Some(*handle);
        }
        rebuilt
    }

    /// Begins an agent anew and tells it all it was told before.
    fn rebuild(&mut self, session: SessionId) -> Result<ResourceAny, PluginFailure> {
        let bound = &self.bound;
        let input = || format!("session = {session}, rebuilt after another session's trap");
        let lost = |why: &str| {
            bound.unusable(
                START,
                input(),
                format!("session {session} was lost with its store: {why}"),
            )
        };
        let Some(agent) = self.live.get(&session) else {
            return Err(unknown(bound, session, START, input()));
        };
        let Past::Kept { events, .. } = &agent.past else {
            return Err(lost(
                "its answers were more than is kept for rebuilding (limit `replay_bytes`)",
            ));
        };
        let shard = self.shards.entry(agent.shard).or_default();
        let begun = shard.start(bound, session.0, || Some(input()))?;
        let (handle, first) =
            begun.map_err(|error| lost(&format!("begun again, it refused: {}", error.message)))?;
        let mut again: HashSet<NodeId> = nodes(&first).collect();
        for event in events {
            // An error was an answer then, and is one now.
            if let Ok(step) = shard.tell(bound, handle, event, || Some(input()))? {
                again.extend(nodes(&step));
            }
        }
        if again != agent.known {
            return Err(lost(
                "given the same answers again, it asked for other nodes; agents must be deterministic",
            ));
        }
        Ok(handle)
    }

    /// Files a begun agent.
    fn admit(
        &mut self,
        session: SessionId,
        shard: u64,
        begun: Result<(ResourceAny, Step), Error>,
        input: String,
    ) -> Result<AgentStep, PluginFailure> {
        let (handle, step) = begun
            .map_err(|error| convert::refusal(&self.bound.loaded.name, START, Some(input.clone()), error))?;
        let mut agent = Agent {
            shard,
            handle: Some(handle),
            known: HashSet::new(),
            past: Past::new(),
            over: None,
        };
        match agent.take(step) {
            Ok(step) => {
                self.live.insert(session, agent);
                Ok(step)
            }
            Err(why) => {
                if let Some(shard) = self.shards.get_mut(&shard) {
                    shard.release(handle);
                }
                Err(self.bound.unusable(START, input, why))
            }
        }
    }
}

impl Agent {
    /// Checks a step and remembers its nodes.
    fn take(&mut self, step: Step) -> Result<AgentStep, String> {
        let requests = convert::requests(step.requests);
        admit::requests(&requests, &self.known)?;
        self.known.extend(requests.iter().map(|request| request.node));
        Ok(AgentStep {
            requests,
            done: step.done,
        })
    }

    fn end(&mut self, why: &str, budget: &mut usize) {
        self.over = Some(why.to_owned());
        self.past.forget(budget);
    }
}

fn nodes(step: &Step) -> impl Iterator<Item = NodeId> {
    step.requests.iter().map(|request| NodeId(request.node))
}

fn unknown(bound: &Bound, session: SessionId, function: &str, input: String) -> PluginFailure {
    bound.unusable(
        function,
        input,
        format!("session {session} was not begun, or has ended"),
    )
}

impl AgentSource for Agents {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        // The contract gives agents no end: how many sessions there are is the scenario's to say.
        Ok(None)
    }

    fn start(&mut self, session: SessionId) -> Result<AgentStep, PluginFailure> {
        let input = format!("session = {session}");
        if self.live.contains_key(&session) {
            return Err(self
                .bound
                .unusable(START, input, format!("session {session} was begun before")));
        }
        let id = self.shard_with_room();
        let shard = self.shards.entry(id).or_default();
        shard.begun += 1;
        let step = match shard.start(&self.bound, session.0, || Some(input.clone())) {
            Ok(begun) => self.admit(session, id, begun, input),
            Err(failure) => Err(failure),
        };
        if step.is_ok() {
            self.shards.entry(id).or_default().live += 1;
        }
        self.after_call(id);
        step
    }

    fn answered(
        &mut self,
        session: SessionId,
        node: NodeId,
        response: &Response,
        completed_at: Nanos,
    ) -> Result<AgentStep, PluginFailure> {
        self.step(
            session,
            Event::Answered(convert::response(node, response, completed_at)),
        )
    }

    fn failed(&mut self, session: SessionId, reason: &FailureReason) -> Result<AgentStep, PluginFailure> {
        self.step(session, Event::Failed(convert::failure(reason)))
    }

    fn finish(&mut self, session: SessionId) {
        let Some(mut agent) = self.live.remove(&session) else {
            return;
        };
        agent.past.forget(&mut self.budget);
        let Some(shard) = self.shards.get_mut(&agent.shard) else {
            return;
        };
        shard.live = shard.live.saturating_sub(1);
        if let Some(handle) = agent.handle {
            shard.release(handle);
        }
        // A store that takes no more agents goes with its last one.
        if shard.live == 0 && !shard.has_room(&self.bound) {
            self.shards.remove(&agent.shard);
        } else {
            self.after_call(agent.shard);
        }
    }
}
