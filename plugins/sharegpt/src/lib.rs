//! The trace flavor `sharegpt`: whole conversations between people and assistants, sent turn by
//! turn.
#![forbid(unsafe_code)]

mod config;
mod limits;
mod sharegpt;

#[cfg(test)]
mod schema;

pub use sharegpt::ShareGpt;

veeksha_plugin::export_trace_flavor!(ShareGpt);
