//! An open loop: a request at every interval, whatever became of those before.

use std::thread;

use veeksha_clock::{minimal_timer_slack, sleep_until};
use veeksha_model::Nanos;
use veeksha_ports::Outcome;

use super::Client;
use crate::BenchError;

/// How often a request is sent, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// From each request to the next, in nanoseconds.
    pub(crate) interval: Nanos,
    /// Requests in all.
    pub(crate) requests: u64,
}

/// Sends at the pace from a thread of its own; gives each outcome to `on_outcome`, on this thread.
pub(crate) fn drive_open(
    client: &Client,
    pace: Pace,
    mut on_outcome: impl FnMut(Outcome),
) -> Result<(), BenchError> {
    let sending = &client.sending;
    thread::scope(|scope| {
        let sender = thread::Builder::new().name("bench-pace".to_owned());
        sender
            .spawn_scoped(scope, move || {
                minimal_timer_slack();
                let begin = sending.clock.now();
                for number in 0..pace.requests {
                    let due = begin + number * pace.interval;
                    sleep_until(sending.clock, due);
                    sending.submit(number, due);
                }
            })
            .map_err(BenchError::io("starting a thread"))?;
        for _ in 0..pace.requests {
            on_outcome(client.next()?);
        }
        Ok(())
    })
}
