//! The thread that appends the record of a run to its files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, select_biased, tick, unbounded};
use veeksha_events::{Event, Latencies, RequestRecord, request_line, trace_line};

use crate::ReportError;
use crate::line_file::LineFile;

/// Lines are at most this old when they reach the file.
const FLUSH_EVERY: Duration = Duration::from_millis(500);

/// How the latencies of a record are computed; the definition lives with the metrics.
pub type LatencyDefinition = fn(&RequestRecord) -> Latencies;

/// Whether `traces/trace.jsonl` is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace {
    /// It is.
    On,
    /// It is not.
    Off,
}

/// Owns the writing thread. Dropping it writes what was sent; [`RecordWriter::finish`] also says whether that worked.
#[derive(Debug)]
pub struct RecordWriter {
    folder: PathBuf,
    sender: RecordSender,
    thread: Option<JoinHandle<Result<(), ReportError>>>,
    failure: Arc<OnceLock<String>>,
}

/// Hands events to the writing thread; never waits for the disk. Copies share the thread.
#[derive(Clone, Debug)]
pub struct RecordSender {
    messages: Sender<Message>,
}

#[derive(Debug)]
enum Message {
    Record {
        event: Arc<Event>,
        content: Option<Arc<str>>,
    },
    Stop,
}

impl RecordSender {
    /// Has an event written. `content` is what was sent or answered, where the trace is to hold it
    /// (see [`trace_line`]). After [`RecordWriter::finish`] events are ignored.
    pub fn record(&self, event: Arc<Event>, content: Option<Arc<str>>) {
        // The only error is that the thread is gone, which `finish` reports.
        let _ = self.messages.send(Message::Record { event, content });
    }
}

impl RecordWriter {
    pub(crate) fn start(
        folder: &Path,
        trace: Trace,
        latencies: LatencyDefinition,
    ) -> Result<Self, ReportError> {
        let failure = Arc::new(OnceLock::new());
        let files = Files {
            requests: LineFile::open(folder.join("metrics/request_level_metrics.jsonl"))?,
            trace: match trace {
                Trace::On => Some(LineFile::open(folder.join("traces/trace.jsonl"))?),
                Trace::Off => None,
            },
            latencies,
            failure: Arc::clone(&failure),
        };
        let (messages, inbox) = unbounded();
        let thread = thread::Builder::new()
            .name("record-writer".into())
            .spawn(move || files.write_all(&inbox));
        Ok(RecordWriter {
            folder: folder.to_owned(),
            sender: RecordSender { messages },
            thread: Some(thread.map_err(ReportError::Thread)?),
            failure,
        })
    }

    /// A handle for another thread.
    pub fn sender(&self) -> RecordSender {
        self.sender.clone()
    }

    /// Has an event written; see [`RecordSender::record`].
    pub fn record(&self, event: Arc<Event>, content: Option<Arc<str>>) {
        self.sender.record(event, content);
    }

    /// What went wrong first, if anything did so far. The run may go on: its figures do not depend on the files.
    pub fn failed(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Waits until everything sent so far is in the files. The first error, if there was one.
    pub fn finish(mut self) -> Result<(), ReportError> {
        self.stop()
    }

    fn stop(&mut self) -> Result<(), ReportError> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        // If the thread is gone, joining it says why.
        let _ = self.sender.messages.send(Message::Stop);
        thread.join().unwrap_or_else(|_| {
            Err(ReportError::WriterPanicked {
                path: self.folder.clone(),
            })
        })
    }
}

impl Drop for RecordWriter {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.stop();
    }
}

struct Files {
    requests: LineFile,
    trace: Option<LineFile>,
    latencies: LatencyDefinition,
    failure: Arc<OnceLock<String>>,
}

impl Files {
    fn write_all(mut self, inbox: &Receiver<Message>) -> Result<(), ReportError> {
        let flush = tick(FLUSH_EVERY);
        loop {
            // The tick comes first, so that a steady stream of events cannot hold it up.
            select_biased! {
                recv(flush) -> _ => self.flush(),
                recv(inbox) -> message => match message {
                    Ok(Message::Record { event, content }) => self.write(&event, content.as_deref()),
                    Ok(Message::Stop) | Err(_) => break,
                },
            }
        }
        let requests = self.requests.close();
        let trace = self.trace.map_or(Ok(()), LineFile::close);
        requests.and(trace)
    }

    fn write(&mut self, event: &Event, content: Option<&str>) {
        if let Event::Finished(record) = event {
            let latencies = (self.latencies)(record);
            self.requests.push(|line| request_line(line, record, &latencies));
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
