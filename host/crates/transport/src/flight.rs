//! One request under way: what is known of it, from the moment a client thread takes it until it lands.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use veeksha_endpoint::Failure;
use veeksha_endpoint::ReadStamp;
use veeksha_http1::Head;
use veeksha_model::{ErrorClass, Nanos, StampSource};
use veeksha_ports::{ConnectionUse, Job, Timings};

use crate::connecting::Step;
use crate::figures::ThreadFigures;
use crate::h2_io::Sending;
use crate::landed::Landed;
use crate::received::{Received, Taken};
use crate::route::Route;
use crate::ticket::Ticket;

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its connection is being opened.
    Opening(Step),
    /// It is being sent.
    Sending,
    /// It was sent.
    Waiting,
    /// The answer has begun.
    Answered,
}

impl Phase {
    /// What a person wants to know about a request that was given up after so many events.
    pub(crate) fn words(self, events: usize) -> String {
        match self {
            Phase::Opening(step) => step.words().to_owned(),
            Phase::Sending => "while sending the request".to_owned(),
            Phase::Waiting => "while waiting for the answer".to_owned(),
            Phase::Answered => format!("in the middle of the answer, after {events} events"),
        }
    }
}

/// What is known while a connection is being opened; written by whoever opens it.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    pub(crate) used: Cell<ConnectionUse>,
    pub(crate) step: Cell<Step>,
    /// Until when it has to be open; `None` once it is, and where only the request's own deadline counts.
    pub(crate) by: Cell<Option<Nanos>>,
}

/// A request under way. It outlives the exchange when a deadline or a cancellation ends that.
pub(crate) struct Flight {
    /// `None` once it has landed.
    ticket: Option<Ticket>,
    number: u64,
    route: Arc<Route>,
    figures: Arc<ThreadFigures>,
    picked_up_at: Nanos,
    /// Whether a connection carries it; before that `opening` says how far it is.
    carried: bool,
    opening: Rc<Opening>,
    sent_at: Option<Nanos>,
    /// When the newest write began.
    writing_at: Option<Nanos>,
    /// Knows that of a request on a shared connection.
    sending: Option<Rc<Sending>>,
    first_byte_at: Option<Nanos>,
    stamps: StampSource,
    newest: ReadStamp,
    status: Option<u16>,
    content_type: Option<String>,
    received: Received,
}

impl Flight {
    pub(crate) fn new(
        ticket: Ticket,
        number: u64,
        route: Arc<Route>,
        figures: Arc<ThreadFigures>,
        picked_up_at: Nanos,
    ) -> Self {
        let opening = Opening::default();
        opening.used.set(ConnectionUse {
            server: ticket.server(),
            ..ConnectionUse::default()
        });
        Flight {
            ticket: Some(ticket),
            number,
            route,
            figures,
            picked_up_at,
            carried: false,
            opening: Rc::new(opening),
            sent_at: None,
            writing_at: None,
            sending: None,
            first_byte_at: None,
            stamps: StampSource::Read,
            newest: ReadStamp {
                at: 0,
                lag: 0,
                read: 0,
            },
            status: None,
            content_type: None,
            received: Received::Nothing,
        }
    }

    /// The job, until the flight has landed.
    pub(crate) fn job(&self) -> Option<&Job> {
        self.ticket.as_ref()?.job()
    }

    pub(crate) fn opening(&self) -> &Rc<Opening> {
        &self.opening
    }

    /// Its number on its thread.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// When it was picked up.
    pub(crate) fn began_at(&self) -> Nanos {
        self.picked_up_at
    }

    /// A connection takes it.
    pub(crate) fn on_carried(&mut self, reused: bool) {
        self.carried = true;
        self.opening.by.set(None);
        let used = self.opening.used.get();
        self.opening.used.set(ConnectionUse { reused, ..used });
    }

    /// The connection that took it was dead: it is as if it had not been sent, except that this is remembered.
    pub(crate) fn on_lost_unanswered(&mut self) {
        self.carried = false;
        self.sent_at = None;
        self.writing_at = None;
        self.sending = None;
        self.first_byte_at = None;
        self.opening.used.set(ConnectionUse {
            server: self.opening.used.get().server,
            retried: true,
            ..ConnectionUse::default()
        });
    }

    /// The last byte of the request was handed to the socket.
    pub(crate) fn on_sent(&mut self, at: Nanos) {
        // The write that carried the last byte wakes the server, which may well run first: when the write began says more of when
        // the bytes left than when this thread came back from it.
        self.sent_at = self.writing_at.or(Some(at));
    }

    /// It is sent on a connection that others share; `sending` is told when its last byte was handed to the socket.
    pub(crate) fn on_sending(&mut self, sending: Rc<Sending>) {
        self.sending = Some(sending);
    }

    /// Bytes of the request are about to be written.
    pub(crate) fn on_writing(&mut self, at: Nanos) {
        self.writing_at = Some(at);
    }

