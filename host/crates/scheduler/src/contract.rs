//! Inputs and actions of the scheduler.

use std::sync::Arc;

use veeksha_events::{DroppedToolRun, NeverSentReason, SessionEnd};
use veeksha_model::{
    Edge, FailureReason, Held, History, HistoryMode, Label, Nanos, NodeId, RequestId, Response, SessionId,
    TIMER, ToolRunRecord,
};

/// A node as the scheduler sees it: edges, think time, and a payload that it only passes on.
#[derive(Clone, Debug)]
pub struct NodePlan<P> {
    /// Node id, unique within the session.
    pub node: NodeId,
    /// The events of other nodes that it waits for.
    pub parents: Vec<Edge>,
    /// The parent whose conversation this node continues.
    pub history_parent: Option<NodeId>,
    /// Think time after the last edge was met; without parents, after the session's start.
    pub wait_after_ready: Nanos,
    /// The instant before which it is not sent, for traffic that replays recorded instants
    /// ([`crate::TrafficRule::Scheduled`] with `replays`); other traffic ignores it. It is due at
    /// the later of this instant and the end of its think time.
    pub not_before: Option<Nanos>,
    /// The history that it sends of its history parent's conversation, see
    /// [`crate::ConversationHistory`].
    pub history_mode: HistoryMode,
    /// Its recorded answer: nodes that continue it in [`HistoryMode::Recorded`] send it instead of
    /// the real one.
    pub recorded_answer: Option<Arc<Response>>,
    /// The events that cancel it, whichever comes first: of other nodes, or its own dispatch or
    /// first chunk. Only of a request.
    pub cancel_when: Vec<Edge>,
    /// What the node does.
    pub work: NodeWork<P>,
}

/// What a node does once it is due.
#[derive(Clone, Debug)]
pub enum NodeWork<P> {
    /// It is sent: the data to send.
    Request(Arc<P>),
    /// It is a tool call.
    ToolRun(ToolRunPlan),
}

/// A tool call as the scheduler sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRunPlan {
    /// The index of its class in [`crate::SchedulerConfig::tools`].
    pub class: usize,
    /// The service time.
    pub service_time: Nanos,
    /// True if the tool fails.
    pub fails: bool,
    /// The tokens of its result.
    pub result_tokens: u32,
    /// The name of its class.
    pub name: Arc<str>,
    /// Carried to the record.
    pub labels: Arc<[Label]>,
}

impl ToolRunPlan {
    /// Returns true if the end of the run waits for it once it is called: not for a timer, which is
    /// think time.
    pub(crate) fn is_drained(&self) -> bool {
        &*self.name != TIMER
    }
}

/// The origin of a session's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionKind {
    /// All nodes are known from the start.
    Planned,
    /// An agent adds nodes in answer to completions.
    Reactive,
}

/// A session that can be started. Its nodes have passed [`veeksha_model::check_session`].
#[derive(Clone, Debug)]
pub struct SessionPlan<P> {
    /// The session's id.
    pub id: SessionId,
    /// The nodes; for a reactive session, those of its agent's first step.
    pub nodes: Vec<NodePlan<P>>,
    /// Planned or reactive.
    pub kind: SessionKind,
    /// Start instant for traffic whose arrivals are given ([`crate::TrafficRule::Scheduled`]);
    /// other traffic ignores it. Without one, such traffic starts the session at once.
    pub arrives_at: Option<Nanos>,
    /// Nodes that its agent cancels in its first step: they are cancelled when the session starts.
    pub cancel: Vec<NodeId>,
}

/// An input of the scheduler.
#[derive(Clone, Debug)]
pub enum SchedulerInput<P> {
    /// The source delivered a session. Order does not matter; a session that was delivered before,
    /// or that belongs to another shard, is ignored.
    Session(SessionPlan<P>),
    /// The source has no further sessions.
    SourceEnded,
    /// An agent's step: the answer to one [`Action::AskAgent`]. A step without nodes but with
    /// `done` may also come right after the session, for an agent that needs no responses. Steps of
    /// sessions that are over, or whose agent has reported `done`, are ignored.
    ///
    /// A step that leaves a session with nothing to send, nothing in flight and no question open,
    /// and is not `done`, comes from an agent that would never be asked again; the session ends as
    /// errored.
    Step {
        /// The session's id.
        session: SessionId,
        /// New nodes; they may name earlier nodes as parents.
        nodes: Vec<NodePlan<P>>,
        /// Nodes to cancel, among them possibly new ones. One that has ended, or was cancelled
        /// before, stays as it is.
        cancel: Vec<NodeId>,
        /// No further nodes will come.
        done: bool,
    },
    /// The agent of a session cannot go on. What it has not sent is withdrawn.
    AgentFailed {
        /// The session's id.
        session: SessionId,
    },
    /// A request was answered, or was cancelled ([`Action::Cancel`], or by the transport for
    /// another reason of its workload) and returns the part that had arrived
    /// ([`Response::cancelled`]).
    Answered {
        /// The request's id. Unknown requests, and those that have a result already, are ignored.
        request: RequestId,
        /// The answer.
        response: Arc<Response>,
        /// Instant of completion.
        at: Nanos,
    },
    /// A request failed.
    Failed {
        /// The request's id. Unknown requests, and those that have a result already, are ignored.
        request: RequestId,
        /// The reason.
        reason: Arc<FailureReason>,
        /// The instant, in nanoseconds since the run's zero.
        at: Nanos,
    },
    /// The first generated chunk of a request has arrived. Needed of requests that were dispatched
    /// with `reports_first_chunk`; a result also ends the prefill of a request whose first chunk
    /// was not reported.
    FirstChunk {
        /// The request's id. Requests that are not in flight are ignored.
        request: RequestId,
        /// Arrival of the chunk.
        at: Nanos,
    },
    /// Time has passed.
    Tick,
    /// Stop now (Ctrl-C): nothing more is dispatched, what is in flight is cancelled.
    Stop,
}

