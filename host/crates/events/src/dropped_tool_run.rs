//! Tool runs that were known and did not end.

use std::sync::Arc;

use veeksha_model::{Nanos, RequestId};

use crate::never_sent::NeverSentReason;

/// A tool run of a started session that did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedToolRun {
    /// The id of its node.
    pub id: RequestId,
    /// The name of its class.
    pub class: Arc<str>,
    /// The instant at which it was or would have been called; `None` if it waited for other nodes.
    pub ready_at: Option<Nanos>,
    /// The reason.
    pub reason: ToolDropReason,
    /// The instant of that decision.
    pub at: Nanos,
}

/// The reason for which a tool run did not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolDropReason {
    /// No server took it, for the reason of a request that was never sent. The limit of
    /// [`NeverSentReason::Held`] is the number of servers, their rate, or the number of sessions. A
    /// tool run that was called after the timeout has [`NeverSentReason::RunEnded`], also if a
    /// server took it.
    NotServed(NeverSentReason),
    /// A server worked on it when the run ended.
    InService,
}

impl ToolDropReason {
    /// Returns the snake-case name used in files.
    pub fn name(self) -> &'static str {
        match self {
            ToolDropReason::NotServed(reason) => reason.name(),
            ToolDropReason::InService => "in_service",
        }
    }

    /// Returns true if the workload cancelled it: nodes that wait for its end are released.
    pub fn is_cancelled(self) -> bool {
        self == ToolDropReason::NotServed(NeverSentReason::CancelledByClient)
    }

    /// Returns true if the run would have been measured and its end is missing from the metrics:
    /// it was due and wanted.
    pub fn is_missing(self) -> bool {
        match self {
            ToolDropReason::NotServed(reason) => reason.was_due(),
            ToolDropReason::InService => true,
        }
    }
}
