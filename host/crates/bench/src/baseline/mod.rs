//! The baseline: a minimal client with one thread, one event queue, one read buffer, no async
//! runtime and no JSON parser.
//!
//! It is a yardstick for our own costs, not a usable client: it understands only the bench server.

mod client;
mod response_reader;

pub(crate) use client::{Baseline, ObservedResponse};
