//! One request under way, and the promise of exactly one outcome for each job.
//!
//! The promise is kept by ownership: a ticket delivers when it is spent, and if it is lost (cancelled before it started, a
//! panic, a thread that ended) its destructor delivers.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use veeksha_clock::RunClock;
use veeksha_dialect::Failure;
use veeksha_dialect::stream::ReadStamp;
use veeksha_http1::Head;
use veeksha_model::{ErrorClass, FailureReason, Nanos, StampSource};
use veeksha_ports::{ConnectionUse, Job, Outcome, Returned, Sinks, Timings};

use crate::balance::Spread;
use crate::connecting::Step;
use crate::figures::ThreadFigures;
use crate::h2_io::Sending;
use crate::landed::Landed;
use crate::received::{Received, Taken};
use crate::route::Route;

/// Where outcomes go, and how many are still owed.
pub(crate) struct Delivery {
    pub(crate) sinks: Sinks,
    pub(crate) in_flight: AtomicUsize,
    pub(crate) spread: Spread,
    pub(crate) clock: RunClock,
}

/// A job whose outcome is owed.
pub(crate) struct Ticket {
    job: Option<Job>,
    server: u16,
    delivery: Arc<Delivery>,
}

impl Ticket {
    /// Takes a job in; from now on its outcome is owed.
    pub(crate) fn new(job: Job, delivery: &Arc<Delivery>) -> Self {
        delivery.in_flight.fetch_add(1, Ordering::SeqCst);
        Ticket {
            server: delivery.spread.begin(job.id.session),
            job: Some(job),
            delivery: Arc::clone(delivery),
        }
    }

    /// The job; present until the ticket is spent.
    pub(crate) fn job(&self) -> Option<&Job> {
        self.job.as_ref()
    }

    /// Which of the target's servers it goes to.
    pub(crate) fn server(&self) -> u16 {
        self.server
    }

