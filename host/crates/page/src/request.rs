//! The requests of a page.

use veeksha_definitions::{Metric, Observation};
use veeksha_events::{NeverSentReason, RequestRecord, SessionEnd, Status};
use veeksha_model::{ErrorClass, Label, Nanos, RequestId};

use crate::chunk_times::ChunkTimes;

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered, with the server's word for why generation ended.
    Answered {
        /// `stop`, `length`, ...
        finish_reason: String,
    },
    /// Failed or given up.
    Failed {
        /// Where.
        class: ErrorClass,
        /// One line for a person, cut to 300 characters.
        message: String,
    },
}

/// One request that was sent. Times are nanoseconds from the start of the run; the page shows
/// microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct PageRequest {
    /// Which request.
    pub id: RequestId,
    /// The nodes it waited for.
    pub parents: Vec<u32>,
    /// The node whose conversation it continued.
    pub history_parent: Option<u32>,
    /// Its think time.
    pub wait_after_ready: Nanos,
    /// The instant the schedule asked for.
    pub intended: Nanos,
    /// When it was handed to a client.
    pub dispatched: Nanos,
    /// When its last byte was handed to the socket.
    pub sent: Option<Nanos>,
    /// When the first byte of the answer was read.
    pub first_byte: Option<Nanos>,
    /// When the first generated chunk arrived.
    pub first_chunk: Option<Nanos>,
    /// When the last generated chunk arrived.
    pub last_chunk: Option<Nanos>,
    /// When it was over.
    pub completed: Nanos,
    /// How it ended.
    pub outcome: Outcome,
    /// HTTP status, if one came.
    pub http_status: Option<u16>,
    /// Tokens of history and new messages.
    pub prompt_tokens: u32,
    /// Tokens generated.
    pub output_tokens: u32,
    /// Tokens that it was to generate.
    pub target_output_tokens: Option<u32>,
    /// Prompt tokens that the server says came from its cache.
    pub cached_tokens: Option<u32>,
    /// Whether it counts.
    pub measured: bool,
    /// Which of the target's servers it went to.
    pub server: u16,
    /// Labels of session and request.
    pub labels: Vec<Label>,
    /// What plugins said of it: false if one of them said no, `None` if none was asked.
    pub good: Option<bool>,
    /// Custom samples, none of a request that is not measured: the metric, by its place in
    /// [`Requests::custom_metrics`], and the value. Several samples of one metric are their
    /// weighted mean.
    pub custom: Vec<(u32, f64)>,
    /// Its samples of the charted metrics, in the order of [`Metric::charted`].
    pub samples: Vec<Option<f64>>,
    /// When its chunks came; `None` if it had none, or if there was no room for them.
    pub chunks: Option<ChunkTimes>,
}

/// Characters of a message that are kept.
const LONGEST_MESSAGE: usize = 300;

impl PageRequest {
    /// Of a record; judgements and custom samples come from other events.
    pub fn of(record: &RequestRecord) -> PageRequest {
        let outcome = match &record.status {
            Status::Ok { finish_reason } => Outcome::Answered {
                finish_reason: finish_reason.clone(),
            },
            Status::Failed { class, message } => Outcome::Failed {
                class: *class,
                message: message.chars().take(LONGEST_MESSAGE).collect(),
            },
        };
        PageRequest {
            id: record.id,
            parents: record.parents.iter().map(|node| node.0).collect(),
            history_parent: record.history_parent.map(|node| node.0),
            wait_after_ready: record.wait_after_ready,
            intended: record.intended,
            dispatched: record.dispatched_at,
            sent: record.sent_at,
            first_byte: record.first_byte_at,
            first_chunk: record.generated_at().next(),
            last_chunk: record.generated_at().last(),
            completed: record.completed_at,
            outcome,
            http_status: record.http_status,
            prompt_tokens: record.total_prompt_tokens,
            output_tokens: record.output_tokens,
            target_output_tokens: record.target_output_tokens,
            cached_tokens: record.usage.and_then(|usage| usage.cached),
            measured: record.measured,
            server: record.server,
            labels: record.labels.clone(),
            good: None,
            custom: Vec::new(),
            samples: samples(record),
            chunks: ChunkTimes::of(record),
        }
    }
}

fn samples(record: &RequestRecord) -> Vec<Option<f64>> {
    let observation = Observation::of(record);
    let metrics = Metric::charted().into_iter();
    metrics.map(|metric| metric.sample(&observation)).collect()
}

/// A session that has requests on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSession {
    /// Its index.
    pub session: u64,
    /// The instant its roots count from.
    pub started: Option<Nanos>,
    /// When it was over.
    pub finished: Option<Nanos>,
    /// How it ended; `None` while it goes on.
    pub end: Option<SessionEnd>,
    /// Its requests, also those that were never sent or are not on the page.
    pub requests: u32,
}

/// A request that was never sent: a hollow node of its session's graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeNeverSent {
    /// Which.
    pub id: RequestId,
    /// Why.
    pub reason: NeverSentReason,
    /// When that was decided.
    pub at: Nanos,
}

/// The requests of a page, and of how many they are a part. In JSON they are columns
/// (`columns.rs`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    /// By the instant they were intended for, then by id.
    pub rows: Vec<PageRequest>,
    /// All requests that were sent and are over, on the page or not.
    pub total: u64,
    /// Sessions of the rows.
    pub sessions: Vec<PageSession>,
    /// Nodes of these sessions that were never sent; at most some thousands.
    pub never_sent: Vec<NodeNeverSent>,
    /// Names of the custom metrics that the rows have samples of.
    pub custom_metrics: Vec<String>,
}
