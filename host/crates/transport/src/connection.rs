//! An HTTP/1.1 connection: it sends a request, reads its answer, and determines if it can be
//! reused.
//!
//! Everything runs inside the poll of the one task that owns the connection: the read into the
//! thread's buffer, the HTTP framing, and the copy of the body's bytes to their buffer. No borrow
//! outlives a poll.

use std::cell::RefCell;
use std::io;
use std::task::{Context, Poll, ready};

use veeksha_endpoint::{Failure, one_line};
use veeksha_http1::{Closed, DecodeError, DecodePosition, DecodedPart, Decoder, DecoderLimits};
use veeksha_model::ErrorClass;

use crate::client_context::ClientContext;
use crate::flight::Flight;
use crate::prepared_server::PreparedServer;
use crate::tls::alert;
use crate::wire::Wire;

/// A connection with at most one request in flight.
pub(crate) struct Connection {
    wire: Wire,
    decoder: Decoder,
    /// Set if the connection must not be reused: the exchange failed, the rest of the answer was
    /// not read, or an answer arrived before the request was completely sent.
    spoiled: bool,
}

/// Reason why an exchange was not completed.
#[derive(Debug)]
pub(crate) enum Lost {
    /// The connection ended before the first byte of an answer.
    Unanswered(Failure),
    /// The exchange failed after the first byte.
    Failed(Failure),
}

impl From<Lost> for Failure {
    fn from(lost: Lost) -> Failure {
        match lost {
            Lost::Unanswered(failure) | Lost::Failed(failure) => failure,
        }
    }
}

/// Result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadProgress {
    More,
    /// The answer has ended, or the rest of it is not needed.
    Ended,
}

/// Result of sending a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendResult {
    /// The last byte was sent.
    Whole,
    /// The server started its answer before the last byte was sent.
    AnsweredEarly,
    /// The server completed its answer before the last byte was sent.
    EndedEarly,
}

impl Connection {
    pub(crate) fn new(wire: Wire) -> Self {
        Connection {
            wire,
            decoder: Decoder::new(DecoderLimits::default()),
            spoiled: false,
        }
    }

    /// Returns true if the idle connection appears to be alive.
    pub(crate) fn looks_alive(&self) -> bool {
        self.wire.looks_alive()
    }

    /// Returns true if another request can be sent.
    pub(crate) fn can_be_reused(&self) -> bool {
        !self.spoiled && self.decoder.can_be_reused()
    }

    /// Prepares the connection for another request.
    pub(crate) fn begin(&mut self) {
        self.decoder.restart();
        self.wire.newest().begin();
    }

