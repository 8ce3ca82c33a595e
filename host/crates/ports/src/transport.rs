//! The transport interface: sends requests and returns outcomes.

use std::sync::Arc;

use veeksha_model::{Chunk, FailureReason, Held, History, Nanos, Prepared, RequestId, Response, StampSource};

use crate::plugin_failure::PluginFailure;

/// A request that is due now.
#[derive(Clone, Debug)]
pub struct Job {
    /// The request's id.
    pub id: RequestId,
    /// The instant the schedule asked for.
    pub intended: Nanos,
    /// Time for which limits held it back after that; copied to the record.
    pub held: Held,
    /// Instant at which the dispatcher handed it over.
    pub dispatched_at: Nanos,
    /// The new messages, as text.
    pub request: Arc<Prepared>,
    /// The conversation before them.
    pub history: Option<Arc<History<Prepared>>>,
    /// Nodes of the session known when it was dispatched; carried to the record.
    pub session_requests: u32,
    /// True if it counts (false after `benchmark_timeout`); copied to the record.
    pub measured: bool,
    /// True if [`Sinks::first_chunk`] is to be called for it.
    pub reports_first_chunk: bool,
}

/// The connection that a request used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionUse {
    /// An earlier request had used the connection.
    pub reused: bool,
    /// Index of the server it went to, in the order of the configuration: the servers of the first
    /// client come first.
    pub server: u16,
    /// Name resolution for a new connection, in nanoseconds; `None` also where the server is given
    /// by address.
    pub resolve: Option<Nanos>,
    /// The TCP connect of a new connection, and the proxy's consent where there is one, in
    /// nanoseconds.
    pub connect: Option<Nanos>,
    /// The TLS handshake of a new connection, in nanoseconds.
    pub tls: Option<Nanos>,
    /// The request was sent again on a fresh connection, because the pooled one turned out to be
    /// dead before any byte of an answer came.
    pub retried: bool,
}

/// Timestamps of a request; `None` for stages that it did not reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// A client thread took the job from its queue.
    pub picked_up_at: Option<Nanos>,
    /// The last byte of the request was handed to the socket.
    pub sent_at: Option<Nanos>,
    /// The first byte of the answer was read.
    pub first_byte_at: Option<Nanos>,
    /// The last event arrived, or the failure was known.
    pub completed_at: Nanos,
    /// The source of the arrival times.
    pub stamps: StampSource,
}

/// The outcome of a [`Job`]: exactly one for each job submitted.
#[derive(Clone, Debug)]
pub struct RequestOutcome {
    /// The job.
    pub job: Job,
    /// Timestamps.
    pub timings: Timings,
    /// The connection that it used.
    pub connection: ConnectionUse,
    /// The HTTP status, if one came.
    pub status: Option<u16>,
    /// Every event of the stream, in order; also those before a failure.
    pub chunks: Vec<Chunk>,
    /// Bytes of text, visible or reasoning, that each *generated* chunk added to the answer, in
    /// their order; empty where that is not known.
    pub chunk_texts: Vec<u32>,
    /// Tokens that each generated chunk added, in their order, by the server's running counts
    /// (vLLM's `stream_options.continuous_usage_stats`); empty unless every generated chunk came
    /// with a count.
    pub chunk_tokens: Vec<u32>,
    /// XXH3 (64 bits) of the request's body; `None` if none was built.
    pub body_digest: Option<u64>,
    /// The id that the server gave the response: printable and short.
    pub response_id: Option<String>,
    /// The trace id that the request was sent with.
    pub trace_id: Option<u128>,
    /// The answer, or the part of it that had arrived when the workload cancelled the request, or
    /// why there is none.
    pub result: Result<Response, FailureReason>,
    /// If the plugin that reads the answers failed on this one: how. `result` is then a failure of
    /// class [`veeksha_model::ErrorClass::Codec`].
    pub codec_failure: Option<Box<PluginFailure>>,
}

/// A finished request as a client thread hands it over, possibly still as the raw bytes that the
/// server sent.
pub trait PendingOutcome: Send {
    /// Returns the request's id.
    fn id(&self) -> RequestId;

    /// Understands what was received. That is work (JSON is parsed, a plugin may be called), so it
    /// is not done on a client thread.
    fn outcome(self: Box<Self>) -> RequestOutcome;
}

/// An outcome that is known already.
impl PendingOutcome for RequestOutcome {
    fn id(&self) -> RequestId {
        self.job.id
    }

    fn outcome(self: Box<Self>) -> RequestOutcome {
        *self
    }
}

/// Callbacks of a transport. They are called on client threads and must not block.
#[derive(Clone)]
pub struct Sinks {
    /// Takes exactly one for each job submitted.
    pub returned: Arc<dyn Fn(Box<dyn PendingOutcome>) + Send + Sync>,
    /// Called with the arrival time of the first generated chunk of a job that reports it, at most
    /// once and before `returned`.
    pub first_chunk: Arc<dyn Fn(RequestId, Nanos) + Send + Sync>,
}

impl Sinks {
    /// Only what has become of each job, already understood.
    pub fn outcomes(sink: impl Fn(RequestOutcome) + Send + Sync + 'static) -> Self {
        Sinks {
            returned: Arc::new(move |returned| sink(returned.outcome())),
            first_chunk: Arc::new(|_, _| {}),
        }
    }
}

/// Sends requests on dedicated threads.
pub trait Transport: Send + Sync {
    /// Hands a job to a client thread; never blocks. Jobs of one session go to the same thread.
    fn submit(&self, job: Job);

    /// Cancels a request in flight because its workload wants no more of its answer: the outcome is
    /// the part that has arrived ([`Response::cancelled`]), and comes through the sink soon after.
    /// Has no effect on a request that has ended.
    fn cancel(&self, request: RequestId);

    /// Gives up every request in flight: each one's outcome is a failure of class
    /// [`veeksha_model::ErrorClass::Cancelled`], and comes through the sink soon after.
    fn cancel_all(&self);

    /// Requests submitted and not yet answered.
    fn in_flight(&self) -> usize;
}
