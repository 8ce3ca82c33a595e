//! The threads and queues of a run, from prefetch through dispatch and client to completion.
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
//! A dispatcher owns a [`veeksha_scheduler::Scheduler`]; it only passes the time to it and executes
//! its actions. Plugins run on the workers only, so a slow plugin causes starvation, but never
//! delays a thread.
//!
//! Several processes can share a run, each with a part of its sessions ([`Plan::shard`]). A
//! [`ReplaySchedule`] maps recorded instants to the run's clock. The sessions of [`Plan::warmup`]
//! are sent before the clock starts, one request after the other.
//!
//! [`run`] drives a real transport with the real clock. [`simulate`] drives the same scheduler and
//! the simulator's engine with virtual time, in one thread.
#![forbid(unsafe_code)]

mod arrivals;
mod chunk_tokens;
mod clients;
mod completion;
mod control;
mod dispatcher;
mod entry;
mod fallback;
mod first_chunks;
mod inbox;
mod live_agents;
mod lookahead;
mod made;
mod partition;
mod pieces;
mod plan;
mod prefetch;
mod prepare;
mod run;
mod schedule;
mod tool_runs;
mod virtual_time;
mod warm_transport;
mod warmup;
mod watch;
mod work_digest;

pub use clients::{CLIENT_LABEL, ClientSpec, ClientSpecs, engine_seed};
pub use control::Control;
pub use entry::{EntryContent, EventEntry};
pub use fallback::MinTokensPrompt;
pub use pieces::{AnswerSource, PromptSource};
pub use plan::{OnDispatcherStart, PipelineError, Plan, RunEnd, ThreadSampler, UnstartedSessions};
pub use run::run;
pub use schedule::ReplaySchedule;
pub use tool_runs::{ToolSpec, ToolSpecs};
pub use virtual_time::{SimulatedTarget, SimulatedTargets, simulate};
