//! A check of conversations that change their client.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use veeksha_endpoint::ConversationContent;
use veeksha_model::{FailureReason, Nanos, NodeId, Request, Response, Session, SessionId};
use veeksha_ports::{
    AgentSource, AgentStep, Guarantees, PluginFailure, PluginFailureKind, STEP_CHECK, SessionSource,
    ToolRunEnd, Workload, WorkloadFactory, WorkloadInfo,
};

use crate::endpoint::ClientEndpoint;

/// Returns a workload like `inner` that refuses the requests whose client cannot send the
/// conversation before them. With one client, each request alone shows what it cannot send.
pub(crate) fn checked(
    inner: Arc<dyn WorkloadFactory>,
    clients: Arc<[ClientEndpoint]>,
) -> Arc<dyn WorkloadFactory> {
    if clients.len() < 2 {
        return inner;
    }
    Arc::new(CheckedFactory { inner, clients })
}

struct CheckedFactory {
    inner: Arc<dyn WorkloadFactory>,
    clients: Arc<[ClientEndpoint]>,
}

impl CheckedFactory {
    fn checked(&self, workload: Workload) -> Workload {
        let check = ClientCheck {
            plugin: self.inner.info().name.clone(),
            clients: self.clients.clone(),
        };
        match workload {
            Workload::Planned(inner) => Workload::Planned(Box::new(CheckedSessions { inner, check })),
            Workload::Reactive(inner) => Workload::Reactive(Box::new(CheckedAgents {
                inner,
                check,
                sessions: HashMap::new(),
            })),
        }
    }
}

impl WorkloadFactory for CheckedFactory {
    fn info(&self) -> &WorkloadInfo {
        self.inner.info()
    }

    fn open(&self) -> Result<Workload, PluginFailure> {
        Ok(self.checked(self.inner.open()?))
    }

    fn open_silent(&self) -> Result<Workload, PluginFailure> {
        Ok(self.checked(self.inner.open_silent()?))
    }

    fn guarantees(&self) -> Result<Guarantees, PluginFailure> {
        self.inner.guarantees()
    }
}

/// The content of each conversation of a session by its newest request.
type Conversations = HashMap<NodeId, ConversationContent>;

struct ClientCheck {
    plugin: String,
    clients: Arc<[ClientEndpoint]>,
}

impl ClientCheck {
    /// Adds requests of a session in the order of their conversations, and checks each.
    fn add(
        &self,
        session: SessionId,
        known: &mut Conversations,
        requests: &[Request],
    ) -> Result<(), PluginFailure> {
        let mut waiting: HashMap<NodeId, Vec<&Request>> = HashMap::new();
        let mut ready = Vec::new();
        let new: HashSet<NodeId> = requests.iter().map(|request| request.node).collect();
        for request in requests.iter().rev() {
            match request.history_parent.filter(|parent| new.contains(parent)) {
                Some(parent) => waiting.entry(parent).or_default().push(request),
                None => ready.push(request),
            }
        }
        while let Some(request) = ready.pop() {
            self.add_one(known, request).map_err(|why| {
                let message = format!("session {session}: node {}: {why}", request.node);
                PluginFailure::new(&self.plugin, STEP_CHECK, PluginFailureKind::Result, message)
            })?;
            ready.extend(waiting.remove(&request.node).into_iter().flatten());
        }
        Ok(())
    }

    fn add_one(&self, known: &mut Conversations, request: &Request) -> Result<(), String> {
        // An unknown client is a separate error.
        let Some(client) = ClientEndpoint::of(&self.clients, request) else {
            return Ok(());
        };
        let before = request.history_parent.and_then(|parent| known.get(&parent));
        let content = ConversationContent::after(before, &client.endpoint, request);
        content
            .check(&client.endpoint)
            .map_err(|why| format!("the client `{}`: {why}", client.name))?;
        known.insert(request.node, content);
        Ok(())
    }
}

struct CheckedSessions {
    inner: Box<dyn SessionSource>,
    check: ClientCheck,
}

impl SessionSource for CheckedSessions {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        self.inner.length()
    }

    fn sessions(&mut self, first: u64, count: u32) -> Result<Vec<Session>, PluginFailure> {
        let sessions = self.inner.sessions(first, count)?;
        for (id, session) in (first..).map(SessionId).zip(&sessions) {
            self.check.add(id, &mut Conversations::new(), &session.requests)?;
        }
        Ok(sessions)
    }
}

struct CheckedAgents {
    inner: Box<dyn AgentSource>,
    check: ClientCheck,
    /// The live sessions.
    sessions: HashMap<SessionId, Conversations>,
}

impl CheckedAgents {
    fn step(&mut self, session: SessionId, step: AgentStep) -> Result<AgentStep, PluginFailure> {
        if !step.added.requests.is_empty() {
            let known = self.sessions.entry(session).or_default();
            self.check.add(session, known, &step.added.requests)?;
        }
        Ok(step)
    }
}

impl AgentSource for CheckedAgents {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        self.inner.length()
    }

    fn start(&mut self, session: SessionId) -> Result<AgentStep, PluginFailure> {
        let step = self.inner.start(session)?;
        self.step(session, step)
    }

    fn answered(
        &mut self,
        session: SessionId,
        node: NodeId,
        response: &Response,
        completed_at: Nanos,
    ) -> Result<AgentStep, PluginFailure> {
        let step = self.inner.answered(session, node, response, completed_at)?;
        self.step(session, step)
    }

    fn failed(&mut self, session: SessionId, reason: &FailureReason) -> Result<AgentStep, PluginFailure> {
        let step = self.inner.failed(session, reason)?;
        self.step(session, step)
    }

    fn tool_ended(&mut self, session: SessionId, end: ToolRunEnd<'_>) -> Result<AgentStep, PluginFailure> {
        let step = self.inner.tool_ended(session, end)?;
        self.step(session, step)
    }

    fn finish(&mut self, session: SessionId) {
        self.sessions.remove(&session);
        self.inner.finish(session);
    }
}
