//! Bodies of answers: whole ones, and streams that write each token as it comes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use veeksha_model::{ChunkKind, Usage};

use crate::{EngineEvent, Fault, FinishReason};

use super::dialect::{DONE, Dialect, Writer};
use super::driver::Ticket;
use super::request::Delivery;
use super::routes::Service;
use super::truth::TruthOutcome;

/// The connection is closed on purpose; hyper does so when a body or a service fails.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed by a simulated fault, or because the server stops")]
pub(super) struct Aborted;

/// The body of a response.
pub(super) enum Answer {
    Whole(Bytes),
    Stream(Box<Stream>),
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        match self.get_mut() {
            Answer::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Answer::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Answer::Stream(stream) => stream.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Answer::Whole(bytes) => bytes.is_empty(),
            Answer::Stream(stream) => stream.state == State::Ended,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Answer::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Answer::Stream(_) => SizeHint::default(),
        }
    }
}

/// Writes one request's truth; what is dropped before its end was disconnected.
pub(super) struct Recorder {
    service: Arc<Service>,
    ordinal: u64,
    arrived_at: u64,
    first_token: bool,
    over: bool,
}

impl Recorder {
    pub(super) fn open(service: &Arc<Service>, request_id: Option<String>, connection: u64) -> Self {
        let arrived_at = service.clock.now();
        let ordinal = service.truth.open(request_id, connection, arrived_at);
        Recorder {
            service: Arc::clone(service),
            ordinal,
            arrived_at,
            first_token: false,
            over: false,
        }
    }

    pub(super) fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// The head of the answer goes out now.
    pub(super) fn head(&self) {
        let now = self.service.clock.now();
        self.service
            .truth
            .update(self.ordinal, |record| record.headers_sent_at = Some(now));
    }

    /// These events go out now, in one write.
    pub(super) fn chunks(&mut self, kinds: &[ChunkKind]) {
        let now = self.service.clock.now();
        self.service.truth.update(self.ordinal, |record| {
            record.chunks.extend(kinds.iter().map(|kind| (now, *kind)))
        });
        if !self.first_token && kinds.iter().any(|kind| kind.is_generated()) {
            self.first_token = true;
            self.service
                .observe_first_token(now.saturating_sub(self.arrived_at));
        }
    }

    /// Nothing more goes out.
    pub(super) fn finish(&mut self, outcome: TruthOutcome, usage: Option<Usage>) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let now = self.service.clock.now();
        self.service.truth.update(self.ordinal, |record| {
            record.finished_at = Some(now);
            record.outcome = outcome;
            record.usage = usage;
        });
        if matches!(outcome, TruthOutcome::Finished(_)) {
            self.service.observe_end(now.saturating_sub(self.arrived_at));
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.finish(TruthOutcome::Disconnected, None);
    }
}

/// How a request ended in the engine.
pub(super) enum End {
    Finished(FinishReason, Usage),
    Broken(Fault),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was written yet.
    New,
    /// Events may come.
    Open,
    /// A chunk was written; hyper is given the chance to flush it before the next one.
    Flush,
    /// A part of an event was written; it is flushed, then the connection is closed.
    FlushThenAbort,
    /// The connection is closed.
    Abort,
    /// All was written.
    Ended,
}

/// A stream of server-sent events, fed by the engine.
pub(super) struct Stream {
    recorder: Recorder,
    ticket: Ticket,
    /// Taken from the ticket, but not written yet.
    ahead: Option<EngineEvent>,
    writer: Writer,
    delivery: Delivery,
    state: State,
    tokens: u32,
}

