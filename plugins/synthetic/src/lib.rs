//! The session generator `synthetic`: sessions of a planned graph (one request, a chain, a layered
//! graph), with the lengths of prompts and answers and the waits between turns drawn from
//! distributions. Its keys and defaults are Veeksha's.
//!
//! A session depends on (configuration, seed, index) alone. Each concern draws from a random stream
//! separate, so that a change of one distribution leaves what the others draw as it was.
#![forbid(unsafe_code)]

mod config;
mod content;
mod draw;
mod graph;
mod interval;
mod inverse_gaussian;
mod length;
mod media;
mod text;
mod workload;
mod zipf;

#[cfg(test)]
mod schema;
#[cfg(test)]
mod testing;

pub use workload::Synthetic;

veeksha_plugin::export_session_generator!(Synthetic);
