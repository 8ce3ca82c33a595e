//! The command line from outside: every help text and every message, as snapshots.

#![expect(clippy::expect_used, reason = "a test printed what is wrong by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod help;
mod messages;
mod metrics;
mod plugin_projects;
mod refused;
mod schema;
mod traces;
