//! How much is asked of a client, and what it cost.

use serde::{Deserialize, Serialize};
use veeksha_clock::RunClock;
use veeksha_model::Nanos;

use crate::BenchError;
use crate::process::{peak_resident, process_cpu};

/// How much is asked of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Load {
    /// Answers that stream at the same time; each has a connection.
    pub(crate) streams: u32,
    /// Answers in all: a stream begins its next one when it has ended.
    pub(crate) replies: u64,
}

/// What a load cost, and how it went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// JSON events received.
    pub(crate) events: u64,
    /// Of those, events with text.
    pub(crate) tokens: u64,
    /// Answers that came to their end.
    pub(crate) replies: u64,
    /// Answers that did not.
    pub(crate) failed: u64,
    /// What the first failure said.
    pub(crate) first_failure: Option<String>,
    /// Reads of the sockets' bytes, where the client counts them.
    pub(crate) reads: Option<u64>,
    /// Events that came out of the same read as an earlier one, where the client counts them.
    pub(crate) merged: Option<u64>,
    /// Processor time of this process meanwhile, user and kernel.
    pub(crate) cpu: Nanos,
    /// Of that, the threads that hold the sockets, where they are threads of their own.
    pub(crate) client_cpu: Option<Nanos>,
    /// Time that passed.
    pub(crate) wall: Nanos,
    /// Peak of this process's resident memory so far, in bytes.
    pub(crate) peak_resident: Option<u64>,
}

impl Cost {
    /// Processor time for each event, in microseconds.
    pub(crate) fn micros_per_event(&self) -> Option<f64> {
        per(self.cpu, self.events)
    }

    /// The same, of the threads that hold the sockets.
    pub(crate) fn client_micros_per_event(&self) -> Option<f64> {
        per(self.client_cpu?, self.events)
    }

    /// Events in each second that passed.
    pub(crate) fn events_per_second(&self) -> Option<f64> {
        (self.wall > 0).then(|| self.events as f64 / (self.wall as f64 / 1e9))
    }

    /// An error if any answer failed, or if there are fewer events than the answers have.
    pub(crate) fn checked(self, events_each: u64) -> Result<Self, BenchError> {
        if self.failed > 0 || self.replies == 0 {
            return Err(BenchError::Requests {
                failed: self.failed,
                all: self.failed + self.replies,
                first: self.first_failure.unwrap_or_else(|| "no answer came".to_owned()),
            });
        }
        if self.events != self.replies * events_each {
            return Err(BenchError::Empty(
                "the client did not count as many events as the server sent",
            ));
        }
        Ok(self)
    }
}

fn per(nanos: Nanos, events: u64) -> Option<f64> {
    (events > 0).then(|| nanos as f64 / 1e3 / events as f64)
}

/// Processor time and time since it was started.
#[derive(Debug)]
pub(crate) struct Meter {
    clock: RunClock,
    cpu: Nanos,
}

impl Meter {
    pub(crate) fn start() -> Self {
        Meter {
            cpu: process_cpu(),
            clock: RunClock::starting_now(),
        }
    }

    /// Puts what was used since the start into `cost`.
    pub(crate) fn read(&self, cost: &mut Cost) {
        cost.wall = self.clock.now();
        cost.cpu = process_cpu().saturating_sub(self.cpu);
        cost.peak_resident = peak_resident();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_an_event() {
        let cost = Cost {
            events: 2_000,
            cpu: 3_000_000,
            client_cpu: Some(1_000_000),
            wall: 4_000_000,
            ..Cost::default()
        };
        assert_eq!(cost.micros_per_event(), Some(1.5));
        assert_eq!(cost.client_micros_per_event(), Some(0.5));
        assert_eq!(cost.events_per_second(), Some(500_000.0));
        assert_eq!(Cost::default().micros_per_event(), None);
        assert_eq!(Cost::default().events_per_second(), None);
    }

    #[test]
    fn a_cost_with_a_failure_or_a_lost_event_is_no_figure() {
        let good = Cost {
            replies: 10,
            events: 660,
            ..Cost::default()
        };
        assert!(good.clone().checked(66).is_ok());
        assert!(good.clone().checked(65).is_err());
        assert!(Cost { failed: 1, ..good }.checked(66).is_err());
        assert!(Cost::default().checked(66).is_err());
    }
}
