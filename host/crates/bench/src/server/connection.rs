//! One connection: what it has received, the answer under way, and what its socket did not take yet.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::rc::Rc;

use veeksha_model::Nanos;

use super::plan::{Keep, Plan, Served, Writes};
use super::reply::Reply;
use super::request::{Kind, Received, look};

/// The answer to `GET`: the list of models.
const MODELS: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 59\r\n\r\n\
    {\"object\":\"list\",\"data\":[{\"id\":\"bench\",\"object\":\"model\"}]}\n";

/// An answer under way.
#[derive(Debug)]
struct Answer {
    plan: Plan,
    reply: Rc<Reply>,
    number: u64,
    next: u32,
    served: Served,
}

/// A connection and its place in the world.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    /// Tells this connection from earlier ones in the same place.
    pub(crate) generation: u64,
    /// Whether the event queue is asked to tell when the socket takes bytes.
    pub(crate) waits_to_write: bool,
    received: Vec<u8>,
    unsent: Vec<u8>,
    answer: Option<Answer>,
}

/// What reading brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read1 {
    /// Nothing to do yet.
    Nothing,
    /// An answer is to be begun.
    Asked(Option<String>),
    /// The peer is gone, or talks nonsense.
    Ended,
}

/// What a turn led to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wrote {
    /// Another token is to come.
    More,
    /// The answer is complete; what was kept of it.
    Finished(Option<Served>),
    /// There was no answer under way.
    Idle,
    /// The peer is gone.
    Ended,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, generation: u64) -> Self {
        Connection {
            stream,
            generation,
            waits_to_write: false,
            received: Vec::new(),
            unsent: Vec::new(),
            answer: None,
        }
    }

    /// Whether an answer is under way.
    pub(crate) fn is_answering(&self) -> bool {
        self.answer.is_some()
    }

    /// Whether bytes wait for room in the socket.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Reads what has come, through a buffer that all connections share.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Read1 {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return Read1::Ended,
                Ok(count) => {
                    self.received
                        .extend_from_slice(buffer.get(..count).unwrap_or_default());
                    if count < buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Read1::Ended,
            }
        }
        self.next_request()
    }

    /// The next whole request of those received. While an answer is under way the next one waits.
    pub(crate) fn next_request(&mut self) -> Read1 {
        while self.answer.is_none() && !self.received.is_empty() {
            match look(&self.received) {
                Received::Part => return Read1::Nothing,
                Received::Nonsense => return Read1::Ended,
                Received::Whole { bytes, kind, id } => {
                    self.received.drain(..bytes);
                    match kind {
                        Kind::Answer => return Read1::Asked(id),
                        Kind::Models => self.unsent.extend_from_slice(MODELS),
                    }
                }
            }
        }
        Read1::Nothing
    }

    /// Begins an answer; its first turn is the caller's to give.
    pub(crate) fn begin(&mut self, plan: Plan, reply: Rc<Reply>, number: u64, served: Served) {
        self.answer = Some(Answer {
            plan,
            reply,
            number,
            next: 0,
            served,
        });
    }

    /// The plan of the answer under way.
    pub(crate) fn plan(&self) -> Option<Plan> {
        self.answer.as_ref().map(|answer| answer.plan)
    }

    /// Writes the next token, or the whole answer. `now` is asked for right before the write.
    pub(crate) fn turn(&mut self, now: impl FnOnce() -> Nanos) -> Wrote {
        let Some(answer) = &mut self.answer else {
            return Wrote::Idle;
        };
        match answer.plan.writes {
            Writes::Whole => {
                answer.reply.write_whole(answer.number, &mut self.unsent);
                answer.next = answer.plan.tokens;
            }
            Writes::EachToken => {
                answer
                    .reply
                    .write_token(answer.next, answer.number, &mut self.unsent);
                answer.next += 1;
            }
        }
        if answer.plan.keep == Keep::Times {
            answer.served.writes.push(now());
        }
        let finished = answer.next >= answer.plan.tokens;
        if !self.flush() {
            return Wrote::Ended;
        }
        if !finished {
            return Wrote::More;
        }
        let kept = self
            .answer
            .take()
            .filter(|answer| answer.plan.keep == Keep::Times)
            .map(|answer| answer.served);
        Wrote::Finished(kept)
    }

    /// Hands unsent bytes to the socket, as many as it takes; false if the peer is gone.
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