    fn sent_at(&self) -> Option<Nanos> {
        self.sent_at
            .or_else(|| self.sending.as_ref().and_then(|sending| sending.sent_at()))
    }

    /// A read brought bytes for it. `kernel`: all reads of this answer so far have the kernel's time.
    pub(crate) fn on_read(&mut self, stamp: ReadStamp, kernel: bool) {
        self.first_byte_at.get_or_insert(stamp.at);
        self.newest = stamp;
        self.stamps = if kernel {
            StampSource::Kernel
        } else {
            StampSource::Read
        };
    }

    /// What was read was an interim answer and nothing else.
    pub(crate) fn on_interim(&mut self) {
        self.first_byte_at = None;
    }

    /// Whether the whole request was handed to the socket.
    pub(crate) fn was_sent(&self) -> bool {
        self.sent_at.is_some()
    }

    /// Whether the head of the answer has come.
    pub(crate) fn is_answered(&self) -> bool {
        self.status.is_some()
    }

    /// The head of the answer.
    pub(crate) fn on_head(&mut self, head: &Head) -> Result<(), Failure> {
        self.on_head_fields(head.status, |name| {
            let value = head.headers.get(name)?;
            Some(String::from_utf8_lossy(value).into_owned())
        })
    }

    /// As [`Flight::on_head`], whatever the head is made of.
    pub(crate) fn on_head_fields(
        &mut self,
        status: u16,
        header: impl Fn(&str) -> Option<String>,
    ) -> Result<(), Failure> {
        self.status = Some(status);
        if !(200..300).contains(&status) {
            self.received = Received::Refusal {
                location: header("location"),
                bytes: Vec::new(),
            };
            return Ok(());
        }
        if let Some(encoding) =
            header("content-encoding").filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
        {
            let message = format!(
                "the answer is compressed ({encoding}) although `Accept-Encoding: identity` was sent"
            );
            return Err(Failure::with_status(
                ErrorClass::Protocol,
                Some(status),
                veeksha_endpoint::one_line(&message),
            ));
        }
        self.content_type = header("content-type").map(|kind| kind.to_ascii_lowercase());
        Ok(())
    }

    /// Bytes of the answer's body. False: no more of them are wanted.
    pub(crate) fn on_body(
        &mut self,
        stamp: ReadStamp,
        bytes: &[u8],
        budget: impl FnOnce() -> usize,
    ) -> Result<bool, Failure> {
        match self.received.take(
            &self.route.target,
            stamp,
            bytes,
            self.content_type.as_deref(),
            budget,
        )? {
            Taken::More => Ok(true),
            Taken::Enough => Ok(false),
            Taken::First(at) => {
                if let Some(ticket) = &self.ticket {
                    ticket.tell_first_chunk(at);
                }
                Ok(true)
            }
        }
    }

    /// All that a read brought was taken. What waits is understood if it is more than `budget` bytes.
    #[inline]
    pub(crate) fn after_read(&mut self, budget: impl FnOnce() -> usize) -> Result<(), Failure> {
        self.received.after_read(budget)
    }

    /// A look from time to time: whether the answer's data have ended long enough ago to give up its open body.
    pub(crate) fn has_lingered(&mut self, now: Nanos) -> bool {
        let linger = u64::try_from(self.route.linger.as_nanos()).unwrap_or(u64::MAX);
        let target = &self.route.target;
        self.received.has_lingered(target, now, self.newest, linger)
    }

    fn phase(&self) -> Phase {
        match (self.carried, self.first_byte_at, self.sent_at()) {
            (false, ..) => Phase::Opening(self.opening.step.get()),
            (true, Some(_), _) => Phase::Answered,
            (true, None, Some(_)) => Phase::Waiting,
            (true, None, None) => Phase::Sending,
        }
    }

    /// The request is over. Only the first call does anything.
    pub(crate) fn land(&mut self, end: Result<(), Failure>) {
        let Some(ticket) = self.ticket.take() else { return };
        // The answer's first byte cannot be older than the request's last one: the thread was late to look at its clock.
        let sent_at = match (self.sent_at(), self.first_byte_at) {
            (Some(sent), Some(first)) => Some(sent.min(first)),
            (sent, _) => sent,
        };
        let timings = Timings {
            picked_up_at: Some(self.picked_up_at),
            sent_at,
            first_byte_at: self.first_byte_at,
            completed_at: self.route.clock.now(),
            stamps: self.stamps,
        };
        let (route, figures) = (Arc::clone(&self.route), Arc::clone(&self.figures));
        let phase = self.phase();
        let connection = self.opening.used.get();
        let received = std::mem::take(&mut self.received);
        let content_type = self.content_type.take();
        let (status, newest) = (self.status, self.newest);
        ticket.deliver(|job| {
            Box::new(Landed {
                job,
                route,
                figures,
                timings,
                connection,
                phase,
                status,
                content_type,
                received,
                newest,
                end,
            })
        });
    }
}
