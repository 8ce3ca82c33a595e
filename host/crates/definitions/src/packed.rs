//! Optional numbers without a separate flag: an evaluator keeps several of them per request.

use veeksha_model::Nanos;

/// An optional instant in eight bytes. A missing instant orders after all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OptionalInstant(Nanos);

impl OptionalInstant {
    /// The missing instant.
    pub const NONE: OptionalInstant = OptionalInstant(Nanos::MAX);

    /// Packs an instant.
    pub fn of(at: Option<Nanos>) -> Self {
        at.map_or(OptionalInstant::NONE, OptionalInstant)
    }

    /// Returns the instant, if present.
    pub fn get(self) -> Option<Nanos> {
        (self != OptionalInstant::NONE).then_some(self.0)
    }
}

/// An optional token count in four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionalTokens(u32);

impl OptionalTokens {
    const NONE: OptionalTokens = OptionalTokens(u32::MAX);

    /// Packs a token count.
    pub fn of(tokens: Option<u32>) -> Self {
        tokens.map_or(OptionalTokens::NONE, |tokens| {
            OptionalTokens(tokens.min(u32::MAX - 1))
        })
    }

    /// Returns the count, if known.
    pub fn get(self) -> Option<u32> {
        (self != OptionalTokens::NONE).then_some(self.0)
    }
}
