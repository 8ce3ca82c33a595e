//! Writes one answer to its socket, and records which bytes complete which event.
//!
//! Bytes are written immediately by the caller (the engine's thread for tokens), with one `write`
//! call for what belongs together. Bytes that the socket does not accept, or that a fault delays,
//! wait in a queue that the connection's task drains.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::net::TcpStream;
use veeksha_model::{ChunkKind, Nanos, Usage};

use super::answer_framing::{AnswerFraming, ChunkStyle};
use super::recorder::RequestRecorder;
use super::script::EventBuffer;
use super::truth::TruthOutcome;

/// The event or part that a byte completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompletedElement {
    Head,
    Chunk(ChunkKind),
}

/// Treatment of the connection when everything has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// The next request is read.
    KeepAlive,
    Close,
    Reset,
    /// The server closes its side; the client's is read until it closes too.
    HalfClose,
    /// Fillers are written until the client disconnects.
    Endless,
}

/// The result of a write attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    /// Everything is written.
    Empty,
    /// The socket is full.
    Blocked,
    /// Nothing may be written before this time.
    Held(Nanos),
    /// The connection is gone.
    Broken,
}

/// The writer of one answer.
pub(super) struct AnswerWriter {
    socket: Arc<TcpStream>,
    recorder: RequestRecorder,
    framing: AnswerFraming,
    gzip: Option<GzEncoder<Vec<u8>>>,
    /// Maximum size of one `write` call.
    most: usize,
    queue: Vec<u8>,
    /// Number of bytes of the queue that have been written.
    taken: usize,
    /// Marks with their offsets from the beginning of the answer.
    marks: VecDeque<(u64, CompletedElement)>,
    /// Bytes written and bytes submitted since the beginning of the answer.
    written: u64,
    given: u64,
    hold: Option<Nanos>,
    /// Set when no more bytes follow.
    end: Option<(TruthOutcome, Option<Usage>)>,
    after: After,
    broken: bool,
    /// A head that shares the next write.
    lead: Vec<u8>,
    framed: Vec<u8>,
    spare: Vec<(usize, CompletedElement)>,
}

impl AnswerWriter {
    pub(super) fn new(socket: Arc<TcpStream>, recorder: RequestRecorder) -> Self {
        AnswerWriter {
            socket,
            recorder,
            framing: AnswerFraming::Length,
            gzip: None,
            most: usize::MAX,
            queue: Vec::new(),
            taken: 0,
            marks: VecDeque::new(),
            written: 0,
            given: 0,
            hold: None,
            end: None,
            after: After::KeepAlive,
            broken: false,
            lead: Vec::new(),
            framed: Vec::new(),
            spare: Vec::new(),
        }
    }

    pub(super) fn recorder(&mut self) -> &mut RequestRecorder {
        &mut self.recorder
    }

    pub(super) fn framing(&self) -> AnswerFraming {
        self.framing
    }

    /// Returns true if no more bytes may be submitted.
    pub(super) fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn frame(&mut self, framing: AnswerFraming) {
        self.framing = framing;
    }

    pub(super) fn compress(&mut self) {
        self.gzip = Some(GzEncoder::new(Vec::new(), Compression::fast()));
    }

    /// Disables faults, so that the answer is sent in one piece.
    pub(super) fn plain(&mut self) {
        self.framing = AnswerFraming::Length;
        self.gzip = None;
        self.most = usize::MAX;
    }

    /// Makes every byte a separate write from now on.
    pub(super) fn drip(&mut self) {
        self.most = 1;
    }

    /// Writes nothing before `until`.
    pub(super) fn hold(&mut self, until: Nanos) {
        self.hold = Some(until);
    }

    /// Writes the head.
    pub(super) fn head(&mut self, head: &[u8]) {
        self.put(head, &[(head.len(), CompletedElement::Head)]);
    }

    /// Writes the head together with the body that follows.
    pub(super) fn head_with_body(&mut self, head: Vec<u8>) {
        self.lead = head;
    }

