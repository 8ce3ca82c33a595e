//! Stopping a run from outside, for example on Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded};

/// A handle with which another thread asks a run to stop. Clones share the request.
#[derive(Clone, Debug)]
pub struct Control {
    asked: Arc<AtomicBool>,
    lost: Arc<AtomicBool>,
    wake: Sender<()>,
    woken: Receiver<()>,
}

impl Default for Control {
    fn default() -> Self {
        let (wake, woken) = bounded(1);
        Control {
            asked: Arc::new(AtomicBool::new(false)),
            lost: Arc::new(AtomicBool::new(false)),
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

    /// Stops the run because its target no longer takes connections.
    pub(crate) fn stop_for_a_lost_target(&self) {
        self.lost.store(true, Ordering::Release);
        self.stop();
    }

    /// Returns true if the target was lost.
    pub(crate) fn is_target_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Returns true if a stop was requested.
    pub fn is_stopped(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    pub(crate) fn woken(&self) -> &Receiver<()> {
        &self.woken
    }
}
