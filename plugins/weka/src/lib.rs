//! The trace flavor `weka`: captures of coding agents (Claude Code), one conversation a row, with
//! the subagents that it started. Each request sends its whole prompt, made of the hash blocks that
//! it names, when those before it are answered.
#![forbid(unsafe_code)]

mod calls;
mod config;
mod replay;
mod row;
mod runs;

#[cfg(test)]
mod schema;
#[cfg(test)]
mod testing;

pub use replay::Weka;

veeksha_plugin::export_trace_flavor!(Weka);
