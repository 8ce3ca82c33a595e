//! Counter-based randomness, distributions, percentiles, histograms, and numbers as text: pure
//! numbers.
#![forbid(unsafe_code)]

mod drawn_quantity;
mod histogram;
mod percentile;
mod philox;
mod quantity;
mod random;
mod split_mix;
mod step_curve;
mod summary;
mod weighted;

pub use drawn_quantity::DrawnQuantity;
pub use histogram::LiveHistogram;
pub use percentile::{interpolate, percentile};
pub use quantity::{DurationUnit, counted, duration, number, share};
pub use random::{Draws, RandomStream};
pub use split_mix::{GOLDEN_GAMMA, mix64, split_mix64};
pub use step_curve::{CurveSummary, Over, StepCurve};
pub use summary::Summary;
pub use weighted::{WeightedSample, weighted_percentile, weighted_summary};
