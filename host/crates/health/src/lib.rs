//! Checks that a run followed its scenario, computed from its events. Pure.
//!
//! The certificate (`veeksha-certificate`) states how accurate the measurement is. Health states
//! whether the load followed the scenario: an accurately measured run can still have half the
//! sessions, prompts of the wrong length, or prompts that the server had cached from an earlier
//! run.
//!
//! [`Health`] consumes the events of a run in the order in which threads deliver them, possibly
//! truncated; [`Health::finish`] returns a [`HealthReport`]. The expectations are plain data,
//! [`Expected`]. Memory use is a few numbers for each request and session, never their chunks.
//!
//! All of Veeksha's checks exist here under their names. Where one of them could not fail (early
//! dispatch, too few concurrent sessions) or used a measure that hides errors (15 tokens, whatever
//! the length), this crate is stricter; the field that holds the bound documents the reason.
#![forbid(unsafe_code)]

mod arrival;
mod cache;
mod cancellation;
mod concurrency;
mod expected;
mod health;
mod json;
mod lengths;
mod lifecycle;
mod overtaken;
mod plugins;
mod rate;
mod report;
mod saturation;
mod sent;
mod session;
mod sessions;
mod text;

pub use expected::{ColdCache, Expected, ExpectedTraffic, GapVariation, OutputLength, Tolerance};
pub use health::Health;
pub use report::{CheckDistribution, CheckValue, HealthCheck, HealthOutcome, HealthReport, ValueUnit};
