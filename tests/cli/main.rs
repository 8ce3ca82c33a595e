//! The command line, seen from outside: every help text and every message, as snapshots.

#[path = "../support/mod.rs"]
mod support;

mod help;
mod messages;
mod schema;
