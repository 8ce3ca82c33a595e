//! An open loop: one request per interval, independent of earlier responses.

use std::thread;

use veeksha_clock::{minimal_timer_slack, sleep_until};
use veeksha_model::Nanos;
use veeksha_ports::RequestOutcome;

use crate::error::BenchError;
use crate::load::transport::TransportClient;

/// Interval and number of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Interval between requests, in nanoseconds.
    pub(crate) interval: Nanos,
    /// Total requests.
    pub(crate) requests: u64,
}

/// Sends at the given pace from a separate thread; passes each outcome to `on_outcome` on this
/// thread.
pub(crate) fn drive_open(
    client: &TransportClient,
    pace: Pace,
    mut on_outcome: impl FnMut(RequestOutcome),
) -> Result<(), BenchError> {
    let submitter = &client.submitter;
    thread::scope(|scope| {
        let sender = thread::Builder::new().name("bench-pace".to_owned());
        sender
            .spawn_scoped(scope, move || {
                minimal_timer_slack();
                let begin = submitter.clock.now();
                for number in 0..pace.requests {
                    let due = begin + number * pace.interval;
                    sleep_until(submitter.clock, due);
                    submitter.submit(number, due);
                }
            })
            .map_err(BenchError::io("starting a thread"))?;
        for _ in 0..pace.requests {
            on_outcome(client.next()?);
        }
        Ok(())
    })
}