/// The end of a node, as its agent learns of it.
#[derive(Clone, Debug)]
pub enum NodeOutcome {
    /// The request was answered.
    Answered(Arc<Response>),
    /// The request failed.
    Failed(Arc<FailureReason>),
    /// The tool run ended.
    ToolRan(Box<ToolRunRecord>),
    /// The tool run was cancelled before a server took it.
    ToolCancelled(Box<DroppedToolRun>),
}

/// A decision of the scheduler.
#[derive(Clone, Debug)]
pub enum Action<P> {
    /// A session started.
    SessionStarted {
        /// The session's id.
        session: SessionId,
        /// Its arrival, drawn or given, or the instant at which its slot became free: its roots
        /// count from here.
        at: Nanos,
        /// Requests known so far; tool runs are not included.
        requests: u32,
    },
    /// Send this now.
    Dispatch {
        /// The request's id.
        id: RequestId,
        /// The instant at which it should have been sent.
        intended: Nanos,
        /// Time for which limits held it back after `intended`.
        held: Held,
        /// The data to send.
        payload: Arc<P>,
        /// The conversation before it, according to its history mode.
        history: Option<Arc<History<P>>>,
        /// True if it is dispatched before the timeout and so counts.
        measured: bool,
        /// True if the scheduler needs its [`SchedulerInput::FirstChunk`]: a limit on prefills or
        /// another node waits for it.
        reports_first_chunk: bool,
        /// Requests of its session known so far; tool runs are not included.
        session_requests: u32,
    },
    /// Cancel this request, which is in flight. It must still come back: as
    /// [`SchedulerInput::Answered`] with the part of its answer that has arrived, or as what
    /// happened before the cancellation took place.
    Cancel {
        /// The request's id.
        request: RequestId,
    },
    /// Ask the agent for the next step; the answer is an [`SchedulerInput::Step`] or an
    /// [`SchedulerInput::AgentFailed`].
    AskAgent {
        /// The session's id.
        session: SessionId,
        /// The node that ended, or was cancelled before it was sent.
        node: NodeId,
        /// Its result; of a node that was never sent, an empty cancelled answer.
        outcome: NodeOutcome,
        /// Instant of completion.
        at: Nanos,
    },
    /// A tool run ended.
    ToolRan(Box<ToolRunRecord>),
    /// A tool run of a started session will never end.
    ToolDropped(Box<DroppedToolRun>),
    /// A reactive session is over (or will never start); its agent's state can go.
    ForgetAgent {
        /// The session's id.
        session: SessionId,
    },
    /// A request of a started session will never be sent.
    NeverSent {
        /// The request's id.
        request: RequestId,
        /// The reason.
        reason: NeverSentReason,
        /// The instant of that decision.
        at: Nanos,
    },
    /// A session is over.
    SessionFinished {
        /// The session's id.
        session: SessionId,
        /// The instant at which its last node completed, or at which it was given up.
        at: Nanos,
        /// The outcome.
        end: SessionEnd,
        /// All requests it ever had; tool runs are not included.
        requests: u32,
    },
    /// A session was due before the source had delivered it.
    Starved {
        /// The instant at which it was due.
        due: Nanos,
        /// The instant at which it was delivered.
        at: Nanos,
    },
    /// The run ended before sessions were delivered whose arrival had come: how many requests they
    /// would have sent is not known.
    ArrivalsMissed {
        /// Number of sessions.
        sessions: u64,
        /// The end of the run, as far as these sessions are concerned.
        at: Nanos,
    },
    /// The benchmark timeout passed: what is dispatched from now on is not measured.
    TimeoutReached {
        /// The timeout.
        at: Nanos,
    },
    /// Give up every request in flight; each must still come back, as [`SchedulerInput::Failed`] or
    /// as [`SchedulerInput::Answered`].
    CancelInFlight,
    /// Nothing more will happen. Comes exactly once, as the last action.
    Done,
}
