//! Sessions that were made, and those whose agents failed at their start.

use veeksha_model::{NodeId, SessionId};
use veeksha_ports::PluginFailure;
use veeksha_scheduler::{NodePlan, SchedulerInput, SessionKind, SessionPlan};

/// Sessions of agents with nothing to send, one after another, at most: their agents fail at their
/// start, or are done with it. Such a session takes no time, neither in a simulation nor in a queue
/// of concurrent sessions, so that an endless workload of them would have no end.
const MAX_EMPTY_SESSIONS: u32 = 1000;

/// A session that is ready to be scheduled.
pub(crate) struct MadeSession<P> {
    /// The nodes.
    pub(crate) plan: SessionPlan<P>,
    /// How it begins.
    pub(crate) start: SessionStart,
}

/// The beginning of a session.
pub(crate) enum SessionStart {
    /// It was made.
    Made {
        /// Digest of the session as the workload described it.
        digest: u64,
        /// True if its agent was done with the first step already.
        done: bool,
    },
    /// Its agent failed: the session takes its turn, and ends as soon as it starts.
    Failed(Box<PluginFailure>),
}

/// The first step of an agent, prepared.
pub(crate) struct FirstStep<P> {
    pub(crate) nodes: Vec<NodePlan<P>>,
    pub(crate) cancel: Vec<NodeId>,
    pub(crate) done: bool,
    pub(crate) digest: u64,
}

impl<P> MadeSession<P> {
    /// The session of an agent.
    pub(crate) fn of_agent(id: SessionId, first: Result<FirstStep<P>, PluginFailure>) -> Self {
        let (nodes, cancel, start) = match first {
            Ok(step) => {
                let FirstStep { done, digest, .. } = step;
                (step.nodes, step.cancel, SessionStart::Made { digest, done })
            }
            Err(failure) => (Vec::new(), Vec::new(), SessionStart::Failed(Box::new(failure))),
        };
        MadeSession {
            plan: SessionPlan {
                arrives_at: None,
                id,
                nodes,
                kind: SessionKind::Reactive,
                cancel,
            },
            start,
        }
    }
}

impl SessionStart {
    /// Returns the input that follows the session in its scheduler, if there is one.
    pub(crate) fn input<P>(&self, session: SessionId) -> Option<SchedulerInput<P>> {
        match self {
            SessionStart::Made { done: false, .. } => None,
            SessionStart::Made { done: true, .. } => Some(SchedulerInput::Step {
                session,
                nodes: Vec::new(),
                cancel: Vec::new(),
                done: true,
            }),
            SessionStart::Failed(_) => Some(SchedulerInput::AgentFailed { session }),
        }
    }
}

/// Counts sessions of agents that have nothing to send, in the order of the sessions.
#[derive(Default)]
pub(crate) struct EmptySessions {
    in_a_row: u32,
}

impl EmptySessions {
    /// Counts the next session. Returns false if there should be none after it.
    pub(crate) fn count<P>(&mut self, plan: &SessionPlan<P>) -> bool {
        let is_empty = plan.kind == SessionKind::Reactive && plan.nodes.is_empty();
        self.in_a_row = if is_empty { self.in_a_row + 1 } else { 0 };
        self.in_a_row < MAX_EMPTY_SESSIONS
    }

    /// The reason for the end of a workload without further sessions.
    pub(crate) fn reason() -> String {
        format!("{MAX_EMPTY_SESSIONS} sessions in a row failed at their start or had nothing to send")
    }
}
