//! Counter-based randomness, distributions, percentiles, histograms: pure numbers.
#![forbid(unsafe_code)]

mod philox;
mod random;

pub use random::{Draws, RandomStream};
