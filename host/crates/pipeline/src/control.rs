//! Stopping a run from outside, for example on Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_channel::{Receiver, Sender, bounded};

/// A handle with which another thread asks a run to stop. Clones share the request.
#[derive(Clone, Debug)]
pub struct Control {
    asked: Arc<AtomicBool>,
    /// The last failure before the target was given up.
    lost: Arc<OnceLock<String>>,
    wake: Sender<()>,
    woken: Receiver<()>,
}

impl Default for Control {
    fn default() -> Self {
        let (wake, woken) = bounded(1);
        Control {
            asked: Arc::new(AtomicBool::new(false)),
            lost: Arc::default(),
            wake,
            woken,
        }
    }
}

impl Control {
    /// Asks the run to stop: nothing more is sent, what is in flight is given up, results so far
    /// are kept. May be called before the run starts and more than once.
    pub fn stop(&self) {
        self.asked.store(true, Ordering::Release);
        // Full means that a wake-up is already under way.
        let _ = self.wake.try_send(());
    }

    /// Stops the run because its target no longer takes connections. `failure` is the message of
    /// the last request that could not connect.
    pub(crate) fn stop_for_lost_target(&self, failure: &str) {
        // Fails only if the target was already given up.
        let _ = self.lost.set(failure.to_owned());
        self.stop();
    }

    /// Returns the last failure if the target was lost.
    pub(crate) fn target_lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Returns true if a stop was requested.
    pub fn is_stopped(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    pub(crate) fn woken(&self) -> &Receiver<()> {
        &self.woken
    }
}
