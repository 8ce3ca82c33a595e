//! Counter-based randomness, distributions, percentiles, histograms: pure numbers.
#![forbid(unsafe_code)]
