//! Counter-based randomness, distributions, percentiles, histograms: pure numbers.
#![forbid(unsafe_code)]

mod histogram;
mod percentile;
mod philox;
mod random;
mod summary;

pub use histogram::LiveHistogram;
pub use percentile::{interpolate, percentile};
pub use random::{Draws, RandomStream};
pub use summary::Summary;
