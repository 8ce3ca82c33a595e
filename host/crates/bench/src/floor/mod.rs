//! The least that a client can cost: one thread, one event queue, one read buffer, no runtime, no parser of JSON.
//!
//! It is the measure beside our own figures, not a client to use: it understands the bench's own server and little else.

mod answer;
mod client;

pub(crate) use client::{Floor, Seen};
