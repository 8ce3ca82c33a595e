//! Unknown errors.

/// Reason why the error within a run is unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lack {
    /// Too few samples.
    Samples { has: u64, needs: u64 },
    /// Enough samples, but of too few requests.
    Requests { samples: u64, has: u64, needs: u64 },
    /// The samples depend on one another for so long that they are nearly one.
    Blocks,
    /// The statistic has no known error.
    NoError,
    /// A single value without contributions.
    OneValue,
    /// Several runs, whose differences show it.
    Several,
}
