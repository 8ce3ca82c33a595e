//! The result of a benchmark.

use crate::error::BenchError;
use crate::report::Measurement;

/// Measurements for the report, or the reason why there are none.
pub(super) type BenchResult = Result<Vec<Measurement>, BenchError>;
