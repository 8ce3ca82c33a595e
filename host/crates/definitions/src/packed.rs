//! Optional numbers without the space of a separate flag: an evaluator keeps them per request.

use veeksha_model::Nanos;

/// An instant that may not exist, in eight bytes. A missing one is later than all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OptionalInstant(Nanos);

impl OptionalInstant {
    /// No instant.
    pub const NONE: OptionalInstant = OptionalInstant(Nanos::MAX);

    /// Packs an instant.
    pub fn of(at: Option<Nanos>) -> Self {
        at.map_or(OptionalInstant::NONE, OptionalInstant)
    }

    /// Returns the instant, if there is one.
    pub fn get(self) -> Option<Nanos> {
        (self != OptionalInstant::NONE).then_some(self.0)
    }
}

/// A number of tokens that may not be known, in four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionalTokens(u32);

impl OptionalTokens {
    const NONE: OptionalTokens = OptionalTokens(u32::MAX);

    /// Packs a number of tokens.
    pub fn of(tokens: Option<u32>) -> Self {
        tokens.map_or(OptionalTokens::NONE, |tokens| {
            OptionalTokens(tokens.min(u32::MAX - 1))
        })
    }

    /// Returns the number, if it is known.
    pub fn get(self) -> Option<u32> {
        (self != OptionalTokens::NONE).then_some(self.0)
    }
}
