//! How runs are compared.

use crate::error::CompareError;

/// How runs are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How sure intervals and verdicts are: 0.95.
    pub confidence: f64,
    /// Resamples of each run and statistic: 1000. The standard error is then known to about 2 %.
    pub resamples: usize,
    /// The seed of the resampling. The same seed gives the same figures.
    pub seed: u64,
    /// Relative changes smaller than this do not matter: 0.01. `None`: all that can be seen do.
    pub smallest: Option<f64>,
    /// What is done about many figures being looked at.
    pub correction: Correction,
    /// What is done about what a certificate calls INVALID.
    pub invalid: Invalid,
}

/// What is done about runs and metrics that a certificate calls INVALID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Invalid {
    /// They are shown and not judged.
    #[default]
    NotComparable,
    /// They are judged as if they were valid, and a remark says so.
    Judged,
}

/// What is done about many figures being looked at: of a hundred that do not differ, five lie outside of their 95 % intervals by chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Correction {
    /// Verdicts are by Holm's step-down procedure (1979) over all figures of a candidate that have a better side: the chance that one or more
    /// of them are called better or worse without being so is that of a single figure. Intervals stay those of each figure by itself.
    #[default]
    Holm,
    /// Each figure is judged by itself.
    Each,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            confidence: 0.95,
            resamples: 1000,
            seed: 0,
            smallest: None,
            correction: Correction::Holm,
            invalid: Invalid::NotComparable,
        }
    }
}

impl Options {
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
