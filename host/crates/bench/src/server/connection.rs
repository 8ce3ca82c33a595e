//! One connection: received bytes, the current response, and bytes that the socket has not
//! accepted.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::rc::Rc;

use veeksha_model::Nanos;

use super::plan::{LogEntry, LogMode, ResponsePlan, WriteMode};
use super::reply::PreparedReply;
use super::request::{ParsedRequest, RequestKind, parse_request};

/// The response to `GET`: the list of models.
const MODELS: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 59\r\n\r\n\
    {\"object\":\"list\",\"data\":[{\"id\":\"bench\",\"object\":\"model\"}]}\n";

/// The response in progress.
#[derive(Debug)]
struct ActiveResponse {
    plan: ResponsePlan,
    reply: Rc<PreparedReply>,
    number: u64,
    next: u32,
    served: LogEntry,
}

/// A connection of the event loop.
#[derive(Debug)]
pub(crate) struct ServedConnection {
    pub(crate) stream: TcpStream,
    /// Distinguishes this connection from earlier ones in the same slot.
    pub(crate) generation: u64,
    /// True while the event queue reports a writable socket.
    pub(crate) waits_to_write: bool,
    received: Vec<u8>,
    unsent: Vec<u8>,
    answer: Option<ActiveResponse>,
}

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// Nothing to do yet.
    Nothing,
    /// A complete request with its id.
    Asked(Option<String>),
    /// The peer has closed, or sent an invalid request.
    Ended,
}

/// Result of a turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// More tokens follow.
    More,
    /// The response is complete; its log entry, if logged.
    Finished(Option<LogEntry>),
    /// No response was in progress.
    Idle,
    /// The peer has closed.
    Ended,
}

impl ServedConnection {
    pub(crate) fn new(stream: TcpStream, generation: u64) -> Self {
        ServedConnection {
            stream,
            generation,
            waits_to_write: false,
            received: Vec::new(),
            unsent: Vec::new(),
            answer: None,
        }
    }

    /// Returns true while a response is in progress.
    pub(crate) fn is_answering(&self) -> bool {
        self.answer.is_some()
    }

    /// Returns true if bytes wait for the socket.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Reads what has arrived, through a buffer shared by all connections.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> ReadOutcome {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return ReadOutcome::Ended,
                Ok(count) => {
                    self.received
                        .extend_from_slice(buffer.get(..count).unwrap_or_default());
                    if count < buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return ReadOutcome::Ended,
            }
        }
        self.next_request()
    }

    /// Takes the next complete request. While a response is in progress the next one waits.
    pub(crate) fn next_request(&mut self) -> ReadOutcome {
        while self.answer.is_none() && !self.received.is_empty() {
            match parse_request(&self.received) {
                ParsedRequest::Part => return ReadOutcome::Nothing,
                ParsedRequest::Invalid => return ReadOutcome::Ended,
                ParsedRequest::Whole { bytes, kind, id } => {
                    self.received.drain(..bytes);
                    match kind {
                        RequestKind::Answer => return ReadOutcome::Asked(id),
                        RequestKind::Models => self.unsent.extend_from_slice(MODELS),
                    }
                }
            }
        }
        ReadOutcome::Nothing
    }

    /// Starts a response; the caller schedules its first turn.
    pub(crate) fn begin(
        &mut self,
        plan: ResponsePlan,
        reply: Rc<PreparedReply>,
        number: u64,
        served: LogEntry,
    ) {
        self.answer = Some(ActiveResponse {
            plan,
            reply,
            number,
            next: 0,
            served,
        });
    }

    /// The plan of the response in progress.
    pub(crate) fn plan(&self) -> Option<ResponsePlan> {
        self.answer.as_ref().map(|answer| answer.plan)
    }

    /// Writes the next token, or the whole response. `now` is called just before the write.
    pub(crate) fn turn(&mut self, now: impl FnOnce() -> Nanos) -> WriteOutcome {
        let Some(answer) = &mut self.answer else {
            return WriteOutcome::Idle;
        };
        match answer.plan.writes {
            WriteMode::Whole => {
                answer.reply.write_whole(answer.number, &mut self.unsent);
                answer.next = answer.plan.tokens;
            }
            WriteMode::EachToken => {
                answer
                    .reply
                    .write_token(answer.next, answer.number, &mut self.unsent);
                answer.next += 1;
            }
        }
        if answer.plan.keep == LogMode::Times {
            answer.served.writes.push(now());
        }
        let finished = answer.next >= answer.plan.tokens;
        if !self.flush() {
            return WriteOutcome::Ended;
        }
        if !finished {
            return WriteOutcome::More;
        }
        let kept = self
            .answer
            .take()
            .filter(|answer| answer.plan.keep == LogMode::Times)
            .map(|answer| answer.served);
        WriteOutcome::Finished(kept)
    }

    /// Writes unsent bytes, as many as the socket accepts; returns false if the peer has closed.
    pub(crate) fn flush(&mut self) -> bool {
        let mut sent = 0;
        while let Some(rest) = self.unsent.get(sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(0) => return false,
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        self.unsent.drain(..sent);
        true
    }
}
