//! Progress of a request.

use crate::connecting::OpeningStep;

/// Progress of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlightPhase {
    /// Its connection is being opened.
    Opening(OpeningStep),
    /// The request is being sent.
    Sending,
    /// The request was sent.
    Waiting,
    /// The answer has begun.
    Answered,
}

impl FlightPhase {
    /// Returns a human-readable description of the phase in which a request was cancelled after
    /// `events` events.
    pub(crate) fn description(self, events: usize) -> String {
        match self {
            FlightPhase::Opening(step) => step.description().to_owned(),
            FlightPhase::Sending => "while sending the request".to_owned(),
            FlightPhase::Waiting => "while waiting for the answer".to_owned(),
            FlightPhase::Answered => format!("in the middle of the answer, after {events} events"),
        }
    }
}