    /// Sends a request. Reads an early answer while the socket accepts no more of the request.
    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        exchange: Exchange<'_>,
        parts: [&[u8]; 2],
        done: &mut usize,
    ) -> Poll<Result<SendResult, Lost>> {
        loop {
            let first = parts[0].get(*done..).unwrap_or_default();
            let second = parts[1]
                .get(done.saturating_sub(parts[0].len())..)
                .unwrap_or_default();
            let written = if first.is_empty() && second.is_empty() {
                match self.wire.poll_flush(cx) {
                    Poll::Ready(Ok(())) => {
                        let now = exchange.context.route.clock.now();
                        exchange.flight.borrow_mut().on_sent(now);
                        return Poll::Ready(Ok(SendResult::Whole));
                    }
                    Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                    Poll::Pending => Poll::Pending,
                }
            } else {
                let now = exchange.context.route.clock.now();
                exchange.flight.borrow_mut().on_writing(now);
                self.wire.poll_send(cx, [first, second])
            };
            let broken = match written {
                Poll::Ready(Ok(size)) if size > 0 => {
                    *done += size;
                    continue;
                }
                Poll::Ready(Ok(_)) => Some(io::Error::from(io::ErrorKind::WriteZero)),
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
                Poll::Ready(Err(error)) => Some(error),
                Poll::Pending => None,
            };
            // A server that rejects a request may stop reading it.
            let progress = self.poll_read(cx, exchange);
            let answered = exchange.flight.borrow().is_answered();
            match (progress, broken) {
                (Poll::Ready(Ok(ReadProgress::Ended)), _) => {
                    self.spoiled = true;
                    return Poll::Ready(Ok(SendResult::EndedEarly));
                }
                (Poll::Ready(Ok(ReadProgress::More)), _) if answered => {
                    self.spoiled = true;
                    return Poll::Ready(Ok(SendResult::AnsweredEarly));
                }
                // An interim answer, or an incomplete head.
                (Poll::Ready(Ok(ReadProgress::More)), _) => {}
                (Poll::Ready(Err(lost)), _) => return Poll::Ready(Err(lost)),
                (Poll::Pending, Some(error)) => {
                    return Poll::Ready(Err(self.broken(exchange, &error)));
                }
                (Poll::Pending, None) => return Poll::Pending,
            }
        }
    }

    /// Reads the answer to its end.
    pub(crate) fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
        exchange: Exchange<'_>,
    ) -> Poll<Result<(), Lost>> {
        loop {
            if let ReadProgress::Ended = ready!(self.poll_read(cx, exchange))? {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Waits for one read and processes its bytes.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        exchange: Exchange<'_>,
    ) -> Poll<Result<ReadProgress, Lost>> {
        let mut buffer = exchange.context.buffer.borrow_mut();
        Poll::Ready(match ready!(self.wire.poll_receive(cx, &mut buffer)) {
            Ok(0) => self.closed(exchange),
            Ok(size) => self
                .take_in(exchange, &buffer[..size])
                .map_err(|failure| self.give_up(failure)),
            Err(error) => Err(self.broken(exchange, &error)),
        })
    }

    fn take_in(&mut self, exchange: Exchange<'_>, mut bytes: &[u8]) -> Result<ReadProgress, Failure> {
        let newest = self.wire.newest();
        let stamp = newest.stamp();
        let mut flight = exchange.flight.borrow_mut();
        flight.on_read(stamp, newest.all_kernel());
        loop {
            let part = self
                .decoder
                .next(&mut bytes)
                .map_err(|error| undecodable(exchange.server, &flight, &error))?;
            match part {
                Some(DecodedPart::Body(bytes)) => {
                    if !flight.on_body(stamp, bytes, || exchange.context.budget())? {
                        self.spoiled = true;
                        return Ok(ReadProgress::Ended);
                    }
                }
                None => break,
                Some(DecodedPart::End) => return Ok(ReadProgress::Ended),
                Some(DecodedPart::Head(head)) => flight.on_head(&head)?,
                Some(DecodedPart::Interim(_)) if bytes.is_empty() => flight.on_interim(),
                Some(DecodedPart::Interim(_)) => {}
            }
        }
        flight.after_read(|| exchange.context.budget())?;
        Ok(ReadProgress::More)
    }

    /// Handles the close of the connection by the server.
    fn closed(&mut self, exchange: Exchange<'_>) -> Result<ReadProgress, Lost> {
        match self.decoder.closed() {
            Ok(Closed::EndOfBody) => Ok(ReadProgress::Ended),
            Ok(Closed::Clean) => Err(self.lost(exchange, "end of file")),
            Err(DecodeError::Truncated {
                place: DecodePosition::Head,
            }) => Err(self.lost(exchange, "end of file")),
            Err(error) if error.is_truncated() => Err(self.lost(exchange, &error.to_string())),
            Err(error) => {
                let failure = undecodable(exchange.server, &exchange.flight.borrow(), &error);
                Err(self.give_up(failure))
            }
        }
    }

    /// Handles the failure of the socket or of its TLS session before the end of the answer.
    fn broken(&mut self, exchange: Exchange<'_>, error: &io::Error) -> Lost {
        match alert(error) {
            Some(words) => {
                let message = format!("{}: {words}", exchange.server.peer());
                self.give_up(Failure::new(ErrorClass::Tls, one_line(&message)))
            }
            None => self.lost(exchange, &error.to_string()),
        }
    }

    fn lost(&mut self, exchange: Exchange<'_>, cause: &str) -> Lost {
        self.spoiled = true;
        let place = exchange.server.peer();
        let flight = exchange.flight.borrow();
        if flight.is_answered() {
            let message = format!("the connection was lost in the middle of the answer: {cause}");
            return Lost::Failed(Failure::new(ErrorClass::Truncated, one_line(&message)));
        }
        if self.decoder.has_begun() {
            let message =
                format!("{place} closed the connection in the middle of the answer's head: {cause}");
            return Lost::Failed(Failure::new(ErrorClass::Truncated, one_line(&message)));
        }
        let (class, when) = if flight.was_sent() {
            (ErrorClass::Truncated, "without an answer")
        } else {
            (ErrorClass::Connect, "before the request was sent")
        };
        let message = format!("{place} closed the connection {when}: {cause}");
        Lost::Unanswered(Failure::new(class, one_line(&message)))
    }

    fn give_up(&mut self, failure: Failure) -> Lost {
        self.spoiled = true;
        Lost::Failed(failure)
    }
}

/// State that the polls of one request need in addition to the connection.
#[derive(Clone, Copy)]
pub(crate) struct Exchange<'a> {
    pub(crate) context: &'a ClientContext,
    pub(crate) server: &'a PreparedServer,
    pub(crate) flight: &'a RefCell<Flight>,
}

/// Returns the failure for bytes from the server that are not valid HTTP/1.1.
fn undecodable(server: &PreparedServer, flight: &Flight, error: &DecodeError) -> Failure {
    let message = if flight.is_answered() {
        format!("the answer's body is not what HTTP/1.1 describes: {error}")
    } else {
        format!("{} does not answer in HTTP/1.1: {error}", server.peer())
    };
    Failure::new(ErrorClass::Protocol, one_line(&message))
}
