//! State of one request, from the moment a client thread takes it until it lands.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use veeksha_endpoint::{BodyEnd, EchoedPrompt, Failure, ReadStamp, request_body};
use veeksha_http1::Head;
use veeksha_model::{ErrorClass, Nanos, StampSource};
use veeksha_ports::{ConnectionUse, Job, Timings};
use xxhash_rust::xxh3::xxh3_64;

use crate::connecting::OpeningStep;
use crate::flight_phase::FlightPhase;
use crate::h2_io::Sending;
use crate::landed::Landed;
use crate::receive_stats::ThreadCounters;
use crate::received::{Received, Taken};
use crate::response_ids::ResponseIds;
use crate::route::Route;
use crate::ticket::Ticket;

/// Progress of opening a connection. The code that opens the connection writes it.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    pub(crate) used: Cell<ConnectionUse>,
    pub(crate) step: Cell<OpeningStep>,
    /// Connect deadline. `None` once the connection is open, and where only the deadline of the
    /// request applies.
    pub(crate) by: Cell<Option<Nanos>>,
}

/// A request in progress. It outlives the exchange if a deadline or a cancellation ends the
/// exchange.
pub(crate) struct Flight {
    /// `None` once the flight has landed.
    ticket: Option<Ticket>,
    number: u64,
    route: Arc<Route>,
    counters: Arc<ThreadCounters>,
    picked_up_at: Nanos,
    /// Set once a connection carries the request. Before that, `opening` holds the progress.
    carried: bool,
    opening: Rc<Opening>,
    /// XXH3 of the request's body, once it is built.
    body_digest: Option<u64>,
    sent_at: Option<Nanos>,
    /// Start of the newest write.
    writing_at: Option<Nanos>,
    /// Send state of a request on a shared connection.
    sending: Option<Rc<Sending>>,
    first_byte_at: Option<Nanos>,
    stamps: StampSource,
    newest: ReadStamp,
    status: Option<u16>,
    content_type: Option<String>,
    /// The id of the response, from its head.
    response_ids: ResponseIds,
    /// The prompt that the answer contains before its own text, if it was asked for.
    echo: Option<EchoedPrompt>,
    received: Received,
    /// The number of generated chunks after which the workload wants no more.
    after_chunks: Option<u32>,
    /// True once they have arrived.
    cancelled: bool,
}

/// Reads the form of `Retry-After` that is not a date.
fn whole_seconds(text: &str) -> Option<Nanos> {
    let seconds: u32 = text.trim().parse().ok()?;
    Some(u64::from(seconds) * 1_000_000_000)
}

impl Flight {
    pub(crate) fn new(
        ticket: Ticket,
        number: u64,
        route: Arc<Route>,
        counters: Arc<ThreadCounters>,
        picked_up_at: Nanos,
    ) -> Self {
        let cancellation = ticket
            .job()
            .and_then(|job| job.request.request.cancellation.as_ref());
        let after_chunks = cancellation.and_then(|cancellation| cancellation.after_chunks);
        let opening = Opening::default();
        opening.used.set(ConnectionUse {
            server: ticket.server(),
            ..ConnectionUse::default()
        });
        Flight {
            ticket: Some(ticket),
            number,
            route,
            counters,
            picked_up_at,
            carried: false,
            opening: Rc::new(opening),
            body_digest: None,
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
            response_ids: ResponseIds::default(),
            echo: None,
            received: Received::Nothing,
            after_chunks,
            cancelled: false,
        }
    }

    /// Returns the job until the flight has landed.
    pub(crate) fn job(&self) -> Option<&Job> {
        self.ticket.as_ref()?.job()
    }

    pub(crate) fn opening(&self) -> &Rc<Opening> {
        &self.opening
    }

    /// Returns the number of the flight on its thread.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the time at which the thread took the job.
    pub(crate) fn began_at(&self) -> Nanos {
        self.picked_up_at
    }

    /// Builds the body of the request, and records its digest. A flight that has landed has none.
    pub(crate) fn build_body(&mut self) -> Result<Vec<u8>, Failure> {
        let Some(job) = self.job() else {
            return Ok(Vec::new());
        };
        let body = request_body(&self.route.target.api, &job.request, &job.history)?;
        self.echo = EchoedPrompt::of(&job.request, &body);
        self.body_digest = Some(xxh3_64(&body));
        Ok(body)
    }

    /// Records that a connection carries the request.
    pub(crate) fn on_carried(&mut self, reused: bool) {
        self.carried = true;
        self.opening.by.set(None);
        let used = self.opening.used.get();
        self.opening.used.set(ConnectionUse { reused, ..used });
    }

    /// Records that the connection was dead. The state is reset as if the request had not been
    /// sent, except for this mark.
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

    /// Records that the last byte of the request was passed to the socket.
    pub(crate) fn on_sent(&mut self, at: Nanos) {
        // The write of the last byte wakes the server, which may run before this thread. The
        // start of the write is therefore a better estimate of when the bytes left than its return.
        self.sent_at = self.writing_at.or(Some(at));
    }

