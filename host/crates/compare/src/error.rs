//! Errors of a comparison.

/// Invalid input of a comparison.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CompareError {
    /// Fewer than two sides.
    #[error("a comparison needs at least two sides, and there {}", if *.0 == 1 { "is one" } else { "are none" })]
    TooFewSides(usize),
    /// A side has no runs.
    #[error("the side `{0}` has no runs; give at least one")]
    NoRuns(String),
    /// Two sides have the same label.
    #[error("two sides are called `{0}`; give them different names")]
    SameLabel(String),
    /// The confidence is not a probability.
    #[error("a confidence of {0} is none; it lies between 0 and 1, such as 0.95")]
    Confidence(f64),
    /// The number of resamples is out of range.
    #[error("{0} resamples are too few or too many; give 100 to 1000000, such as 1000")]
    Resamples(usize),
    /// The smallest relevant change is not a share.
    #[error("the smallest change that matters is a share of 0 or more, such as 0.01, and {0} is not")]
    Smallest(f64),
}
