//! Each check on a run that does as it should and on one that does not; figures worked out by hand.
#![forbid(unsafe_code)]
#![expect(clippy::panic, reason = "helpers of tests fail as tests do")]

mod accounting;
mod any_events;
mod arrival;
mod cache;
mod concurrency;
mod lengths;
mod lifecycle;
mod rate;
mod report;
mod saturation;
mod sent;
mod support;