impl Stream {
    pub(super) fn new(recorder: Recorder, ticket: Ticket, writer: Writer, delivery: Delivery) -> Self {
        Stream {
            recorder,
            ticket,
            ahead: None,
            writer,
            delivery,
            state: State::New,
            tokens: 0,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        match self.state {
            State::New => {
                // Hyper asks for the body right after it has queued the head, and flushes when there is none yet.
                self.recorder.head();
                self.state = State::Open;
            }
            State::Open => {}
            State::Flush | State::FlushThenAbort => {
                self.state = if self.state == State::Flush {
                    State::Open
                } else {
                    State::Abort
                };
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            State::Abort => return Poll::Ready(Some(Err(Aborted))),
            State::Ended => return Poll::Ready(None),
        }
        loop {
            let event = match self.ahead.take() {
                Some(event) => Some(event),
                None => ready!(self.ticket.poll_next(cx)),
            };
            match event {
                // The server stops.
                None => return Poll::Ready(Some(Err(Aborted))),
                Some(EngineEvent::Token { index, .. }) => return self.token(index),
                Some(event) => match end_of(&event) {
                    None => {}
                    Some(End::Finished(reason, usage)) => {
                        let (mut out, mut kinds) = (String::new(), Vec::new());
                        self.finish(&mut out, &mut kinds, reason, usage);
                        return self.write(
                            out,
                            &kinds,
                            State::Ended,
                            Some((TruthOutcome::Finished(reason), Some(usage))),
                        );
                    }
                    Some(End::Broken(fault)) => return self.break_down(fault),
                },
            }
        }
    }

    fn token(&mut self, index: u32) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        let (mut out, mut kinds) = (String::with_capacity(512), Vec::with_capacity(5));
        if index == 0 && self.writer.dialect() == Dialect::Chat {
            self.writer.role(&mut out);
            kinds.push(ChunkKind::Role);
        }
        self.writer.token(&mut out, index);
        kinds.push(ChunkKind::Content);
        self.tokens = index + 1;
        // The end comes at the instant of the last token and shares its write.
        self.ahead = self.ticket.try_next();
        match self.ahead.as_ref().and_then(end_of) {
            Some(End::Finished(reason, usage)) => {
                self.finish(&mut out, &mut kinds, reason, usage);
                self.write(
                    out,
                    &kinds,
                    State::Ended,
                    Some((TruthOutcome::Finished(reason), Some(usage))),
                )
            }
            _ => self.write(out, &kinds, State::Flush, None),
        }
    }

    fn finish(&self, out: &mut String, kinds: &mut Vec<ChunkKind>, reason: FinishReason, usage: Usage) {
        self.writer.finish(out, reason.name());
        kinds.push(ChunkKind::Finish);
        if self.delivery == Delivery::StreamWithUsage {
            self.writer.usage(out, &usage);
            kinds.push(ChunkKind::Usage);
        }
        out.push_str(DONE);
        kinds.push(ChunkKind::Done);
    }

    fn break_down(&mut self, fault: Fault) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        let mut out = String::new();
        match fault {
            Fault::MidStreamError => {
                self.writer.error(&mut out);
                out.push_str(DONE);
                let outcome = Some((TruthOutcome::MidStreamError, None));
                self.write(out, &[ChunkKind::Done], State::Ended, outcome)
            }
            Fault::Truncate => {
                self.recorder.finish(TruthOutcome::Truncated, None);
                self.state = State::Ended;
                Poll::Ready(None)
            }
            // A stall ends nothing and does not come here; the connection is closed inside the next event.
            Fault::DropConnection | Fault::Stall { .. } => {
                self.writer.token(&mut out, self.tokens);
                out.truncate(out.len() / 2);
                self.write(
                    out,
                    &[],
                    State::FlushThenAbort,
                    Some((TruthOutcome::Dropped, None)),
                )
            }
        }
    }

    /// Hands bytes to hyper. The time is taken last.
    fn write(
        &mut self,
        out: String,
        kinds: &[ChunkKind],
        next: State,
        outcome: Option<(TruthOutcome, Option<Usage>)>,
    ) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        let frame = Frame::data(Bytes::from(out));
        self.state = next;
        self.recorder.chunks(kinds);
        if let Some((outcome, usage)) = outcome {
            self.recorder.finish(outcome, usage);
        }
        Poll::Ready(Some(Ok(frame)))
    }
}

/// The end of a request, if the event is one.
pub(super) fn end_of(event: &EngineEvent) -> Option<End> {
    match event {
        EngineEvent::Finished {
            reason,
            prompt_tokens,
            cached_tokens,
            completion_tokens,
            ..
        } => {
            let usage = Usage {
                prompt: *prompt_tokens,
                completion: *completion_tokens,
                cached: Some(*cached_tokens),
                reasoning: None,
            };
            Some(End::Finished(*reason, usage))
        }
        EngineEvent::Fault { fault, .. } if event.is_terminal() => Some(End::Broken(*fault)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use veeksha_clock::RunClock;

    use super::*;
    use crate::server::driver::{Driver, Submission};
    use crate::{EngineRequest, Profile, SimOptions};

    /// Hyper writes when a body has nothing for it. So also when several tokens are ready at once, it must be told so after each.
    #[test]
    fn a_write_lies_between_two_tokens_that_are_both_ready() {
        let clock = RunClock::starting_now();
        let (driver, _feed) = Driver::new(Profile::default(), 1, clock);
        let options = SimOptions::new(Profile::default(), 1);
        let service = Arc::new(Service::new(options, clock, Arc::clone(&driver)));
        let request = EngineRequest {
            prompt_tokens: 5,
            ..EngineRequest::default()
        };
        let Submission::Accepted(ticket) = driver.submit(request) else {
            panic!("refused")
        };
        let token = |index| EngineEvent::Token { id: 0, at: 0, index };
        let (prompt_tokens, cached_tokens, completion_tokens) = (5, 0, 3);
        let reason = FinishReason::Stop;
        let end = EngineEvent::Finished {
            id: 0,
            at: 0,
            reason,
            prompt_tokens,
            cached_tokens,
            completion_tokens,
        };
        driver.deliver(vec![token(0), token(1), token(2), end]);
        let recorder = Recorder::open(&service, None, 0);
        let writer = Writer::new(Dialect::Chat, Delivery::Stream, 0, 0, "m");
        let mut stream = Stream::new(recorder, ticket, writer, Delivery::Stream);
        let mut cx = Context::from_waker(Waker::noop());
        let mut polled = String::new();
        for _ in 0..6 {
            polled.push(match stream.poll(&mut cx) {
                Poll::Ready(Some(Ok(_))) => 'F',
                Poll::Ready(Some(Err(_))) => '!',
                Poll::Ready(None) => '.',
                Poll::Pending => '-',
            });
        }
        assert_eq!(polled, "F-F-F.", "the end shares the last token's write");
    }
}
