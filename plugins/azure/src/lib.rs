//! The trace flavor `azure`: the inference traces that Microsoft published in 2023, 2024 and 2025.
//! Each row is a request by itself, of unique text; there are no conversations and nothing that
//! prompts have in common.
#![forbid(unsafe_code)]

mod config;
mod replay;

#[cfg(test)]
mod schema;

pub use replay::Azure;

veeksha_plugin::export_trace_flavor!(Azure);
