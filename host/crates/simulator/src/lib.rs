//! A pure model of an inference engine, and its HTTP face.
//!
//! * [`Engine`] is a discrete-event model of continuous batching: chunked prefill, decode, a batch limit, KV blocks with
//!   preemption, a prefix cache, seeded noise and seeded faults. It reads no clock and starts no thread: whoever drives it
//!   says what time it is, so an hour of traffic runs in seconds and gives the same events every time.
//! * [`Profile`] says what the modelled engine costs and how it fails. [`text`] turns prompts into the block hashes that
//!   the prefix cache compares.
//! * [`SimServer`] puts the engine behind an HTTP server that speaks the APIs of inference servers, and writes down the true
//!   send time of every chunk ([`TruthRecord`]), so that a client's figures can be checked against it.
#![forbid(unsafe_code)]

mod engine;
mod profile;
mod profile_check;
mod profile_wire;
mod server;
pub mod text;

pub use engine::{Engine, EngineEvent, EngineRequest, EngineStats, Fault, FinishReason};
pub use profile::{Constant, Faults, Profile};
pub use profile_check::ProfileError;
pub use profile_wire::{WireFault, WireRule};
pub use server::{
    Pacing, ServerStats, SimError, SimOptions, SimServer, Tokenize, TruthLineError, TruthOutcome,
    TruthRecord, truth_line,
};
