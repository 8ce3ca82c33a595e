//! A simulated inference engine, and an HTTP server around it.
//!
//! * [`Engine`] is a discrete-event model of continuous batching: chunked prefill, decode, a batch
//!   limit, KV blocks with preemption, a prefix cache, seeded noise and seeded faults. It reads no
//!   clock and starts no thread: its driver passes the time, so an hour of traffic runs in seconds
//!   and gives the same events every time.
//! * [`Profile`] sets the costs and faults of the engine. [`text`] turns prompts into the block
//!   hashes that the prefix cache compares.
//! * [`SimServer`] serves the engine over HTTP with the APIs of inference servers, and records the
//!   true send time of every chunk ([`TruthRecord`]), so that a client's measurements can be
//!   checked against it.
#![forbid(unsafe_code)]

mod engine;
mod profile;
mod profile_check;
mod server;
pub mod text;
mod tools;
mod wire_fault;

pub use engine::{Engine, EngineEvent, EngineRequest, EngineStats, Fault, FinishReason};
pub use profile::{Constant, Faults, Profile};
pub use profile_check::ProfileError;
pub use server::{
    Pacing, ServerStats, SimError, SimOptions, SimServer, Tokenize, TruthLineError, TruthOutcome,
    TruthRecord, truth_line,
};
pub use tools::required_tool;
pub use wire_fault::{WireFault, WireRule};
