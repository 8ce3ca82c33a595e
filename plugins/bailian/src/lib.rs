//! The trace flavor `bailian`: the traces of Qwen models that Alibaba Cloud published. Rows that
//! continue one another, also where a conversation forks, are one session; each sends its whole
//! prompt, made of the hash blocks of 16 tokens that it names.
#![forbid(unsafe_code)]

mod config;
mod prompt;
mod replay;

#[cfg(test)]
mod schema;

pub use replay::Bailian;

veeksha_plugin::export_trace_flavor!(Bailian);
