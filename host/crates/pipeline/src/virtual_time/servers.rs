//! The simulated servers of a run: one for each client.

use std::collections::VecDeque;

use veeksha_model::{Nanos, Request};
use veeksha_prompt::Tokenizer;
use veeksha_simulator::{EngineEvent, EngineRequest, Profile};

use crate::clients::{ClientSpecs, engine_seed};

use super::prompt::PromptWriter;
use super::server::SimulatedServer;

/// The simulated server of a client.
#[derive(Clone, Debug)]
pub struct SimulatedTarget {
    /// The engine's costs, limits and faults.
    pub profile: Profile,
    /// The total deadline of a request.
    pub request_timeout: Nanos,
    /// The tool that every answer calls, unless the body of a request makes another choice.
    pub tool: Option<String>,
}

/// The simulated servers of a run.
#[derive(Clone, Debug)]
pub struct SimulatedTargets {
    /// That of requests without a client.
    pub default: SimulatedTarget,
    /// Those of the other clients of the plan, in their order.
    pub others: Vec<SimulatedTarget>,
}

/// The server of a run with one client.
impl From<SimulatedTarget> for SimulatedTargets {
    fn from(default: SimulatedTarget) -> Self {
        SimulatedTargets {
            default,
            others: Vec::new(),
        }
    }
}

/// A server, and what its client knows of it.
pub(super) struct ClientServer<'a> {
    pub(super) target: &'a SimulatedTarget,
    pub(super) writer: PromptWriter<'a>,
    pub(super) server: SimulatedServer,
    /// (deadline, flight), in the order of dispatch: the timeout is the same for all.
    pub(super) deadlines: VecDeque<(Nanos, u64)>,
}

/// The servers by the positions of their clients.
pub(super) struct SimulatedServers<'a> {
    clients: &'a ClientSpecs,
    servers: Vec<ClientServer<'a>>,
}

impl<'a> SimulatedServers<'a> {
    pub(super) fn new(
        targets: &'a SimulatedTargets,
        clients: &'a ClientSpecs,
        tokenizer: &'a Tokenizer,
        seed: u64,
    ) -> Self {
        let targets = std::iter::once(&targets.default).chain(&targets.others);
        let servers = targets.zip(clients.names()).enumerate();
        let server = |(index, (target, name)): (usize, (&'a SimulatedTarget, &str))| ClientServer {
            target,
            writer: PromptWriter {
                tokenizer,
                block_size: target.profile.block_size,
            },
            server: SimulatedServer::new(
                target.profile.clone(),
                engine_seed(seed, (index > 0).then_some(name)),
            ),
            deadlines: VecDeque::new(),
        };
        SimulatedServers {
            clients,
            servers: servers.map(server).collect(),
        }
    }

    /// Returns the position of the server of a request: of the first one if its client has none.
    pub(super) fn index(&self, request: &Request) -> usize {
        let index = self.clients.index(request.client.as_deref());
        if index < self.servers.len() { index } else { 0 }
    }

    pub(super) fn at(&mut self, index: usize) -> &mut ClientServer<'a> {
        &mut self.servers[index]
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ClientServer<'a>> {
        self.servers.iter_mut()
    }

    /// From here on `now` is 0.
    pub(super) fn begin_at(&mut self, now: Nanos) {
        self.servers
            .iter_mut()
            .for_each(|client| client.server.begin_at(now));
    }

    pub(super) fn submit(
        &mut self,
        index: usize,
        now: Nanos,
        request: EngineRequest,
        events: &mut Vec<EngineEvent>,
    ) {
        self.servers[index].server.submit(now, request, events);
    }

    pub(super) fn cancel(&mut self, index: usize, now: Nanos, id: u64) {
        self.servers[index].server.cancel(now, id);
    }

    pub(super) fn next_wake(&self) -> Option<Nanos> {
        self.servers
            .iter()
            .filter_map(|client| client.server.next_wake())
            .min()
    }

    pub(super) fn advance(&mut self, now: Nanos, events: &mut Vec<EngineEvent>) {
        for client in &mut self.servers {
            client.server.advance(now, events);
        }
    }
}
