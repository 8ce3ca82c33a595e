//! A run in virtual time: the same scheduler, the simulator's engine, one loop, no clock.
//!
//! Time jumps from one event to the next, so the result depends on the inputs alone and comes out
//! bit for bit the same. What a network and a client would add is zero here, and so is what a chat
//! template would.

mod in_flight;
mod prompt;
mod server;
mod servers;
mod simulation;
mod source;
mod warm_engine;

pub use servers::{SimulatedTarget, SimulatedTargets};
pub use simulation::simulate;
