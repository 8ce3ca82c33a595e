//! The promise of exactly one outcome for each job, kept by ownership: a ticket delivers when it is spent, and if it is lost
//! (cancelled before it started, a panic, a thread that ended) its destructor delivers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use veeksha_clock::RunClock;
use veeksha_model::{ErrorClass, FailureReason};
use veeksha_ports::{ConnectionUse, Job, Outcome, OutcomeSink, Timings};

/// Where outcomes go, and how many are still owed.
pub(crate) struct Delivery {
    pub(crate) sink: OutcomeSink,
    pub(crate) in_flight: AtomicUsize,
    pub(crate) clock: RunClock,
}

/// A job whose outcome is owed.
pub(crate) struct Ticket {
    job: Option<Job>,
    delivery: Arc<Delivery>,
}

impl Ticket {
    /// Takes a job in; from now on its outcome is owed.
    pub(crate) fn new(job: Job, delivery: &Arc<Delivery>) -> Self {
        delivery.in_flight.fetch_add(1, Ordering::SeqCst);
        Ticket {
            job: Some(job),
            delivery: Arc::clone(delivery),
        }
    }

    /// The job; present until the ticket is spent.
    pub(crate) fn job(&self) -> Option<&Job> {
        self.job.as_ref()
    }

    /// Pays the outcome that `make` builds of the job.
    pub(crate) fn deliver(mut self, make: impl FnOnce(Job) -> Outcome) {
        if let Some(job) = self.job.take() {
            let _settled = Settled(&self.delivery);
            (self.delivery.sink)(make(job));
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
        let _settled = Settled(&self.delivery);
        (self.delivery.sink)(Outcome {
            job,
            timings: Timings {
                completed_at: at,
                ..Timings::default()
            },
            connection: ConnectionUse::default(),
            status: None,
            chunks: Vec::new(),
            result: Err(reason),
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
