//! Faults of a request, drawn when it arrives.

use veeksha_stats::{Draws, RandomStream};

use crate::profile::Faults;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    Drop,
    Error,
    Truncate,
    Stall,
}

/// A fault that replaces a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlannedFault {
    pub(super) kind: FaultKind,
    /// Number of tokens before it.
    pub(super) after: u32,
}

/// Handling of a request on arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrivalFault {
    Open,
    Refuse,
    Status(u16),
}

/// The draws of one request. Their number is constant, so that raising one probability does not
/// change the others.
pub(super) struct FaultDraws {
    on_arrival: f64,
    inside: f64,
    place: Draws,
}

impl FaultDraws {
    pub(super) fn of(seed: u64, ordinal: u64) -> Self {
        let mut draws = RandomStream::new(seed, ordinal, "simulator faults").draws();
        FaultDraws {
            on_arrival: draws.unit(),
            inside: draws.unit(),
            place: draws,
        }
    }

    pub(super) fn on_arrival(&self, faults: &Faults) -> ArrivalFault {
        let table = [
            (faults.refuse_probability, ArrivalFault::Refuse),
            (faults.status_429_probability, ArrivalFault::Status(429)),
            (faults.status_500_probability, ArrivalFault::Status(500)),
            (faults.status_503_probability, ArrivalFault::Status(503)),
        ];
        pick(self.on_arrival, &table).unwrap_or(ArrivalFault::Open)
    }

    /// Returns the fault inside an answer of `length` tokens.
    pub(super) fn inside(mut self, faults: &Faults, length: u32) -> Option<PlannedFault> {
        let table = [
            (faults.drop_connection_probability, FaultKind::Drop),
            (faults.midstream_error_probability, FaultKind::Error),
            (faults.truncate_probability, FaultKind::Truncate),
            (faults.stall_probability, FaultKind::Stall),
        ];
        let kind = pick(self.inside, &table)?;
        let after = match faults.after_tokens {
            Some(tokens) => tokens.min(length.saturating_sub(1)),
            None => self.place.below(length),
        };
        Some(PlannedFault { kind, after })
    }
}

/// Returns the entry whose share of `[0, 1)` contains the draw.
fn pick<T: Copy>(draw: f64, table: &[(f64, T)]) -> Option<T> {
    let mut upper = 0.0;
    table.iter().find_map(|&(probability, value)| {
        upper += probability;
        (draw < upper).then_some(value)
    })
}

/// Returns the message of a rejection with this status.
pub(super) fn status_message(status: u16) -> &'static str {
    match status {
        429 => "too many requests: the simulated rate limit was hit (faults.status_429_probability)",
        500 => "the simulated engine failed (faults.status_500_probability)",
        _ => "the simulated engine is not available (faults.status_503_probability)",
    }
}
