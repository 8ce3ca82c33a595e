//! What goes into the scheduler and what comes out of it.

use std::sync::Arc;

use veeksha_events::{NeverSentReason, SessionEnd};
use veeksha_model::{
    FailureReason, Held, History, HistoryMode, Nanos, NodeId, RequestId, Response, SessionId,
};

/// A node as the scheduler sees it: edges, think time, and a payload that it only passes on.
#[derive(Clone, Debug)]
pub struct NodePlan<P> {
    /// Its name in the session.
    pub node: NodeId,
    /// The nodes that must be complete first.
    pub parents: Vec<NodeId>,
    /// The parent whose conversation this node continues.
    pub history_parent: Option<NodeId>,
    /// Think time after the last parent's completion; without parents, after the session's start.
    pub wait_after_ready: Nanos,
    /// The instant before which it is not sent, for traffic that replays recorded arrivals ([`crate::Traffic::Scheduled`]); other
    /// traffic does not look at it. It is due at the later of this instant and the end of its think time.
    pub not_before: Option<Nanos>,
    /// What it sends of the conversation of its history parent: how every answer in it is given, see [`crate::Conversation`].
    pub history_mode: HistoryMode,
    /// Its recorded answer: what nodes that continue it in [`HistoryMode::Recorded`] see in the place of the real one.
    pub recorded_answer: Option<Arc<Response>>,
    /// What is sent.
    pub payload: Arc<P>,
}

/// Where a session's nodes come from.
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
    /// Which session.
    pub id: SessionId,
    /// Its nodes; of a reactive session, those of its agent's first step.
    pub nodes: Vec<NodePlan<P>>,
    /// Planned or reactive.
    pub kind: SessionKind,
    /// When it starts, for traffic that replays recorded arrivals ([`crate::Traffic::Scheduled`]); other traffic does not look
    /// at it. Without one, such traffic starts it at once.
    pub arrives_at: Option<Nanos>,
}

/// What happens to the scheduler.
#[derive(Clone, Debug)]
pub enum Input<P> {
    /// The source delivered a session. Order does not matter; a session that was delivered before, or that belongs to
    /// another shard, is ignored.
    Session(SessionPlan<P>),
    /// The source has no further sessions.
    SourceEnded,
    /// An agent's step: the answer to one [`Action::AskAgent`]. Without nodes but `done` it may also come right after the
    /// session, for an agent that wants to hear of nothing. Steps of sessions that are over, or whose agent has said `done`,
    /// are ignored.
    ///
    /// A step that leaves a session with nothing to send, nothing in flight and no question open, and is not `done`, comes
    /// from an agent that would never be asked again; the session ends as errored.
    Step {
        /// Which session.
        session: SessionId,
        /// New nodes; they may name earlier nodes as parents.
        nodes: Vec<NodePlan<P>>,
        /// No further nodes will come.
        done: bool,
    },
    /// The agent of a session cannot go on. What it has not sent is withdrawn.
    AgentFailed {
        /// Which session.
        session: SessionId,
    },
    /// A request was answered.
    Answered {
        /// Which request. Unknown requests, and those that have a result already, are ignored.
        request: RequestId,
        /// The answer.
        response: Arc<Response>,
        /// When it was complete.
        at: Nanos,
    },
    /// A request failed.
    Failed {
        /// Which request. Unknown requests, and those that have a result already, are ignored.
        request: RequestId,
        /// Why.
        reason: Arc<FailureReason>,
        /// When.
        at: Nanos,
    },
    /// The first generated chunk of a request has come. Only needed where [`crate::Limits::in_prefill`] is set; a result says the
    /// same of a request whose first chunk was not told of.
    FirstChunk {
        /// Which request. Those that are not in flight are ignored.
        request: RequestId,
        /// When the chunk came.
        at: Nanos,
    },
    /// Time has passed.
    Tick,
    /// Stop now (Ctrl-C): nothing more is dispatched, what is in flight is cancelled.
    Stop,
}

/// What the scheduler decided.
#[derive(Clone, Debug)]
pub enum Action<P> {
    /// A session started.
    SessionStarted {
        /// Which session.
        session: SessionId,
        /// Its arrival, drawn or recorded, or the instant at which its slot became free: what its roots are counted from.
        at: Nanos,
        /// Nodes known so far.
        requests: u32,
    },
    /// Send this now.
    Dispatch {
        /// Which request.
        id: RequestId,
        /// The instant at which it should have been sent.
        intended: Nanos,
        /// How long limits kept it back after that.
        held: Held,
        /// What to send.
        payload: Arc<P>,
        /// The conversation before it, as its history mode says.
        history: Option<Arc<History<P>>>,
        /// Whether it is dispatched before the timeout and so counts.
        measured: bool,
        /// Nodes of its session known so far.
        session_requests: u32,
    },
    /// Ask the agent for the next step; the answer is an [`Input::Step`] or an [`Input::AgentFailed`].
    AskAgent {
        /// Which session.
        session: SessionId,
        /// The node that completed.
        node: NodeId,
        /// How.
        answer: Result<Arc<Response>, Arc<FailureReason>>,
        /// When.
        at: Nanos,
    },
    /// A reactive session is over (or will never start); its agent's state can go.
    ForgetAgent {
        /// Which session.
        session: SessionId,
    },
    /// A request of a started session will never be sent.
    NeverSent {
        /// Which request.
        request: RequestId,
        /// Why.
        reason: NeverSentReason,
        /// When that was decided.
        at: Nanos,
    },
    /// A session is over.
    SessionFinished {
        /// Which session.
        session: SessionId,
        /// When its last node completed, or when it was given up.
        at: Nanos,
        /// How it ended.
        end: SessionEnd,
        /// All nodes it ever had.
        requests: u32,
    },
    /// A session was due before the source had delivered it.
    Starved {
        /// When it was due.
        due: Nanos,
        /// When it came.
        at: Nanos,
    },
    /// The run ended before sessions were delivered whose arrival had come: how many requests they would have sent is not known.
    ArrivalsMissed {
        /// How many sessions.
        sessions: u64,
        /// When the run ended for them.
        at: Nanos,
    },
    /// The benchmark timeout passed: what is dispatched from now on is not measured.
    TimeoutReached {
        /// The timeout.
        at: Nanos,
    },
    /// Give up every request in flight; each must still come back, as [`Input::Failed`] or as [`Input::Answered`].
    CancelInFlight,
    /// Nothing more will happen. Comes exactly once, as the last action.
    Done,
}
