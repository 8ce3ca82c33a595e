//! The trace flavor `untimed_content_multi_turn`: recorded conversations with their real text. Each
//! row holds one; each answer in it is asked for again, at its recorded length, after the
//! conversation as it was recorded.
#![forbid(unsafe_code)]

mod config;
mod dialect;
mod untimed;

#[cfg(test)]
mod schema;

pub use untimed::UntimedContentMultiTurn;

veeksha_plugin::export_trace_flavor!(UntimedContentMultiTurn);
