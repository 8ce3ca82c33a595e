//! Ctrl-C: once asks the run to stop and keeps the results, twice ends the process.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use veeksha_clock::RunClock;
use veeksha_pipeline::Control;

use crate::exit;
use crate::failure::Failure;
use crate::say;

/// Programs such as `timeout` signal the process and its group: what comes this soon is the same wish.
const SAME_WISH_NANOS: u64 = 300_000_000;

/// Listens for SIGINT, SIGTERM and SIGHUP on a thread of its own, for the life of the process.
pub(crate) fn stop_on_signal(control: Control) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])
        .map_err(|error| Failure::internal(format!("cannot listen for signals: {error}")))?;
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
            say::err("\nstopping: requests in flight are given up, results are kept (again to stop at once)");
            control.stop();
        }
    };
    let thread = std::thread::Builder::new().name("signals".into()).spawn(listen);
    thread
        .map(drop)
        .map_err(|error| Failure::internal(format!("cannot start the signal thread: {error}")))
}
