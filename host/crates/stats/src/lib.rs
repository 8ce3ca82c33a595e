//! Counter-based randomness, distributions, percentiles, histograms, and numbers as text: pure
//! numbers.
#![forbid(unsafe_code)]

mod histogram;
mod percentile;
mod philox;
mod quantity;
mod random;
mod step_curve;
mod summary;
mod weighted;

pub use histogram::LiveHistogram;
pub use percentile::{interpolate, percentile};
pub use quantity::{counted, duration, number, share};
pub use random::{Draws, RandomStream};
pub use step_curve::{CurveSummary, Over, StepCurve};
pub use summary::Summary;
pub use weighted::{WeightedSample, weighted_percentile, weighted_summary};
