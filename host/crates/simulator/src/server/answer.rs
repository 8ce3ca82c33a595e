//! Converts engine events to the events of a stream, or to one whole answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpStream;
use tokio::sync::Notify;
use veeksha_model::{ChunkKind, Nanos, Usage};

use super::answer_framing::{AnswerFraming, ChunkStyle};
use super::answer_writer::{After, AnswerWriter};
use super::delivery_mode::DeliveryMode;
use super::head::AnswerHead;
use super::recorder::RequestRecorder;
use super::script::{AnswerContent, EndMarker, EventBuffer, MID_STREAM, Script, error_answer, script};
use super::served_api::ServedApi;
use super::truth::TruthOutcome;
use crate::engine::{EngineEvent, Fault, FinishReason};
use crate::wire_fault::WireFault;

/// Receives the engine's events of one request. The engine's thread writes, the connection's task
/// waits for the end.
pub(super) struct Sink {
    answer: Mutex<ServedAnswer>,
    /// Notified when the connection's task has work to do.
    pub(super) wake: Notify,
    ended: AtomicBool,
}

impl Sink {
    pub(super) fn new(answer: ServedAnswer) -> Arc<Sink> {
        Arc::new(Sink {
            answer: Mutex::new(answer),
            wake: Notify::new(),
            ended: AtomicBool::new(false),
        })
    }

    // Nothing panics while the lock is held, and the data is consistent at every point.
    pub(super) fn answer(&self) -> MutexGuard<'_, ServedAnswer> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the engine has sent its terminal event.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Handles an event on the engine's thread. `next` is the following event, if it belongs to the
    /// same request. Returns the time at which a token was written.
    pub(super) fn take(
        &self,
        event: &EngineEvent,
        next: Option<&EngineEvent>,
        scratch: &mut EventBuffer,
    ) -> Option<Nanos> {
        let mut answer = self.answer();
        let stamp = answer.on_event(event, next, scratch);
        let waits = answer.writer.flush() != super::answer_writer::Flushed::Empty;
        let over = answer.writer.over().is_some();
        drop(answer);
        if event.is_terminal() {
            self.ended.store(true, Ordering::Relaxed);
        }
        if waits || over {
            self.wake.notify_one();
        }
        stamp
    }
}

/// One answer.
pub(super) struct ServedAnswer {
    pub(super) writer: AnswerWriter,
    api: ServedApi,
    script: Box<dyn Script>,
    delivery: DeliveryMode,
    reasoning: u32,
    fault: Option<WireFault>,
    /// Number of tokens before a fault of the wire that breaks or pauses the answer.
    fault_after: u32,
    stall: Nanos,
    head: AnswerHead,
    keep_alive: bool,
    prompt: u32,
    tokens: u32,
}

/// Properties of an answer apart from its content.
pub(super) struct AnswerOptions {
    pub(super) api: ServedApi,
    pub(super) head: AnswerHead,
    pub(super) keep_alive: bool,
    /// True if the client supports chunks.
    pub(super) takes_chunks: bool,
    pub(super) fault: Option<WireFault>,
    /// Number of tokens before a fault that breaks or pauses the answer.
    pub(super) fault_after: u32,
    /// The index of a huge event's token.
    pub(super) huge_token: u32,
    pub(super) stall: Nanos,
    pub(super) prompt: u32,
}

impl ServedAnswer {
    pub(super) fn new(
        socket: Arc<TcpStream>,
        recorder: RequestRecorder,
        options: AnswerOptions,
        mut content: AnswerContent,
    ) -> Self {
        let mut writer = AnswerWriter::new(socket, recorder);
        if let Some(fault) = options.fault {
            writer.recorder().fault(Some(fault));
        }
        let framing = match options.fault {
            Some(WireFault::CloseDelimited) => AnswerFraming::Close,
            Some(WireFault::UpperCaseChunks) => AnswerFraming::Chunked(ChunkStyle::UpperCase),
            Some(WireFault::ChunkExtensions) => AnswerFraming::Chunked(ChunkStyle::Extensions),
            Some(WireFault::Trailers) => AnswerFraming::Chunked(ChunkStyle::Trailers),
            Some(WireFault::Gzip) => AnswerFraming::Chunked(ChunkStyle::Plain),
            _ if content.delivery == DeliveryMode::Whole => AnswerFraming::Length,
            _ if !options.takes_chunks => AnswerFraming::Close,
            _ => AnswerFraming::Chunked(ChunkStyle::Plain),
        };
        writer.frame(framing);
        match options.fault {
            Some(WireFault::Gzip) => writer.compress(),
            Some(WireFault::Drip) => writer.drip(),
            // The first token, unless the profile sets a position: the answer's length is not known
            // yet.
            Some(WireFault::HugeEvent) => content.huge = Some(options.huge_token),
            _ => {}
        }
        ServedAnswer {
            writer,
            api: options.api,
            delivery: content.delivery,
            reasoning: content.reasoning,
            script: script(options.api, content),
            fault: options.fault,
            fault_after: options.fault_after,
            stall: options.stall,
            head: options.head,
            keep_alive: options.keep_alive && framing != AnswerFraming::Close,
            prompt: options.prompt,
            tokens: 0,
        }
    }

