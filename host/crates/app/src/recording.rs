//! The thread that writes the record of a run as columns.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use veeksha_clock::RunClock;
use veeksha_events::Event;
use veeksha_record::{RecordError, Recorder};

use crate::failure::Failure;

/// Owns the thread. Dropping it without [`Recording::finish`] leaves the parts that are written.
pub(crate) struct Recording {
    events: Option<Sender<Arc<Event>>>,
    thread: JoinHandle<Result<(), RecordError>>,
    failure: Arc<OnceLock<String>>,
}

impl Recording {
    /// Starts the record in the folder of a run with this `config.yml`.
    pub(crate) fn start(run: &Path, config: &str) -> Result<Recording, Failure> {
        let recorder = Recorder::create(run, PROGRAM)
            .map_err(Failure::internal)?
            .of_config(digest_of_config(config));
        let (events, inbox) = unbounded();
        let failure = Arc::new(OnceLock::new());
        let told = Arc::clone(&failure);
        let thread = std::thread::Builder::new()
            .name("record-columns".into())
            .spawn(move || write(recorder, &inbox, &told))
            .map_err(|error| Failure::internal(format!("cannot start a thread: {error}")))?;
        Ok(Recording {
            events: Some(events),
            thread,
            failure,
        })
    }

    /// Has an event written; never waits for the disk.
    pub(crate) fn record(&self, event: &Arc<Event>) {
        if let Some(events) = &self.events {
            // If the thread is gone, `finish` says why.
            let _ = events.send(Arc::clone(event));
        }
    }

    /// What went wrong first, if anything did so far.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Waits until the record is whole.
    pub(crate) fn finish(mut self) -> Result<(), String> {
        self.events = None;
        match self.thread.join() {
            Ok(written) => written.map_err(|error| error.to_string()),
            Err(_) => Err("the thread that writes the record panicked".to_owned()),
        }
    }
}

/// What the record says of the `config.yml` beside it.
pub(crate) fn digest_of_config(config: &str) -> String {
    blake3::hash(config.as_bytes()).to_hex().to_string()
}

/// What the record says it was written by.
const PROGRAM: &str = concat!("veeksha-host ", env!("CARGO_PKG_VERSION"));

fn write(
    mut recorder: Recorder,
    inbox: &Receiver<Arc<Event>>,
    told: &OnceLock<String>,
) -> Result<(), RecordError> {
    let clock = RunClock::starting_now();
    loop {
        let wait = recorder.due().map_or(Duration::MAX, |due| {
            Duration::from_nanos(due.saturating_sub(clock.now()))
        });
        let written = match inbox.recv_timeout(wait) {
            Ok(event) => recorder.push(&event, clock.now()),
            Err(RecvTimeoutError::Timeout) => recorder.tick(clock.now()),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        // The recorder keeps what the disk refuses and writes it later, so only its end decides
        // whether anything was lost.
        if let Err(error) = written {
            told.get_or_init(|| error.to_string());
        }
    }
    recorder.finish()
}
