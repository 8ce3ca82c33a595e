//! Each check on a run that meets its expectations and on one that does not; expected values are
//! worked out by hand.
#![forbid(unsafe_code)]
#![expect(clippy::panic, reason = "helpers of tests fail as tests do")]

mod accounting;
mod any_events;
mod arrival;
mod cache;
mod cancellation;
mod concurrency;
mod lengths;
mod lifecycle;
mod plugins;
mod rate;
mod report;
mod saturation;
mod sent;
mod support;