    /// Records that the request is sent on a shared connection. `sending` is notified when its last
    /// byte is passed to the socket.
    pub(crate) fn on_sending(&mut self, sending: Rc<Sending>) {
        self.sending = Some(sending);
    }

    /// Records that bytes of the request are about to be written.
    pub(crate) fn on_writing(&mut self, at: Nanos) {
        self.writing_at = Some(at);
    }

    fn sent_at(&self) -> Option<Nanos> {
        self.sent_at
            .or_else(|| self.sending.as_ref().and_then(|sending| sending.sent_at()))
    }

    /// Records a read with bytes of the answer. `kernel`: all reads of this answer so far have a
    /// kernel stamp.
    pub(crate) fn on_read(&mut self, stamp: ReadStamp, kernel: bool) {
        self.first_byte_at.get_or_insert(stamp.at);
        self.newest = stamp;
        self.stamps = if kernel {
            StampSource::Kernel
        } else {
            StampSource::Read
        };
    }

    /// Records that the read contained only an interim answer.
    pub(crate) fn on_interim(&mut self) {
        self.first_byte_at = None;
    }

    /// Returns true if the whole request was passed to the socket.
    pub(crate) fn was_sent(&self) -> bool {
        self.sent_at.is_some()
    }

    /// Returns true if the head of the answer has arrived.
    pub(crate) fn is_answered(&self) -> bool {
        self.status.is_some()
    }

    /// Processes the head of the answer.
    pub(crate) fn on_head(&mut self, head: &Head) -> Result<(), Failure> {
        self.on_head_fields(head.status, |name| {
            let value = head.headers.get(name)?;
            Some(String::from_utf8_lossy(value).into_owned())
        })
    }

    /// Processes the head like [`Flight::on_head`], independently of its representation.
    pub(crate) fn on_head_fields(
        &mut self,
        status: u16,
        header: impl Fn(&str) -> Option<String>,
    ) -> Result<(), Failure> {
        self.status = Some(status);
        self.response_ids = ResponseIds::of(&header);
        if !(200..300).contains(&status) {
            self.received = Received::Refusal {
                location: header("location"),
                retry_after: header("retry-after").as_deref().and_then(whole_seconds),
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

    /// Processes bytes of the body. Returns false if no more of them are needed.
    pub(crate) fn on_body(
        &mut self,
        stamp: ReadStamp,
        bytes: &[u8],
        budget: impl FnOnce() -> usize,
    ) -> Result<bool, Failure> {
        let (target, content_type) = (&self.route.target, self.content_type.as_deref());
        // To count chunks, each has to be decoded when it comes.
        let budget = self.after_chunks.is_none().then_some(budget);
        match self
            .received
            .take((target, self.echo.as_ref()), stamp, bytes, content_type, budget)?
        {
            Taken::More => {}
            Taken::Enough => return Ok(false),
            Taken::First(at) => {
                if let Some(ticket) = &self.ticket {
                    ticket.notify_first_chunk(at);
                }
            }
        }
        self.cancelled = self
            .after_chunks
            .is_some_and(|limit| self.received.generated_chunks() >= limit as usize);
        Ok(!self.cancelled)
    }

    /// Completes a read. Decodes the waiting bytes if there are more than `budget`.
    #[inline]
    pub(crate) fn after_read(&mut self, budget: impl FnOnce() -> usize) -> Result<(), Failure> {
        self.received.after_read(budget)
    }

    /// Periodic check: returns true if the data of the answer ended long enough ago to close its
    /// open body.
    pub(crate) fn poll_lingering(&mut self, now: Nanos) -> bool {
        let linger = u64::try_from(self.route.linger.as_nanos()).unwrap_or(u64::MAX);
        let target = &self.route.target;
        self.received.poll_lingering(target, now, self.newest, linger)
    }

    fn phase(&self) -> FlightPhase {
        match (self.carried, self.first_byte_at, self.sent_at()) {
            (false, ..) => FlightPhase::Opening(self.opening.step.get()),
            (true, Some(_), _) => FlightPhase::Answered,
            (true, None, Some(_)) => FlightPhase::Waiting,
            (true, None, None) => FlightPhase::Sending,
        }
    }

    /// Ends the request. Only the first call has an effect.
    pub(crate) fn land(&mut self, end: BodyEnd) {
        let Some(ticket) = self.ticket.take() else { return };
        let end = match end {
            BodyEnd::Complete if self.cancelled => BodyEnd::Cancelled,
            end => end,
        };
        // The first byte of the answer cannot precede the last byte of the request: the thread read
        // its clock too late.
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
        let (route, counters) = (Arc::clone(&self.route), Arc::clone(&self.counters));
        let phase = self.phase();
        let connection = self.opening.used.get();
        let (received, echo) = (std::mem::take(&mut self.received), self.echo.take());
        let (content_type, response_ids) = (self.content_type.take(), std::mem::take(&mut self.response_ids));
        let (status, newest, body_digest) = (self.status, self.newest, self.body_digest);
        ticket.deliver(|job| {
            Box::new(Landed {
                job,
                route,
                counters,
                timings,
                connection,
                phase,
                body_digest,
                status,
                content_type,
                response_ids,
                received,
                echo,
                newest,
                end,
            })
        });
    }
}
