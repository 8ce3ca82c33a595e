//! The trace flavor `multi_turn`: AIPerf's conversations of several turns, with text, images, audio
//! and video; a turn may have messages of several roles.
#![forbid(unsafe_code)]

mod clock;
mod config;
mod multi_turn;
mod row;
mod turns;

#[cfg(test)]
mod schema;

pub use multi_turn::MultiTurn;

veeksha_plugin::export_trace_flavor!(MultiTurn);
