//! The thread that appends the record of a run to its files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, select_biased, tick, unbounded};
use veeksha_events::{Event, request_line, trace_line};

use crate::error::ReportError;
use crate::line_file::LineFile;

/// Maximum age of lines when they reach the file.
const FLUSH_EVERY: Duration = Duration::from_millis(500);

/// Presence of `traces/trace.jsonl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFile {
    /// It is written.
    On,
    /// It is not written.
    Off,
}

/// Owns the writing thread. Dropping it writes everything sent; [`LineWriter::finish`] also
/// reports errors.
#[derive(Debug)]
pub struct LineWriter {
    folder: PathBuf,
    sender: LineSender,
    thread: Option<JoinHandle<Result<(), ReportError>>>,
    failure: Arc<OnceLock<String>>,
}

/// Sends events to the writing thread; never waits for the disk. Clones share the thread.
#[derive(Clone, Debug)]
pub struct LineSender {
    messages: Sender<LineMessage>,
}

#[derive(Debug)]
enum LineMessage {
    Record {
        event: Arc<Event>,
        content: Option<Arc<str>>,
    },
    Stop,
}

impl LineSender {
    /// Sends an event to be written. `content` is the text sent or answered, if the trace includes
    /// it (see [`trace_line`]). After [`LineWriter::finish`] events are ignored.
    pub fn record(&self, event: Arc<Event>, content: Option<Arc<str>>) {
        // Fails only if the thread has ended, which `finish` reports.
        let _ = self.messages.send(LineMessage::Record { event, content });
    }
}

impl LineWriter {
    pub(crate) fn start(folder: &Path, trace: TraceFile) -> Result<Self, ReportError> {
        let failure = Arc::new(OnceLock::new());
        let files = Files {
            requests: LineFile::open(folder.join("metrics/request_level_metrics.jsonl"))?,
            trace: match trace {
                TraceFile::On => Some(LineFile::open(folder.join("traces/trace.jsonl"))?),
                TraceFile::Off => None,
            },
            failure: Arc::clone(&failure),
        };
        let (messages, inbox) = unbounded();
        let thread = thread::Builder::new()
            .name("record-writer".into())
            .spawn(move || files.write_all(&inbox));
        Ok(LineWriter {
            folder: folder.to_owned(),
            sender: LineSender { messages },
            thread: Some(thread.map_err(ReportError::Thread)?),
            failure,
        })
    }

    /// Returns a handle for another thread.
    pub fn sender(&self) -> LineSender {
        self.sender.clone()
    }

    /// Sends an event to be written; see [`LineSender::record`].
    pub fn record(&self, event: Arc<Event>, content: Option<Arc<str>>) {
        self.sender.record(event, content);
    }

    /// Returns the first error so far. The run may continue: its metrics do not depend on the
    /// files.
    pub fn failed(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Waits until everything sent so far is in the files. Returns the first error.
    pub fn finish(mut self) -> Result<(), ReportError> {
        self.stop()
    }

    fn stop(&mut self) -> Result<(), ReportError> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        // If the thread has ended, joining it reports why.
        let _ = self.sender.messages.send(LineMessage::Stop);
        thread.join().unwrap_or_else(|_| {
            Err(ReportError::WriterPanicked {
                path: self.folder.clone(),
            })
        })
    }
}

impl Drop for LineWriter {
    fn drop(&mut self) {
        // Errors cannot be reported from `drop`.
        let _ = self.stop();
    }
}

struct Files {
    requests: LineFile,
    trace: Option<LineFile>,
    failure: Arc<OnceLock<String>>,
}

impl Files {
    fn write_all(mut self, inbox: &Receiver<LineMessage>) -> Result<(), ReportError> {
        let flush = tick(FLUSH_EVERY);
        loop {
            // The tick has priority, so that a steady stream of events cannot delay it.
            select_biased! {
                recv(flush) -> _ => self.flush(),
                recv(inbox) -> message => match message {
                    Ok(LineMessage::Record { event, content }) => self.write(&event, content.as_deref()),
                    Ok(LineMessage::Stop) | Err(_) => break,
                },
            }
        }
        let requests = self.requests.close();
        let trace = self.trace.map_or(Ok(()), LineFile::close);
        requests.and(trace)
    }

    fn write(&mut self, event: &Event, content: Option<&str>) {
        if let Event::Finished(record) = event {
            self.requests.push(|line| request_line(line, record));
        }
        if let Some(trace) = &mut self.trace {
            trace.push(|line| trace_line(line, event, content));
        }
    }

    fn flush(&mut self) {
        self.requests.flush();
        if let Some(trace) = &mut self.trace {
            trace.flush();
        }
        let trace_failure = || self.trace.as_ref().and_then(LineFile::failure);
        if let Some(failure) = self.requests.failure().or_else(trace_failure) {
            self.failure.get_or_init(|| failure);
        }
    }
}