    /// The engine has accepted the request: writes the head of a stream.
    pub(super) fn accepted(&mut self) {
        if self.delivery != DeliveryMode::Whole {
            self.interim();
            if self.fault == Some(WireFault::StallHead) {
                let until = self.writer.recorder().now().saturating_add(self.stall);
                self.writer.hold(until);
            }
            let head = self
                .head
                .of_body(200, self.api.stream_type(), None, self.keep_alive, self.framing());
            self.writer.head(&head);
        }
    }

    fn framing(&self) -> (AnswerFraming, Option<WireFault>) {
        (self.writer.framing(), self.fault)
    }

    fn interim(&mut self) {
        if self.fault == Some(WireFault::Interim) {
            self.writer
                .raw(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n");
        }
    }

    fn usage(&self, cached: u32, completion: u32) -> Usage {
        Usage {
            prompt: self.prompt,
            completion,
            cached: Some(cached),
            reasoning: (self.reasoning > 0).then(|| self.reasoning.min(completion)),
        }
    }

    fn on_event(
        &mut self,
        event: &EngineEvent,
        next: Option<&EngineEvent>,
        scratch: &mut EventBuffer,
    ) -> Option<Nanos> {
        scratch.clear();
        if self.writer.is_ended() {
            // A fault of the wire ended it; the connection's task is about to cancel the request.
            return None;
        }
        match event {
            EngineEvent::Started { cached_tokens, .. } => {
                if self.delivery != DeliveryMode::Whole {
                    self.script.begin(scratch, &self.usage(*cached_tokens, 0));
                    if !scratch.bytes.is_empty() {
                        self.writer.events(scratch);
                    }
                }
                None
            }
            EngineEvent::Token { index, .. } => {
                self.tokens = index + 1;
                if self.delivery == DeliveryMode::Whole {
                    return None;
                }
                let last = matches!(next, Some(EngineEvent::Finished { .. }));
                self.script.token(scratch, *index, last);
                // In a shorter answer the fault is at the last token.
                let place = *index == self.fault_after || (last && *index < self.fault_after);
                if place && self.apply_wire_fault(scratch) {
                    return None;
                }
                if scratch.bytes.is_empty() && !last {
                    return None;
                }
                if last {
                    // The end has the time of the last token and shares its write.
                    match next {
                        Some(EngineEvent::Finished {
                            reason,
                            cached_tokens,
                            completion_tokens,
                            ..
                        }) => self.finish(scratch, *reason, *cached_tokens, *completion_tokens),
                        _ => None,
                    }
                } else {
                    self.writer.events(scratch)
                }
            }
            EngineEvent::Finished {
                reason,
                cached_tokens,
                completion_tokens,
                ..
            } => {
                if self.delivery == DeliveryMode::Whole {
                    let usage = self.usage(*cached_tokens, *completion_tokens);
                    let body = self.script.whole(Some(*reason), &usage);
                    self.whole(body, TruthOutcome::Finished(*reason), Some(usage));
                }
                None
            }
            EngineEvent::Fault { fault, .. } if event.is_terminal() => {
                self.apply_fault(*fault, scratch);
                None
            }
            EngineEvent::Fault { .. } | EngineEvent::Rejected { .. } => None,
        }
    }

    /// Applies a fault of the wire to the event in `scratch`; returns true if the answer is over.
    /// What remains in `scratch` has still to be written.
    fn apply_wire_fault(&mut self, scratch: &mut EventBuffer) -> bool {
        let after = match self.fault {
            Some(WireFault::StallMiddle) => {
                let until = self.writer.recorder().now().saturating_add(self.stall);
                self.writer.halves(scratch, until);
                scratch.clear();
                return false;
            }
            Some(WireFault::Reset) => After::Reset,
            Some(WireFault::HalfClose) => After::HalfClose,
            _ => return false,
        };
        self.writer.half(scratch);
        self.writer.end(TruthOutcome::Dropped, None, after);
        true
    }

    fn finish(
        &mut self,
        scratch: &mut EventBuffer,
        reason: FinishReason,
        cached: u32,
        completion: u32,
    ) -> Option<Nanos> {
        let usage = self.usage(cached, completion);
        let marker = match self.fault {
            Some(WireFault::MissingDone) => EndMarker::Missing,
            _ => EndMarker::Sent,
        };
        self.script.finish(scratch, reason, &usage, marker);
        let after = match self.fault {
            Some(WireFault::Endless) => After::Endless,
            Some(WireFault::DataAfterDone) => {
                let marks = scratch.marks.len();
                self.script.token(scratch, completion, false);
                // Events after the end are not recorded.
                scratch.marks.truncate(marks);
                self.after()
            }
            _ => self.after(),
        };
        let stamp = match after {
            After::Endless => self.writer.events(scratch),
            _ => self.writer.last_events(scratch),
        };
        self.writer
            .end(TruthOutcome::Finished(reason), Some(usage), after);
        stamp
    }

    fn after(&self) -> After {
        if self.keep_alive {
            After::KeepAlive
        } else {
            After::Close
        }
    }

    /// Applies an engine fault that ends the answer.
    fn apply_fault(&mut self, fault: Fault, scratch: &mut EventBuffer) {
        let after = self.after();
        match (fault, self.delivery) {
            (Fault::MidStreamError, DeliveryMode::Whole) => {
                self.fail(500, MID_STREAM, TruthOutcome::MidStreamError);
            }
            (Fault::MidStreamError, _) => {
                self.script.error(scratch, MID_STREAM);
                self.writer.last_events(scratch);
                self.writer.end(TruthOutcome::MidStreamError, None, after);
            }
            (Fault::Truncate, DeliveryMode::Whole) => {
                let usage = Usage {
                    prompt: self.prompt,
                    completion: self.tokens,
                    ..Usage::default()
                };
                let body = self.script.whole(None, &usage);
                self.whole(body, TruthOutcome::Truncated, None);
            }
            (Fault::Truncate, _) => {
                self.writer.last_events(scratch);
                self.writer.end(TruthOutcome::Truncated, None, after);
            }
            (Fault::DropConnection | Fault::Stall { .. }, DeliveryMode::Whole) => {
                self.writer.end(TruthOutcome::Dropped, None, After::Close);
            }
            // The connection is closed within the next event.
            (Fault::DropConnection | Fault::Stall { .. }, _) => {
                self.script.token(scratch, self.tokens, false);
                self.writer.half(scratch);
                self.writer.end(TruthOutcome::Dropped, None, After::Close);
            }
        }
    }

    /// Writes an answer that is not streamed.
    fn whole(&mut self, body: Vec<u8>, outcome: TruthOutcome, usage: Option<Usage>) {
        self.interim();
        if self.fault == Some(WireFault::StallHead) {
            let until = self.writer.recorder().now().saturating_add(self.stall);
            self.writer.hold(until);
        }
        let length = body.len();
        let mut events = EventBuffer {
            bytes: body,
            marks: Vec::new(),
        };
        events.end(ChunkKind::Content);
        let head = self.head.of_body(
            200,
            "application/json",
            Some(length),
            self.keep_alive,
            self.framing(),
        );
        let cut = match self.fault {
            Some(WireFault::Reset) => Some(After::Reset),
            Some(WireFault::HalfClose) => Some(After::HalfClose),
            _ => None,
        };
        self.writer.head_with_body(head);
        if let Some(after) = cut {
            self.writer.half(&events);
            return self.writer.end(TruthOutcome::Dropped, None, after);
        }
        if self.fault == Some(WireFault::StallMiddle) {
            let until = self.writer.recorder().now().saturating_add(self.stall);
            self.writer.halves(&events, until);
            self.writer.last_events(&EventBuffer::default());
        } else {
            self.writer.last_events(&events);
        }
        self.writer.end(outcome, usage, self.after());
    }

    /// Writes a filler, which is allowed between two events, as a part of the body.
    pub(super) fn filler(&mut self) {
        self.writer.events(&EventBuffer {
            bytes: self.api.filler().to_vec(),
            marks: Vec::new(),
        });
    }

    /// Writes an error status in place of the answer.
    pub(super) fn fail(&mut self, status: u16, message: &str, outcome: TruthOutcome) {
        let (status, body) = error_answer(self.api, status, message);
        let outcome = match outcome {
            TruthOutcome::Status(_) => TruthOutcome::Status(status),
            other => other,
        };
        // Faults of the wire apply to answers, not to errors.
        self.writer.plain();
        if self.fault.take().is_some() {
            self.writer.recorder().fault(None);
        }
        let head = self.head.of_error(status, body.len(), self.keep_alive);
        self.writer.head_with_body(head);
        self.writer.last_events(&EventBuffer {
            bytes: body,
            marks: Vec::new(),
        });
        self.writer.end(outcome, None, self.after());
    }
}