    /// Writes bytes that complete nothing and are not framed.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.put(bytes, &[]);
    }

    /// Writes events in one call; returns its time, unless they have to wait.
    pub(super) fn events(&mut self, events: &EventBuffer) -> Option<Nanos> {
        self.body(&events.bytes, &events.marks, None)
    }

    /// Writes the last events together with the end of the body.
    pub(super) fn last_events(&mut self, events: &EventBuffer) -> Option<Nanos> {
        let end: &[u8] = match self.framing {
            AnswerFraming::Chunked(ChunkStyle::Trailers) => {
                b"0\r\nx-sim-checksum: 1\r\nx-sim-note: trailer\r\n\r\n"
            }
            AnswerFraming::Chunked(ChunkStyle::UpperCase) => b"000\r\n\r\n",
            AnswerFraming::Chunked(ChunkStyle::Extensions) => b"0;last\r\n\r\n",
            AnswerFraming::Chunked(ChunkStyle::Plain) => b"0\r\n\r\n",
            AnswerFraming::Length | AnswerFraming::Close => b"",
        };
        self.body(&events.bytes, &events.marks, Some(end))
    }

    fn body(&mut self, bytes: &[u8], kinds: &[(usize, ChunkKind)], end: Option<&[u8]>) -> Option<Nanos> {
        let compressed = self.gzip.as_mut().map(|gzip| {
            // Writing to a Vec does not fail.
            let _ = gzip.write_all(bytes);
            let _ = match end {
                Some(_) => gzip.try_finish(),
                None => gzip.flush(),
            };
            std::mem::take(gzip.get_mut())
        });
        let content = compressed.as_deref().unwrap_or(bytes);
        let mut framed = std::mem::take(&mut self.framed);
        framed.clear();
        framed.append(&mut self.lead);
        let lead = framed.len();
        let chunked = match self.framing {
            AnswerFraming::Chunked(style) if !content.is_empty() => Some(style),
            _ => None,
        };
        // Writing to a Vec does not fail.
        let _ = match chunked {
            Some(ChunkStyle::UpperCase) => write!(framed, "0{:X}\r\n", content.len()),
            Some(ChunkStyle::Extensions) => write!(framed, "{:x};sim=\"a;b\"\r\n", content.len()),
            Some(_) => write!(framed, "{:x}\r\n", content.len()),
            None => Ok(()),
        };
        let start = framed.len();
        framed.extend_from_slice(content);
        if chunked.is_some() {
            framed.extend_from_slice(b"\r\n");
        }
        framed.extend_from_slice(end.unwrap_or_default());
        // In compressed bytes the end of an event is unknown: use the end of the bytes.
        let ends_at = |end: usize| start + if compressed.is_some() { content.len() } else { end };
        let mut marks = std::mem::take(&mut self.spare);
        marks.clear();
        if lead > 0 {
            marks.push((lead, CompletedElement::Head));
        }
        marks.extend(
            kinds
                .iter()
                .map(|(end, kind)| (ends_at(*end), CompletedElement::Chunk(*kind))),
        );
        let stamp = self.put(&framed, &marks);
        self.spare = marks;
        self.framed = framed;
        stamp
    }

    /// Writes half of an event as bytes of the body: the part before a connection breaks or pauses.
    pub(super) fn half(&mut self, events: &EventBuffer) {
        let half = &events.bytes[..events.bytes.len() / 2];
        self.body(half, &[], None);
    }

    /// Writes an event in two halves with a pause between them. Returns no time, because it is not
    /// known yet.
    pub(super) fn halves(&mut self, events: &EventBuffer, until: Nanos) {
        let middle = events.bytes.len() / 2;
        self.half(events);
        self.hold(until);
        let marks: Vec<_> = events
            .marks
            .iter()
            .map(|(end, kind)| (end.saturating_sub(middle), *kind))
            .collect();
        self.body(&events.bytes[middle..], &marks, None);
    }

    /// Ends the answer: no more bytes follow.
    pub(super) fn end(&mut self, outcome: TruthOutcome, usage: Option<Usage>, after: After) {
        self.end = Some((outcome, usage));
        self.after = match (self.framing, after) {
            (AnswerFraming::Close, After::KeepAlive) => After::Close,
            (_, after) => after,
        };
        self.settle();
    }

    /// Closes the connection deliberately.
    pub(super) fn cut(&mut self) {
        self.broken = true;
        self.recorder.finish(TruthOutcome::Dropped, None);
    }

    /// Returns the treatment of the connection, once the answer is over.
    pub(super) fn over(&self) -> Option<After> {
        (self.end.is_some() && self.queue.is_empty()).then_some(self.after)
    }

    fn settle(&mut self) {
        if self.queue.is_empty()
            && let Some((outcome, usage)) = self.end
        {
            self.recorder.finish(outcome, usage);
        }
    }

    fn put(&mut self, bytes: &[u8], marks: &[(usize, CompletedElement)]) -> Option<Nanos> {
        if self.broken || bytes.is_empty() {
            return None;
        }
        let base = self.given;
        self.given += bytes.len() as u64;
        let mut done = 0;
        let mut stamp = None;
        if self.queue.is_empty() && self.hold.is_none() && self.most == usize::MAX {
            let at = self.recorder.now();
            match self.socket.try_write(bytes) {
                Ok(count) => {
                    done = count;
                    self.written += count as u64;
                    stamp = (count == bytes.len()).then_some(at);
                    let complete = marks.iter().take_while(|(end, _)| *end <= count);
                    record(&mut self.recorder, at, complete.map(|(_, mark)| *mark));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => {
                    self.broken = true;
                    return None;
                }
            }
            if stamp.is_some() {
                return stamp;
            }
        }
        let left = marks.iter().filter(|(end, _)| *end > done);
        self.marks
            .extend(left.map(|(end, mark)| (base + *end as u64, *mark)));
        self.queue.extend_from_slice(&bytes[done..]);
        self.flush();
        None
    }

    /// Writes waiting bytes as far as allowed.
    pub(super) fn flush(&mut self) -> Flushed {
        while self.taken < self.queue.len() && !self.broken {
            if let Some(until) = self.hold {
                if self.recorder.now() < until {
                    return Flushed::Held(until);
                }
                self.hold = None;
            }
            let rest = &self.queue[self.taken..];
            let part = &rest[..rest.len().min(self.most)];
            let at = self.recorder.now();
            match self.socket.try_write(part) {
                Ok(count) => {
                    self.taken += count;
                    self.written += count as u64;
                    let written = self.written;
                    while let Some((_, mark)) = self.marks.pop_front_if(|(end, _)| *end <= written) {
                        record(&mut self.recorder, at, std::iter::once(mark));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Flushed::Blocked,
                Err(_) => self.broken = true,
            }
        }
        if self.broken {
            return Flushed::Broken;
        }
        self.queue.clear();
        self.taken = 0;
        self.settle();
        Flushed::Empty
    }
}

fn record(recorder: &mut RequestRecorder, at: Nanos, marks: impl Iterator<Item = CompletedElement> + Clone) {
    for _ in marks.clone().filter(|mark| *mark == CompletedElement::Head) {
        recorder.head(at);
    }
    recorder.chunks(
        at,
        marks.filter_map(|mark| match mark {
            CompletedElement::Head => None,
            CompletedElement::Chunk(kind) => Some(kind),
        }),
    );
}
