//! A run in virtual time: the same scheduler, the simulator's engine, one loop, no clock.
//!
//! Time jumps from one event to the next, so the result depends on the inputs alone and comes out bit for bit the same.
//! What a network and a client would add is zero here.

mod flight;
mod simulation;
mod source;

pub use simulation::{SimulatedTarget, simulate};
