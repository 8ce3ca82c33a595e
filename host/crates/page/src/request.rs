//! The requests of a page.

use std::sync::Arc;

use veeksha_definitions::{Metric, Observation, ToolTimes};
use veeksha_events::{NeverSentReason, RequestRecord, SessionEnd, Status};
use veeksha_model::{Edge, ErrorClass, Label, Nanos, RequestId, ToolRunRecord};

use crate::chunk_times::ChunkTimes;

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered, with the finish reason that the server reported.
    Answered {
        /// `stop`, `length`, ...
        finish_reason: String,
    },
    /// Cancelled by its workload.
    CancelledByClient,
    /// Failed or withdrawn.
    Failed {
        /// The error class.
        class: ErrorClass,
        /// A one-line message, truncated to 300 characters.
        message: String,
    },
}

/// A request that was sent. Times are nanoseconds from the start of the run; the page displays
/// microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct PageRequest {
    /// The id of the request.
    pub id: RequestId,
    /// The events of other nodes for which it waited.
    pub parents: Vec<Edge>,
    /// The node whose conversation it continued.
    pub history_parent: Option<u32>,
    /// Its think time.
    pub wait_after_ready: Nanos,
    /// The scheduled instant.
    pub intended: Nanos,
    /// The instant at which it was handed to a client.
    pub dispatched: Nanos,
    /// The instant at which its last byte was handed to the socket.
    pub sent: Option<Nanos>,
    /// The instant at which the first byte of the answer was read.
    pub first_byte: Option<Nanos>,
    /// The arrival of the first generated chunk.
    pub first_chunk: Option<Nanos>,
    /// The end of generation: the last generated chunk, or the finish event where
    /// [`Observation::last`] is that.
    pub last_chunk: Option<Nanos>,
    /// The instant at which the request ended.
    pub completed: Nanos,
    /// The outcome.
    pub outcome: Outcome,
    /// HTTP status, if received.
    pub http_status: Option<u16>,
    /// Tokens of history and new messages.
    pub prompt_tokens: u32,
    /// Generated tokens.
    pub output_tokens: u32,
    /// Target number of output tokens.
    pub target_output_tokens: Option<u32>,
    /// Prompt tokens from the server's cache, as reported by the server.
    pub cached_tokens: Option<u32>,
    /// True if the request is included in metrics.
    pub measured: bool,
    /// The index of the target's server.
    pub server: u16,
    /// Labels of session and request.
    pub labels: Vec<Label>,
    /// The plugins' judgement: false if one of them reported not good, `None` if none judged.
    pub good: Option<bool>,
    /// Custom samples, empty for a request that is not measured: the index of the metric in
    /// [`RequestList::custom_metrics`], and the value. Several samples of one metric are combined
    /// to their weighted mean.
    pub custom: Vec<(u32, f64)>,
    /// Samples of the charted metrics, in the order of [`Metric::charted`].
    pub samples: Vec<Option<f64>>,
    /// Arrival times of the chunks; `None` if there are none, or if there was no room for them.
    pub chunks: Option<ChunkTimes>,
}

/// The number of characters of a message that are kept.
const LONGEST_MESSAGE: usize = 300;

impl PageRequest {
    /// Converts a record. Judgements and custom samples come from other events.
    pub fn of(record: &RequestRecord) -> PageRequest {
        let outcome = match &record.status {
            Status::Ok { finish_reason } => Outcome::Answered {
                finish_reason: finish_reason.clone(),
            },
            Status::CancelledByClient => Outcome::CancelledByClient,
            Status::Failed { class, message } => Outcome::Failed {
                class: *class,
                message: message.chars().take(LONGEST_MESSAGE).collect(),
            },
        };
        let observation = Observation::of(record);
        PageRequest {
            id: record.id,
            parents: record.parents.clone(),
            history_parent: record.history_parent.map(|node| node.0),
            wait_after_ready: record.wait_after_ready,
            intended: record.intended,
            dispatched: record.dispatched_at,
            sent: record.sent_at,
            first_byte: record.first_byte_at,
            first_chunk: observation.first.get(),
            last_chunk: observation.last.get(),
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
            samples: samples(&observation),
            chunks: ChunkTimes::of(record),
        }
    }
}

fn samples(observation: &Observation) -> Vec<Option<f64>> {
    let metrics = Metric::charted().into_iter();
    metrics.map(|metric| metric.sample(observation)).collect()
}

/// A tool run that ended, displayed as a node of its session's graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageToolRun {
    /// The id of its node.
    pub id: RequestId,
    /// The name of its class.
    pub class: Arc<str>,
    /// The events of other nodes for which it waited.
    pub parents: Vec<Edge>,
    /// Its instants.
    pub times: ToolTimes,
    /// True if it found no warm server.
    pub is_cold: bool,
    /// True if the tool failed.
    pub failed: bool,
    /// The tokens of its result.
    pub result_tokens: u32,
}

impl PageToolRun {
    /// Converts a record.
    pub fn of(record: &ToolRunRecord) -> PageToolRun {
        PageToolRun {
            id: record.id,
            class: Arc::clone(&record.class),
            parents: record.parents.clone(),
            times: ToolTimes::of(record),
            is_cold: record.is_cold,
            failed: record.failed,
            result_tokens: record.result_tokens,
        }
    }
}

/// A session with requests on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSession {
    /// The index of the session.
    pub session: u64,
    /// The reference instant of its root requests.
    pub started: Option<Nanos>,
    /// The instant at which the session ended.
    pub finished: Option<Nanos>,
    /// The outcome; `None` while the session is in progress.
    pub end: Option<SessionEnd>,
    /// The number of its requests, including those that were never sent or are not on the page.
    pub requests: u32,
    /// The number of its tool runs that ended, including those that are not on the page.
    pub tool_runs: u32,
}

/// A request that was never sent, displayed as a hollow node of its session's graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeNeverSent {
    /// The id of the request.
    pub id: RequestId,
    /// The reason.
    pub reason: NeverSentReason,
    /// The instant of the decision.
    pub at: Nanos,
}

/// The requests of a page, and the number from which they are sampled. Written to JSON as columns
/// (`columns.rs`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestList {
    /// Sorted by intended instant, then by id.
    pub rows: Vec<PageRequest>,
    /// The number of finished requests, on the page or not.
    pub total: u64,
    /// Sessions of the rows.
    pub sessions: Vec<PageSession>,
    /// Nodes of these sessions that were never sent; at most a few thousand.
    pub never_sent: Vec<NodeNeverSent>,
    /// Tool runs of these sessions, sorted by id; at most as many as there can be rows.
    pub tool_runs: Vec<PageToolRun>,
    /// Names of the custom metrics with samples in the rows.
    pub custom_metrics: Vec<String>,
}
