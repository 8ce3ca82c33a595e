//! What sends requests.

use std::sync::Arc;

use veeksha_model::{Chunk, FailureReason, History, Nanos, Prepared, RequestId, Response};

/// A request that is due now.
#[derive(Clone, Debug)]
pub struct Job {
    /// Which request.
    pub id: RequestId,
    /// The instant the schedule asked for.
    pub intended: Nanos,
    /// When the dispatcher handed it over.
    pub dispatched_at: Nanos,
    /// The new messages, as text.
    pub request: Arc<Prepared>,
    /// The conversation before them.
    pub history: Option<Arc<History<Prepared>>>,
    /// Nodes of the session known when it was dispatched; carried to the record.
    pub session_requests: u32,
    /// Whether it counts (false once `benchmark_timeout` has passed); carried to the record.
    pub measured: bool,
}

/// How a request met its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionUse {
    /// An earlier request had used the connection.
    pub reused: bool,
    /// Name resolution and TCP connect of a new connection, in nanoseconds.
    pub connect: Option<Nanos>,
    /// The TLS handshake of a new connection, in nanoseconds.
    pub tls: Option<Nanos>,
    /// The request was sent again on a fresh connection, because the pooled one turned out to be dead before any byte of
    /// an answer came.
    pub retried: bool,
}

/// When things happened to a request; `None` where it never got so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// A client thread took the job from its queue.
    pub picked_up_at: Option<Nanos>,
    /// The last byte of the request was handed to the socket.
    pub sent_at: Option<Nanos>,
    /// The first byte of the answer was read.
    pub first_byte_at: Option<Nanos>,
    /// The last event was read, or the failure was known.
    pub completed_at: Nanos,
}

/// What became of a [`Job`]: exactly one outcome for each job submitted.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The job.
    pub job: Job,
    /// Its timestamps.
    pub timings: Timings,
    /// Its connection.
    pub connection: ConnectionUse,
    /// The HTTP status, if one came.
    pub status: Option<u16>,
    /// Every event of the stream, in order; also those before a failure.
    pub chunks: Vec<Chunk>,
    /// The answer, or why there is none.
    pub result: Result<Response, FailureReason>,
}

/// Where outcomes go. Called on a client thread: it must not block.
pub type OutcomeSink = Arc<dyn Fn(Outcome) + Send + Sync>;

/// Sends requests on threads of its own.
pub trait Transport: Send + Sync {
    /// Hands a job to a client thread; never blocks. Jobs of one session go to the same thread.
    fn submit(&self, job: Job);

    /// Gives up every request in flight: each one's outcome is a failure of class
    /// [`veeksha_model::ErrorClass::Cancelled`], and comes through the sink soon after.
    fn cancel_all(&self);

    /// Requests submitted and not yet answered.
    fn in_flight(&self) -> usize;
}
