//! The row that is kept for a request: about 200 bytes, from which every metric is computed.

use veeksha_definitions::{Metric, Observation};
use veeksha_events::{RequestRecord, Status};
use veeksha_model::{ChunkKind, ErrorClass, EventInstants, Nanos, NodeId, RequestId};

use crate::gaps::GapRange;
use crate::label_sets::LabelSet;

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Answered,
    Failed,
    /// Given up by the host.
    Cancelled,
    /// Cancelled by its workload.
    CancelledByClient,
}

/// A finished request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RequestRow {
    pub(crate) id: RequestId,
    pub(crate) observed: Observation,
    pub(crate) completed: Nanos,
    pub(crate) wait_after_ready: Nanos,
    /// The node whose conversation it continued.
    pub(crate) history_parent: Option<NodeId>,
    /// The range of its gaps: one fewer than its generated chunks.
    pub(crate) gaps: GapRange,
    /// The index of its first parent in the list of all parents, and the number of parents.
    pub(crate) parents: (u32, u32),
    pub(crate) labels: LabelSet,
    /// Tokens of the first generated chunk.
    pub(crate) first_tokens: u32,
    pub(crate) end: End,
    pub(crate) measured: bool,
    /// True if the token counts of its chunks are known.
    pub(crate) counted: bool,
    /// True if its answer contained part of a tool call.
    pub(crate) called_tool: bool,
    /// True if it had a non-empty answer, met every condition and was judged good. Set when the run
    /// is over.
    pub(crate) good: bool,
}

impl RequestRow {
    /// Returns the instants of the events that other requests can wait for.
    pub(crate) fn events(&self) -> EventInstants {
        EventInstants {
            dispatched: self.observed.dispatched,
            first_chunk: self.observed.first.get().unwrap_or(self.completed),
            completed: self.completed,
        }
    }

    /// Creates the row of a record, before gaps, parents and labels have a range.
    pub(crate) fn of(record: &RequestRecord) -> Self {
        let generated = || record.chunks.iter().filter(|chunk| chunk.kind.is_generated());
        let chunks = generated().count().min(u32::MAX as usize) as u32;
        RequestRow {
            id: record.id,
            observed: Observation::of(record),
            completed: record.completed_at,
            wait_after_ready: record.wait_after_ready,
            history_parent: record.history_parent,
            gaps: GapRange {
                at: 0,
                count: chunks.saturating_sub(1),
            },
            parents: (0, 0),
            labels: 0,
            first_tokens: 0,
            end: match &record.status {
                Status::Ok { .. } => End::Answered,
                Status::Failed {
                    class: ErrorClass::Cancelled,
                    ..
                } => End::Cancelled,
                Status::Failed { .. } => End::Failed,
                Status::CancelledByClient => End::CancelledByClient,
            },
            measured: record.measured,
            counted: false,
            called_tool: generated().any(|chunk| chunk.kind == ChunkKind::Tool),
            good: false,
        }
    }

    /// Returns true if the request was measured and answered.
    pub(crate) fn counts(&self) -> bool {
        self.measured && self.end == End::Answered
    }

    /// Returns true if metrics are computed from this request: it was measured, and answered or
    /// cancelled by its workload. [`Metric::sample`] has the metrics of the latter.
    pub(crate) fn has_samples(&self) -> bool {
        self.measured && matches!(self.end, End::Answered | End::CancelledByClient)
    }

    /// Returns the sample of a request-level metric.
    pub(crate) fn sample(&self, metric: Metric) -> Option<f64> {
        metric.sample(&self.observed)
    }
}
