//! Decides when each request is sent: sessions, traffic shapes, readiness, history, and the end of
//! a run.
//!
//! [`Scheduler`] is a state machine. It reads no clock and does no IO: every [`SchedulerInput`] has
//! a time, every decision is returned as an [`Action`]. A real run drives it with the run's clock,
//! a simulation with a virtual one, and both get the same decisions for the same inputs.
//!
//! * [`SchedulerConfig`] defines the offered traffic and the end of the run.
//! * A session arrives as a [`SessionPlan`]: its nodes, their edges and think times, and a payload
//!   of any type.
//! * Planned sessions bring their whole graph; reactive ones grow by [`SchedulerInput::Step`], in
//!   answer to [`Action::AskAgent`].
//!
//! Every instant is taken from the schedule or from an event, never from the time at which the
//! scheduler is called: `intended` is the arrival defined by the traffic, or the last event of a
//! parent that the node waits for plus the think time; in replayed traffic it is no earlier than
//! the node's recorded instant. (The event of a dispatch is the call that decides it.) Lateness is
//! the difference between `intended` and the dispatch.
//!
//! The earlier turns that a node sends are a [`ConversationHistory`], selected by the node's
//! history mode.
#![forbid(unsafe_code)]

mod admission;
mod arrivals;
mod config;
mod contract;
mod conversation;
mod deadline;
mod intake;
mod ready;
mod request_limits;
mod scheduler;
mod session;
mod slots;
mod tools;

pub use arrivals::DrawnArrivals;
pub use config::{ConcurrencyLimits, GracePeriod, Interval, SchedulerConfig, Shard, TrafficRule};
pub use contract::{
    Action, NodeOutcome, NodePlan, NodeWork, SchedulerInput, SessionKind, SessionPlan, ToolRunPlan,
};
pub use conversation::ConversationHistory;
pub use scheduler::{LOOKAHEAD, Scheduler};
pub use tools::ToolClass;
