//! Tests of the public API, in one binary.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod agent_tools;
mod agents;
mod arrivals;
mod common;
mod complete_messages;
mod evaluators;
mod flavor;
mod load;
mod planned;
mod sandbox;
mod subagents;
