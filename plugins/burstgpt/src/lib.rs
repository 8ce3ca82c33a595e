//! The trace flavor `burstgpt`: the requests to ChatGPT and GPT-4 of a campus, as a CSV table bound
//! by its header. Rows of one conversation are the turns of one session, each continuing the real
//! answers.
#![forbid(unsafe_code)]

mod config;
mod replay;
mod row;

#[cfg(test)]
mod schema;

pub use replay::BurstGpt;

veeksha_plugin::export_trace_flavor!(BurstGpt);
