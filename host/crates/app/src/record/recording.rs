//! Thread that writes the record of a run in columnar form.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use veeksha_clock::RunClock;
use veeksha_events::Event;
use veeksha_record::{RecordError, RunRecorder};

use crate::failure::CommandFailure;

/// Handle of the thread. If it is dropped without [`Recording::finish`], the parts written so far
/// remain.
pub(crate) struct Recording {
    events: Option<Sender<Arc<Event>>>,
    thread: JoinHandle<Result<(), RecordError>>,
    failure: Arc<OnceLock<String>>,
}

impl Recording {
    /// Starts the record in the folder of a run with this `config.yml`. Without an id of the run,
    /// the record gets a new one.
    pub(crate) fn start(run: &Path, config: &str, run_id: Option<&str>) -> Result<Recording, CommandFailure> {
        let mut recorder = RunRecorder::create(run, PROGRAM)
            .map_err(CommandFailure::internal)?
            .of_config(digest_of_config(config));
        if let Some(run_id) = run_id {
            recorder = recorder.of_run(run_id);
        }
        let (events, inbox) = unbounded();
        let failure = Arc::new(OnceLock::new());
        let first_failure = Arc::clone(&failure);
        let thread = std::thread::Builder::new()
            .name("record-columns".into())
            .spawn(move || write(recorder, &inbox, &first_failure))
            .map_err(|error| CommandFailure::internal(format!("cannot start a thread: {error}")))?;
        Ok(Recording {
            events: Some(events),
            thread,
            failure,
        })
    }

    /// Queues an event; never waits for the disk.
    pub(crate) fn record(&self, event: &Arc<Event>) {
        if let Some(events) = &self.events {
            // `finish` reports a thread that has ended.
            let _ = events.send(Arc::clone(event));
        }
    }

    /// Returns the first error so far.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Waits until the record is complete.
    pub(crate) fn finish(mut self) -> Result<(), String> {
        self.events = None;
        match self.thread.join() {
            Ok(written) => written.map_err(|error| error.to_string()),
            Err(_) => Err("the thread that writes the record panicked".to_owned()),
        }
    }
}

/// Returns the digest of `config.yml` in the record.
pub(crate) fn digest_of_config(config: &str) -> String {
    blake3::hash(config.as_bytes()).to_hex().to_string()
}

/// Name and version of the program that wrote the record.
const PROGRAM: &str = concat!("veeksha-host ", env!("CARGO_PKG_VERSION"));

fn write(
    mut recorder: RunRecorder,
    inbox: &Receiver<Arc<Event>>,
    first_failure: &OnceLock<String>,
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
        // The recorder keeps data that the disk refuses and writes them later, so only its end
        // decides if anything was lost.
        if let Err(error) = written {
            first_failure.get_or_init(|| error.to_string());
        }
    }
    recorder.finish()
}
