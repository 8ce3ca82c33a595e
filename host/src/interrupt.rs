//! Ctrl-C: once asks the run to stop and keeps the results, twice ends the process.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use veeksha_pipeline::Control;

use crate::exit;
use crate::failure::Failure;

/// Listens for SIGINT and SIGTERM on a thread of its own, for the life of the process.
pub(crate) fn stop_on_signal(control: Control) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::internal(format!("cannot listen for signals: {error}")))?;
    let listen = move || {
        for (count, _) in signals.forever().enumerate() {
            if count > 0 {
                eprintln!("\nstopped at once; the results may be incomplete");
                std::process::exit(i32::from(exit::INTERRUPTED));
            }
            eprintln!(
                "\nstopping: requests in flight are given up, results are kept (again to stop at once)"
            );
            control.stop();
        }
    };
    let thread = std::thread::Builder::new().name("signals".into()).spawn(listen);
    thread
        .map(drop)
        .map_err(|error| Failure::internal(format!("cannot start the signal thread: {error}")))
}
