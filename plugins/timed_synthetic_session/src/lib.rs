//! The trace flavor `timed_synthetic_session`: sessions of recorded lengths and think times. A
//! session is a graph of requests (`session_context`) or a chain; lineages, the conversations
//! within it, never begin with the same text.
#![forbid(unsafe_code)]

mod config;
mod context;
mod graph;
mod linear;
mod node;
mod timed;

#[cfg(test)]
mod schema;
#[cfg(test)]
mod testing;

pub use timed::TimedSyntheticSession;

veeksha_plugin::export_trace_flavor!(TimedSyntheticSession);
