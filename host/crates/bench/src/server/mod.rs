//! A loopback server of known behavior, the reference of the measurements.
//!
//! It answers with vLLM's byte shapes, paces tokens with a nanosecond timer, and logs on the
//! monotonic clock when each request had arrived and when each write began. One thread, one event
//! queue, no async runtime keep it cheap and easy to follow.

mod connection;
mod event_loop;
mod plan;
mod reply;
mod request;
mod schedule;

pub(crate) use event_loop::EventLoop;
pub(crate) use plan::{
    ChildMessage, LogEntry, LogMode, ResponsePlan, ServerCommand, ServerCounters, WriteMode,
};
