//! Whether runs differ, and by how much.
#![forbid(unsafe_code)]

mod binned;
mod block_length;
mod bootstrap;
mod comparable;
mod comparison;
mod effect;
mod error;
mod input;
mod judge;
mod measured;
mod options;
mod series;
mod statistic;
mod student;
mod timed_samples;
mod verdict;

pub use comparable::SettingDifference;
pub use comparison::{Candidate, Comparison, Row, SideLabels, SideValue, compare};
pub use effect::Spread;
pub use error::CompareError;
pub use input::{ClientError, FigureData, MetricData, RunData, Side, Validity};
pub use options::{Correction, Options};
pub use statistic::Statistic;
pub use timed_samples::{EXACT_SAMPLES, TimedSamples};
pub use verdict::Verdict;
