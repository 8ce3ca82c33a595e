//! The thread that samples the machine while a run goes on.

use std::sync::PoisonError;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use veeksha_clock::RunClock;

use crate::entry::EventEntry;
use crate::plan::{PipelineError, ThreadSampler, spawn};

/// Time between two looks.
const PACE: Duration = Duration::from_secs(1);

/// A watch at work, if the plan has one.
pub(crate) struct WatchThread {
    end: Sender<()>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl WatchThread {
    pub(crate) fn start(
        watch: Option<&ThreadSampler>,
        clock: RunClock,
        events: &Sender<EventEntry>,
    ) -> Result<WatchThread, PipelineError> {
        let (end, ended) = bounded(0);
        let Some(watch) = watch.cloned() else {
            return Ok(WatchThread { end, thread: None });
        };
        let events = events.clone();
        let body = move || {
            loop {
                let waited = ended.recv_timeout(PACE);
                // A watch that panicked once reports nothing more; the run does not depend on it.
                let mut look = watch.lock().unwrap_or_else(PoisonError::into_inner);
                for event in look(clock.now()) {
                    let _ = events.send(event.into());
                }
                if waited != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = Some(spawn("watch".to_owned(), body)?);
        Ok(WatchThread { end, thread })
    }

    /// Looks once more, and ends.
    pub(crate) fn end(self) {
        drop(self.end);
        if let Some(thread) = self.thread {
            let _ = thread.join();
        }
    }
}
