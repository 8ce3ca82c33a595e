//! Ctrl-C: once asks the run to stop and keeps the results, twice ends the process.

use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use veeksha_clock::RunClock;
use veeksha_pipeline::Control;

use crate::exit;
use crate::failure::Failure;
use crate::say;

/// Programs such as `timeout` signal the process and its group: what comes this soon is the same wish.
const SAME_WISH_NANOS: u64 = 300_000_000;

/// What a signal stops: the run that is going on.
#[derive(Clone, Default)]
pub(crate) struct Interrupts {
    current: Arc<Mutex<Current>>,
}

#[derive(Default)]
struct Current {
    control: Control,
    interrupted: bool,
}

impl Interrupts {
    /// Listens for SIGINT, SIGTERM and SIGHUP on a thread of its own, for the life of the process.
    pub(crate) fn listen() -> Result<Interrupts, Failure> {
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])
            .map_err(|error| Failure::internal(format!("cannot listen for signals: {error}")))?;
        let interrupts = Interrupts::default();
        let shared = interrupts.clone();
        let listen = move || {
            let clock = RunClock::starting_now();
            let mut first = None;
            for _ in signals.forever() {
                let now = clock.now();
                let begun = *first.get_or_insert(now);
                if now != begun && now - begun < SAME_WISH_NANOS {
                    continue;
                }
                if now != begun {
                    say::err("\nstopped at once; the results may be incomplete");
                    std::process::exit(i32::from(exit::INTERRUPTED));
                }
                say::err(
                    "\nstopping: requests in flight are given up, results are kept (again to stop at once)",
                );
                shared.stop();
            }
        };
        let thread = std::thread::Builder::new().name("signals".into()).spawn(listen);
        thread
            .map(|_| interrupts)
            .map_err(|error| Failure::internal(format!("cannot start the signal thread: {error}")))
    }

    /// The control of the next run; stopped already if the user has asked for that.
    pub(crate) fn next_run(&self) -> Control {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.control = Control::default();
        if current.interrupted {
            current.control.stop();
        }
        current.control.clone()
    }

    /// Whether the user has asked to stop.
    pub(crate) fn happened(&self) -> bool {
        self.current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .interrupted
    }

    fn stop(&self) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.interrupted = true;
        current.control.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_to_stop_holds_for_the_runs_that_follow() {
        let interrupts = Interrupts::default();
        let first = interrupts.next_run();
        assert!(!first.is_stopped() && !interrupts.happened());
        interrupts.stop();
        assert!(first.is_stopped() && interrupts.happened());
        assert!(interrupts.next_run().is_stopped());
    }
}
