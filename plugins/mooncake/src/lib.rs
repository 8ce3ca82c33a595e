//! The trace flavor `mooncake`: rows that name the hash blocks of their prompts, as Mooncake
//! published them, with the columns that Dynamo and AIPerf added: sessions of turns, dependencies,
//! waits for tools, prompts in full.
#![forbid(unsafe_code)]

mod config;
mod content;
mod order;
mod replay;
mod row;

#[cfg(test)]
mod schema;
#[cfg(test)]
mod testing;

pub use replay::Mooncake;

veeksha_plugin::export_trace_flavor!(Mooncake);
