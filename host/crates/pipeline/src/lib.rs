//! The shell around the pure machines: threads and queues from prefetch over dispatch and client to completion.
//!
//! ```text
//! plugin workers ──sessions──▶ dispatcher(s) ──jobs──▶ transport ──outcomes──▶ completion threads
//!       ▲                        │      ▲                                          │
//!       └──── answers (agents) ──┘      └───────────────── answered / failed ──────┘
//! ```
//!
//! A dispatcher owns a [`veeksha_scheduler::Scheduler`] and does nothing but feed it the time and carry out its actions.
//! Plugins run on the workers only; a plugin that is late shows as starvation, never as a late thread.
//!
//! [`run`] drives a real transport with the real clock. [`simulate`] drives the same scheduler and the simulator's engine
//! with virtual time, in one thread.
#![forbid(unsafe_code)]

mod completion;
mod control;
mod dispatcher;
mod entry;
mod fallback;
mod plan;
mod prefetch;
mod run;
mod virtual_time;

pub use control::Control;
pub use entry::{Content, Entry};
pub use fallback::MinTokensPrompt;
pub use plan::{PipelineError, Plan, RunEnd};
pub use run::run;
pub use virtual_time::{SimulatedTarget, simulate};
