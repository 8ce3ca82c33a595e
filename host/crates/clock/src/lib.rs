//! The only place that reads time.
//!
//! A run has one origin; every timestamp is [`veeksha_model::Nanos`] since then on
//! `CLOCK_MONOTONIC`. State machines never see a clock: they take `now` as an argument.
//! [`RunClock`] is what the threads of a real run hold; a simulation counts its own time.
#![forbid(unsafe_code)]

mod run_clock;
mod wait;
mod wall;

pub use run_clock::RunClock;
pub use wait::{minimal_timer_slack, sleep_until};
pub use wall::{utc_stamp, wall_nanos};
