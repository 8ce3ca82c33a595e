//! The trace flavor `single_turn`: AIPerf's rows of one request each, with text, images, audio and
//! video.
#![forbid(unsafe_code)]

mod config;
mod single_turn;

#[cfg(test)]
mod schema;

pub use single_turn::SingleTurn;

veeksha_plugin::export_trace_flavor!(SingleTurn);
