//! The trace flavor `wildchat`: conversations of people with ChatGPT, with the times at which they
//! really wrote.
#![forbid(unsafe_code)]

mod config;
mod filter;
mod instant;
mod row;
mod times;
mod wildchat;

#[cfg(test)]
mod schema;

pub use wildchat::WildChat;

veeksha_plugin::export_trace_flavor!(WildChat);
