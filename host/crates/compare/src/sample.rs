//! A sample with its instant.

use veeksha_model::Nanos;

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimedSample {
    pub(crate) at: Nanos,
    pub(crate) value: f64,
    pub(crate) weight: f64,
    /// Key of the sample, if given.
    pub(crate) key: Option<u64>,
}
