//! Statistics, conversion and synthesis of traces.
//!
//! Everything here is a pure function of a trace's sessions ([`veeksha_model::Session`], with what
//! was recorded of each request), without file access or clock. [`TraceStatsBuilder`] computes
//! statistics of a trace, [`Converter`] writes it in another format, and a [`TraceModel`] fitted to
//! it generates traces with the same distributions.
#![forbid(unsafe_code)]

mod arrivals;
mod blocks;
mod conversation;
mod convert;
mod distribution;
#[cfg(test)]
mod fixture;
mod labels;
mod stats_builder;
mod synthesis;
mod tally;
mod trace_stats;

pub use arrivals::ArrivalStats;
pub use convert::{BLOCK_SIZE, ConvertError, Converter, Loss, TargetFormat, UnknownFormat};
pub use distribution::{Bin, Distribution, QuantityUnit};
pub use labels::LabelValues;
pub use stats_builder::TraceStatsBuilder;
pub use synthesis::{GeneratedRows, Synthesis, SynthesisError, TraceModel, TraceModelFit};
pub use trace_stats::{GraphCounts, PrefixReport, TraceStats};