    /// Pays what `make` builds of the job.
    pub(crate) fn deliver(mut self, make: impl FnOnce(Job) -> Box<dyn Returned>) {
        if let Some(job) = self.job.take() {
            // Before it is told: what follows from it is to find the server with one request less.
            self.delivery.spread.end(self.server);
            let _settled = Settled(&self.delivery);
            (self.delivery.sinks.returned)(make(job));
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Some(job) = self.job.take() else { return };
        let at = self.delivery.clock.now();
        let (class, message) = if std::thread::panicking() {
            (
                ErrorClass::Protocol,
                "the client task failed on an internal error; please report it",
            )
        } else {
            (
                ErrorClass::Cancelled,
                "the request was withdrawn before it was sent",
            )
        };
        let reason = FailureReason {
            request: job.id,
            class,
            status: None,
            message: message.to_owned(),
            at,
        };
        self.delivery.spread.end(self.server);
        let _settled = Settled(&self.delivery);
        (self.delivery.sinks.returned)(Box::new(Outcome {
            job,
            timings: Timings {
                completed_at: at,
                ..Timings::default()
            },
            connection: ConnectionUse {
                server: self.server,
                ..ConnectionUse::default()
            },
            status: None,
            chunks: Vec::new(),
            result: Err(reason),
            codec_failure: None,
        }));
    }
}

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
        self.sent_at = Some(at);
    }

    /// It is sent on a connection that others share; `sending` is told when its last byte was handed to the socket.
    pub(crate) fn on_sending(&mut self, sending: Rc<Sending>) {
        self.sending = Some(sending);
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
                veeksha_dialect::one_line(&message),
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
                if let Some(ticket) = &self.ticket
                    && let (Some(job), Some(sink)) = (ticket.job(), &ticket.delivery.sinks.first_chunk)
                {
                    sink(job.id, at);
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

/// Counts an outcome as paid once the sink has returned, even if it panics.
struct Settled<'a>(&'a Delivery);

impl Drop for Settled<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use veeksha_model::{NodeId, OutputSpec, Prepared, Request, RequestId, SessionId};

    use super::*;

    fn job() -> Job {
        let request = Request {
            node: NodeId(0),
            parents: Vec::new(),
            history_parent: None,
            wait_after_ready: 0,
            messages: Vec::new(),
            output: OutputSpec::default(),
            body: None,
            labels: Vec::new(),
            replay: None,
        };
        Job {
            id: RequestId {
                session: SessionId(1),
                node: NodeId(0),
            },
            intended: 0,
            held: Default::default(),
            dispatched_at: 0,
            request: Arc::new(Prepared {
                request,
                messages: Vec::new(),
                target_tokens: 0,
                prompt_tokens: 0,
                template_tokens: 0,
                recorded_answer: None,
            }),
            history: None,
            session_requests: 1,
            measured: true,
        }
    }

    /// A delivery that collects, and what it collected.
    fn delivery() -> (Arc<Delivery>, Arc<Mutex<Vec<Outcome>>>) {
        let outcomes = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&outcomes);
        let sinks = Sinks::outcomes(move |outcome| collected.lock().unwrap().push(outcome));
        let delivery = Delivery {
            sinks,
            in_flight: AtomicUsize::new(0),
            spread: Spread::new(crate::Balance::RoundRobin, 1),
            clock: RunClock::starting_now(),
        };
        (Arc::new(delivery), outcomes)
    }

    #[test]
    fn a_spent_ticket_pays_once() {
        let (delivery, outcomes) = delivery();
        let ticket = Ticket::new(job(), &delivery);
        assert_eq!(delivery.in_flight.load(Ordering::SeqCst), 1);
        ticket.deliver(|job| {
            Box::new(Outcome {
                job,
                timings: Timings::default(),
                connection: ConnectionUse::default(),
                status: Some(200),
                chunks: Vec::new(),
                result: Ok(Default::default()),
                codec_failure: None,
            })
        });
        assert_eq!(outcomes.lock().unwrap().len(), 1);
        assert_eq!(delivery.in_flight.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_lost_ticket_pays_that_it_was_cancelled() {
        let (delivery, outcomes) = delivery();
        drop(Ticket::new(job(), &delivery));
        let outcomes = outcomes.lock().unwrap();
        assert_eq!(
            outcomes[0].result.as_ref().unwrap_err().class,
            ErrorClass::Cancelled
        );
        assert_eq!(
            (outcomes.len(), delivery.in_flight.load(Ordering::SeqCst)),
            (1, 0)
        );
    }

    #[test]
    fn a_panic_pays_that_there_was_a_fault() {
        let (delivery, outcomes) = delivery();
        let ticket = Ticket::new(job(), &delivery);
        let panicked = std::thread::spawn(move || {
            let _ticket = ticket;
            panic!("a fault in the client, on purpose");
        });
        assert!(panicked.join().is_err());
        let outcomes = outcomes.lock().unwrap();
        let failure = outcomes[0].result.as_ref().unwrap_err();
        assert_eq!(failure.class, ErrorClass::Protocol);
        assert!(failure.message.contains("internal error"), "{}", failure.message);
        assert_eq!(
            (outcomes.len(), delivery.in_flight.load(Ordering::SeqCst)),
            (1, 0)
        );
    }

    #[test]
    fn a_sink_that_panics_does_not_leave_a_debt() {
        let sinks = Sinks::outcomes(|_| panic!("a sink that fails, on purpose"));
        let delivery = Arc::new(Delivery {
            sinks,
            in_flight: AtomicUsize::new(0),
            spread: Spread::new(crate::Balance::RoundRobin, 1),
            clock: RunClock::starting_now(),
        });
        let ticket = Ticket::new(job(), &delivery);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(ticket))).is_err());
        assert_eq!(delivery.in_flight.load(Ordering::SeqCst), 0);
    }
}
