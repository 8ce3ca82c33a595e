//! Sources of sessions.

use veeksha_model::{FailureReason, Nanos, NodeId, Response, Session, SessionId, ToolRunRecord};

use crate::guarantees::Guarantees;
use crate::plugin_failure::PluginFailure;

/// Static facts about a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadInfo {
    /// The plugin's name, as messages and files call it.
    pub name: String,
    /// The plugin's version.
    pub version: String,
    /// One line about it.
    pub summary: String,
    /// `wasm` or `lua`.
    pub engine: &'static str,
    /// BLAKE3 of the component or of the script, in hex.
    pub digest: String,
    /// Host interfaces the plugin imports and was given (`log`, `random`, ...), in the order of
    /// their names.
    pub granted: Vec<String>,
}

/// Creates workloads. One factory serves all plugin threads; each thread opens a separate instance.
pub trait WorkloadFactory: Send + Sync {
    /// Returns the plugin's name, version and permissions.
    fn info(&self) -> &WorkloadInfo;

    /// Opens an instance. Called on the thread that will use it.
    fn open(&self) -> Result<Workload, PluginFailure>;

    /// Opens an instance whose log lines are dropped, for sessions that are made twice.
    fn open_silent(&self) -> Result<Workload, PluginFailure> {
        self.open()
    }

    /// Returns the properties that all sessions share, as far as the plugin guarantees any.
    fn guarantees(&self) -> Result<Guarantees, PluginFailure> {
        Ok(Guarantees::default())
    }
}

/// An open instance: of one of the two kinds.
pub enum Workload {
    /// Whole graphs ahead of time.
    Planned(Box<dyn SessionSource>),
    /// Nodes in answer to completions.
    Reactive(Box<dyn AgentSource>),
}

impl Workload {
    /// Returns the number of sessions, or `None` if there is no end.
    ///
    /// # Errors
    /// If the plugin fails.
    pub fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        match self {
            Workload::Planned(source) => source.length(),
            Workload::Reactive(agents) => agents.length(),
        }
    }
}

/// A planned generator. Session `i` depends on (plugin, config, seed, `i`) and on nothing else.
pub trait SessionSource {
    /// Returns the number of sessions, or `None` if there is no end.
    fn length(&mut self) -> Result<Option<u64>, PluginFailure>;

    /// Sessions `first .. first + count`; fewer only where the workload ends. Each one has passed
    /// [`veeksha_model::check_session`].
    fn sessions(&mut self, first: u64, count: u32) -> Result<Vec<Session>, PluginFailure>;
}

/// The next step of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentStep {
    /// New nodes; they may name earlier nodes of the session as parents. The headers and labels are
    /// those of the session, the same in each step.
    pub added: Session,
    /// Nodes that the agent has lost interest in.
    pub cancel: Vec<NodeId>,
    /// No further nodes will come. The session ends when all its nodes have completed.
    pub done: bool,
}

/// The end of a tool run.
#[derive(Clone, Copy, Debug)]
pub enum ToolRunEnd<'a> {
    /// A server worked on it.
    Served(&'a ToolRunRecord),
    /// It was cancelled before a server took it.
    Cancelled {
        /// Its node.
        node: NodeId,
        /// The time for which it waited for a server.
        waiting_time: Nanos,
        /// The instant of the cancellation.
        at: Nanos,
    },
}

impl ToolRunEnd<'_> {
    /// Returns the node of the run.
    pub fn node(&self) -> NodeId {
        match self {
            ToolRunEnd::Served(run) => run.id.node,
            ToolRunEnd::Cancelled { node, .. } => *node,
        }
    }

    /// Returns the tokens of its result: none of a run that was cancelled.
    pub fn result_tokens(&self) -> u32 {
        match self {
            ToolRunEnd::Served(run) => run.result_tokens,
            ToolRunEnd::Cancelled { .. } => 0,
        }
    }
}

/// A reactive generator: many live sessions, each answered step by step. Steps have passed
/// [`veeksha_model::check_session`] against the nodes of the session's earlier steps.
pub trait AgentSource {
    /// Returns the number of sessions, or `None` if there is no end.
    fn length(&mut self) -> Result<Option<u64>, PluginFailure>;

    /// Begins session `session`.
    fn start(&mut self, session: SessionId) -> Result<AgentStep, PluginFailure>;

    /// A request of the session was answered, or was cancelled ([`Response::cancelled`]).
    fn answered(
        &mut self,
        session: SessionId,
        node: NodeId,
        response: &Response,
        completed_at: Nanos,
    ) -> Result<AgentStep, PluginFailure>;

    /// A request of the session failed.
    fn failed(&mut self, session: SessionId, reason: &FailureReason) -> Result<AgentStep, PluginFailure>;

    /// A tool run of the session ended. An agent that starts none is never called.
    fn tool_ended(&mut self, session: SessionId, end: ToolRunEnd<'_>) -> Result<AgentStep, PluginFailure> {
        let _ = (session, end);
        Ok(AgentStep::default())
    }

    /// The session is over; its state can go. Unknown sessions are ignored.
    fn finish(&mut self, session: SessionId);
}
