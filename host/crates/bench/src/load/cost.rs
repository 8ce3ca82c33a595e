//! Load and cost of a client.

use serde::{Deserialize, Serialize};
use veeksha_clock::RunClock;
use veeksha_model::Nanos;

use crate::error::BenchError;
use crate::process::{peak_resident, process_cpu};

/// The load on a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StreamLoad {
    /// Concurrent streams, one connection each.
    pub(crate) streams: u32,
    /// Total responses; a stream starts its next one when the previous one has ended.
    pub(crate) replies: u64,
}

/// Cost and result of a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// JSON events received.
    pub(crate) events: u64,
    /// Of those, events with text.
    pub(crate) tokens: u64,
    /// Completed responses.
    pub(crate) replies: u64,
    /// Failed responses.
    pub(crate) failed: u64,
    /// Message of the first failure.
    pub(crate) first_failure: Option<String>,
    /// Socket reads, if the client counts them.
    pub(crate) reads: Option<u64>,
    /// Events that shared a read with an earlier one, if the client counts them.
    pub(crate) merged: Option<u64>,
    /// Processor time of this process during the load, user and kernel.
    pub(crate) cpu: Nanos,
    /// Of that, the client threads, if they are separate threads.
    pub(crate) client_cpu: Option<Nanos>,
    /// Elapsed time.
    pub(crate) wall: Nanos,
    /// Peak resident memory of this process so far, in bytes.
    pub(crate) peak_resident: Option<u64>,
}

impl Cost {
    /// Returns the processor time per event, in microseconds.
    pub(crate) fn micros_per_event(&self) -> Option<f64> {
        per(self.cpu, self.events)
    }

    /// Returns the processor time per event of the client threads, in microseconds.
    pub(crate) fn client_micros_per_event(&self) -> Option<f64> {
        per(self.client_cpu?, self.events)
    }

    /// Returns events per second of elapsed time.
    pub(crate) fn events_per_second(&self) -> Option<f64> {
        (self.wall > 0).then(|| self.events as f64 / (self.wall as f64 / 1e9))
    }

    /// Returns an error if a response failed or events are missing.
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

/// Processor time and elapsed time since its start.
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

    /// Stores the usage since the start in `cost`.
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
    fn computes_cost_per_event() {
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
    fn rejects_costs_with_failures_or_missing_events() {
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
