//! Why nothing can be compared.

/// Why nothing can be compared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CompareError {
    /// There is no other side.
    #[error("a comparison needs at least two sides, and there {}", if *.0 == 1 { "is one" } else { "are none" })]
    TooFewSides(usize),
    /// A side is empty.
    #[error("the side `{0}` has no runs; give at least one")]
    NoRuns(String),
    /// Two sides cannot be told apart.
    #[error("two sides are called `{0}`; give them different names")]
    SameLabel(String),
    /// The confidence is no probability.
    #[error("a confidence of {0} is none; it lies between 0 and 1, such as 0.95")]
    Confidence(f64),
    /// Too few resamples to say anything, or more than help.
    #[error("{0} resamples are too few or too many; give 100 to 1000000, such as 1000")]
    Resamples(usize),
    /// The smallest change that matters is none.
    #[error("the smallest change that matters is a share of 0 or more, such as 0.01, and {0} is not")]
    Smallest(f64),
}
