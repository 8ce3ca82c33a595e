//! The guarantee of exactly one outcome for each job, implemented by ownership: a ticket delivers
//! the outcome when it is consumed. If it is lost (cancelled before it started, a panic, a thread
//! that ended), its destructor delivers it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use veeksha_clock::RunClock;
use veeksha_model::{ErrorClass, FailureReason, Nanos, RequestId};
use veeksha_ports::{ConnectionUse, Job, PendingOutcome, RequestOutcome, Sinks, Timings};

use crate::load_balancer::LoadBalancer;

/// Destination of outcomes, with the number of outcomes still due.
pub(crate) struct Delivery {
    pub(crate) sinks: Sinks,
    pub(crate) in_flight: AtomicUsize,
    pub(crate) spread: LoadBalancer,
    /// Index of the first server in outcomes.
    pub(crate) first_server: u16,
    pub(crate) clock: RunClock,
}

/// A job whose outcome is due.
pub(crate) struct Ticket {
    job: Option<Job>,
    request: RequestId,
    server: u16,
    delivery: Arc<Delivery>,
}

impl Ticket {
    /// Accepts a job. From now on its outcome is due.
    pub(crate) fn new(job: Job, delivery: &Arc<Delivery>) -> Self {
        delivery.in_flight.fetch_add(1, Ordering::SeqCst);
        Ticket {
            server: delivery.spread.begin(job.id.session),
            request: job.id,
            job: Some(job),
            delivery: Arc::clone(delivery),
        }
    }

    /// Returns the job, which is present until the ticket is consumed.
    pub(crate) fn job(&self) -> Option<&Job> {
        self.job.as_ref()
    }

    /// Returns the id of the job's request.
    pub(crate) fn request(&self) -> RequestId {
        self.request
    }

    /// Returns the index of the job's server among those of the target.
    pub(crate) fn server(&self) -> u16 {
        self.server
    }

    /// Notifies the sink that the first generated chunk arrived, if the job reports it.
    pub(crate) fn notify_first_chunk(&self, at: Nanos) {
        if let Some(job) = self.job.as_ref().filter(|job| job.reports_first_chunk) {
            (self.delivery.sinks.first_chunk)(job.id, at);
        }
    }

    /// Delivers the outcome that `make` builds from the job.
    pub(crate) fn deliver(mut self, make: impl FnOnce(Job) -> Box<dyn PendingOutcome>) {
        if let Some(job) = self.job.take() {
            // Before the delivery, so that requests which it triggers find the server with one
            // request less.
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
            retry_after: None,
            request: job.id,
            class,
            status: None,
            message: message.to_owned(),
            at,
        };
        self.delivery.spread.end(self.server);
        let _settled = Settled(&self.delivery);
        (self.delivery.sinks.returned)(Box::new(RequestOutcome {
            job,
            timings: Timings {
                completed_at: at,
                ..Timings::default()
            },
            connection: ConnectionUse {
                server: self.delivery.first_server.saturating_add(self.server),
                ..ConnectionUse::default()
            },
            status: None,
            chunks: Vec::new(),
            chunk_texts: Vec::new(),
            chunk_tokens: Vec::new(),
            body_digest: None,
            response_id: None,
            trace_id: None,
            result: Err(reason),
            codec_failure: None,
        }));
    }
}

/// Counts an outcome as delivered once the sink has returned, even if it panics.
struct Settled<'a>(&'a Delivery);

impl Drop for Settled<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use veeksha_model::{NodeId, Prepared, Request, RequestId, SessionId};

    use super::*;

    fn job() -> Job {
        let request = Request {
            node: NodeId(0),
            ..Request::default()
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
                ..Prepared::default()
            }),
            history: None,
            session_requests: 1,
            measured: true,
            reports_first_chunk: true,
        }
    }

    /// Returns a delivery that collects outcomes, and its collection.
    fn delivery() -> (Arc<Delivery>, Arc<Mutex<Vec<RequestOutcome>>>) {
        let outcomes = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&outcomes);
        let sinks = Sinks::outcomes(move |outcome| collected.lock().unwrap().push(outcome));
        let delivery = Delivery {
            sinks,
            in_flight: AtomicUsize::new(0),
            spread: LoadBalancer::new(crate::BalanceRule::RoundRobin, 1),
            first_server: 0,
            clock: RunClock::starting_now(),
        };
        (Arc::new(delivery), outcomes)
    }

    #[test]
    fn consumed_ticket_delivers_once() {
        let (delivery, outcomes) = delivery();
        let ticket = Ticket::new(job(), &delivery);
        assert_eq!(delivery.in_flight.load(Ordering::SeqCst), 1);
        ticket.deliver(|job| {
            Box::new(RequestOutcome {
                job,
                timings: Timings::default(),
                connection: ConnectionUse::default(),
                status: Some(200),
                chunks: Vec::new(),
                chunk_texts: Vec::new(),
                chunk_tokens: Vec::new(),
                body_digest: None,
                response_id: None,
                trace_id: None,
                result: Ok(Default::default()),
                codec_failure: None,
            })
        });
        assert_eq!(outcomes.lock().unwrap().len(), 1);
        assert_eq!(delivery.in_flight.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn dropped_ticket_delivers_a_cancellation() {
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
    fn ticket_dropped_by_a_panic_delivers_an_internal_error() {
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
    fn panic_in_a_sink_counts_as_delivered() {
        let sinks = Sinks::outcomes(|_| panic!("a sink that fails, on purpose"));
        let delivery = Arc::new(Delivery {
            sinks,
            in_flight: AtomicUsize::new(0),
            spread: LoadBalancer::new(crate::BalanceRule::RoundRobin, 1),
            first_server: 0,
            clock: RunClock::starting_now(),
        });
        let ticket = Ticket::new(job(), &delivery);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(ticket))).is_err());
        assert_eq!(delivery.in_flight.load(Ordering::SeqCst), 0);
    }
}
