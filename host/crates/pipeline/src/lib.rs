//! The shell around the pure machines: threads and queues from prefetch over dispatch and client to
//! completion.
//!
//! ```text
//! plugin workers ──sessions──▶ dispatcher(s) ──jobs──▶ transport ──outcomes──▶ completion threads
//!       ▲                        │      ▲                                          │
//!       └──── answers (agents) ──┘      └───────────────── answered / failed ──────┘
//! ```
//!
//! Where requests in prefill are limited, client threads also notify the dispatchers of first
//! chunks. A dedicated thread samples the machine about once a second ([`Plan::thread_watch`]).
//!
//! A dispatcher owns a [`veeksha_scheduler::Scheduler`] and does nothing but feed it the time and
//! carry out its actions. Plugins run on the workers only; a plugin that is late shows as
//! starvation, never as a late thread.
//!
//! Several processes can share a run, each with a part of its sessions ([`Plan::shard`]); recorded
//! instants are mapped to the run's clock by a [`Schedule`]; and before the clock starts the
//! sessions of [`Plan::warmup`] are sent, one request after the other.
//!
//! [`run`] drives a real transport with the real clock. [`simulate`] drives the same scheduler and
//! the simulator's engine with virtual time, in one thread.
#![forbid(unsafe_code)]

mod chunk_tokens;
mod completion;
mod control;
mod dispatcher;
mod entry;
mod fallback;
mod first_chunks;
mod inbox;
mod lookahead;
mod partition;
mod pieces;
mod plan;
mod prefetch;
mod prepare;
mod run;
mod schedule;
mod virtual_time;
mod warm_transport;
mod warmup;
mod watch;
mod work_digest;

pub use control::Control;
pub use entry::{Content, EventEntry};
pub use fallback::MinTokensPrompt;
pub use plan::{OnDispatcherStart, PipelineError, Plan, RunEnd, ThreadWatch};
pub use run::run;
pub use schedule::Schedule;
pub use virtual_time::{SimulatedTarget, simulate};
