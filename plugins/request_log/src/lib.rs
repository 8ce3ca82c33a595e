//! The trace flavor `request_log`: rows that say how long a prompt and its answer were. Each row is
//! a request; rows with the same `session_id` are the turns of one conversation.
#![forbid(unsafe_code)]

mod config;
mod request_log;

#[cfg(test)]
mod schema;

pub use request_log::RequestLog;

veeksha_plugin::export_trace_flavor!(RequestLog);
