//! A server of known behaviour on loopback: what the figures are measured against.
//!
//! It answers as vLLM does, to the byte shape, paces each token to the nanosecond that its timer allows, and notes when each request
//! had arrived and when each write began, on the machine's monotonic clock. One thread, one event queue, no runtime: so that it costs
//! little, and is understood easily.

mod connection;
mod event_loop;
mod plan;
mod reply;
mod request;
mod schedule;

pub(crate) use event_loop::Server;
pub(crate) use plan::{Command, Counts, Keep, Plan, Served, Told, Writes};
