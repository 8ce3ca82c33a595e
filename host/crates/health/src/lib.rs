//! Whether a run did what its scenario asked for: checks over the events. Pure.
//!
//! A certificate (`veeksha-metrics`) says how accurately the host measured. Health says something else: whether the load was the
//! one that the scenario describes. A run can be measured perfectly and still have offered half the sessions, prompts of the wrong
//! length, or prompts that the server had in its cache from the run before.
//!
//! [`Health`] takes the events of a run, in any order that threads bring them in, cut anywhere; [`Health::finish`] gives a
//! [`HealthReport`]. What was expected is plain data, [`Expected`]. Memory: a few numbers for each request and session, never
//! their chunks.
//!
//! The checks of Veeksha are all here under their names. Where one of them could not fail (early dispatch, too few sessions at a
//! time) or judged by a measure that hides errors (15 tokens, whatever the length), it is stricter, and the field that decides
//! says why.
#![forbid(unsafe_code)]

mod arrival;
mod cache;
mod concurrency;
mod expected;
mod health;
mod json;
mod lengths;
mod lifecycle;
mod overtaken;
mod rate;
mod report;
mod saturation;
mod sent;
mod session;
mod sessions;
mod text;

pub use expected::{ColdCache, Expected, Gaps, OutputLength, Tolerance, Traffic, WithoutAccount};
pub use health::Health;
pub use report::{Check, Distribution, Figure, HealthReport, Outcome, Unit};
