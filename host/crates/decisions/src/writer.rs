//! The thread that writes `decisions.jsonl`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, select_biased, tick, unbounded};
use veeksha_model::{NodeId, SessionId};
use veeksha_ports::AgentStep;

use crate::redact::Redact;
use crate::wire::{DecisionsOrigin, HeaderLine, StepLine};

/// Maximum age of lines when they reach the file.
const FLUSH_EVERY: Duration = Duration::from_millis(500);
/// Lines are buffered until there are this many bytes, or until the next flush.
const BUFFER_BYTES: usize = 256 << 10;

#[derive(Debug)]
enum WriterMessage {
    /// The workload is an agent's: the file exists from now on.
    Open,
    Step {
        session: SessionId,
        is_start: bool,
        line: Vec<u8>,
    },
    Started(SessionId),
    Stop,
}

/// Sends steps to the writing thread; never waits for the disk. Clones share the thread.
#[derive(Clone)]
pub struct DecisionSender {
    messages: Sender<WriterMessage>,
    redact: Arc<dyn Redact>,
}

impl DecisionSender {
    /// Creates the file. Without this call there is none, as for a planned workload.
    pub(crate) fn open(&self) {
        let _ = self.messages.send(WriterMessage::Open);
    }

    /// Sends the step with which an agent answered the end of the node `after`, whose answer asked
    /// for tool calls of these ids. After [`DecisionWriter::finish`] steps are ignored.
    pub(crate) fn step(
        &self,
        session: SessionId,
        after: Option<NodeId>,
        tool_call_ids: &[&str],
        step: &AgentStep,
    ) {
        let mut line = Vec::new();
        let written = StepLine::of(session, after, tool_call_ids, step, &*self.redact);
        if serde_json::to_writer(&mut line, &written).is_err() {
            // Plain data is always written.
            return;
        }
        line.push(b'\n');
        let _ = self.messages.send(WriterMessage::Step {
            session,
            is_start: after.is_none(),
            line,
        });
    }

    /// Notes that a session has started. The first step of a session that was only made ahead is
    /// never written.
    pub fn session_started(&self, session: SessionId) {
        let _ = self.messages.send(WriterMessage::Started(session));
    }
}

/// Owns the writing thread.
pub struct DecisionWriter {
    sender: DecisionSender,
    thread: JoinHandle<io::Result<()>>,
    path: PathBuf,
}

impl DecisionWriter {
    /// Starts the thread. It creates the file at `path` when the workload turns out to be an
    /// agent's.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(path: PathBuf, origin: DecisionsOrigin, redact: Arc<dyn Redact>) -> io::Result<Self> {
        let (messages, inbox) = unbounded();
        let of_thread = path.clone();
        let thread = std::thread::Builder::new()
            .name("decisions".to_owned())
            .spawn(move || write_all(&of_thread, &origin, &inbox))?;
        Ok(DecisionWriter {
            sender: DecisionSender { messages, redact },
            thread,
            path,
        })
    }

    /// Returns a handle for other threads.
    pub fn sender(&self) -> DecisionSender {
        self.sender.clone()
    }

    /// Waits until every step is in the file.
    ///
    /// # Errors
    /// The first error of the file, as a message. Complete lines before it are in the file.
    pub fn finish(self) -> Result<(), String> {
        let _ = self.sender.messages.send(WriterMessage::Stop);
        let path = self.path.display();
        match self.thread.join() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("cannot write {path}: {error}")),
            Err(_) => Err(format!("the thread that writes {path} panicked")),
        }
    }
}

fn write_all(
    path: &std::path::Path,
    origin: &DecisionsOrigin,
    inbox: &Receiver<WriterMessage>,
) -> io::Result<()> {
    let flush = tick(FLUSH_EVERY);
    let mut file: Option<BufWriter<File>> = None;
    // First steps of sessions that have not started. There are as many as the look-ahead has.
    let mut ahead: HashMap<SessionId, Vec<u8>> = HashMap::new();
    loop {
        let message = select_biased! {
            recv(flush) -> _ => {
                file.as_mut().map_or(Ok(()), BufWriter::flush)?;
                continue;
            },
            recv(inbox) -> message => message.unwrap_or(WriterMessage::Stop),
        };
        match message {
            WriterMessage::Open if file.is_none() => {
                let mut line = Vec::new();
                HeaderLine::write(&mut line, origin)?;
                line.push(b'\n');
                let created = file.insert(BufWriter::with_capacity(BUFFER_BYTES, File::create_new(path)?));
                created.write_all(&line)?;
            }
            WriterMessage::Open => {}
            WriterMessage::Step {
                session,
                is_start: true,
                line,
            } => {
                ahead.insert(session, line);
            }
            WriterMessage::Step { session, line, .. } => {
                let Some(file) = &mut file else { continue };
                // Its start may be noted later: events and steps come from different threads.
                if let Some(first) = ahead.remove(&session) {
                    file.write_all(&first)?;
                }
                file.write_all(&line)?;
            }
            WriterMessage::Started(session) => {
                if let (Some(file), Some(first)) = (&mut file, ahead.remove(&session)) {
                    file.write_all(&first)?;
                }
            }
            WriterMessage::Stop => return file.as_mut().map_or(Ok(()), BufWriter::flush),
        }
    }
}
