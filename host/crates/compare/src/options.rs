//! Options of a comparison.

use crate::error::CompareError;

/// Options of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct CompareOptions {
    /// Confidence of intervals and verdicts: 0.95.
    pub confidence: f64,
    /// Resamples of each run and statistic: 1000, which gives the standard error to about 2 %.
    pub resamples: usize,
    /// Seed of the resampling. Equal seeds give equal results.
    pub seed: u64,
    /// Smallest relative change that matters: 0.01. `None`: every significant change does.
    pub smallest: Option<f64>,
    /// Correction for multiple comparisons.
    pub correction: Correction,
    /// Treatment of runs and metrics that a certificate calls INVALID.
    pub invalid: Invalid,
}

/// Treatment of runs and metrics that a certificate calls INVALID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Invalid {
    /// They are shown but not judged.
    #[default]
    NotComparable,
    /// They are judged as if they were valid, with a remark.
    Judged,
}

/// Correction for multiple comparisons: of a hundred equal metrics, five are outside their 95 %
/// intervals by chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Correction {
    /// Holm's step-down procedure (1979) over all rows of a candidate that have a better side: the
    /// probability that any of them is wrongly called better or worse is that of a single one.
    /// Intervals remain those of each row by itself.
    #[default]
    Holm,
    /// Each row is judged by itself.
    Each,
}

impl Default for CompareOptions {
    fn default() -> Self {
        CompareOptions {
            confidence: 0.95,
            resamples: 1000,
            seed: 0,
            smallest: None,
            correction: Correction::Holm,
            invalid: Invalid::NotComparable,
        }
    }
}

impl CompareOptions {
    pub(crate) fn check(&self) -> Result<(), CompareError> {
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            return Err(CompareError::Confidence(self.confidence));
        }
        if !(100..=1_000_000).contains(&self.resamples) {
            return Err(CompareError::Resamples(self.resamples));
        }
        match self.smallest {
            Some(smallest) if !(smallest >= 0.0 && smallest.is_finite()) => {
                Err(CompareError::Smallest(smallest))
            }
            _ => Ok(()),
        }
    }
}
