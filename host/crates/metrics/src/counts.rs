//! Counts of requests and sessions by outcome.

use std::collections::BTreeMap;

use veeksha_events::{NeverSentReason, RequestRecord, SessionEnd, Status, ToolDropReason};
use veeksha_model::ErrorClass;

use crate::run_metric::RunMetric;
use crate::tool_runs::{ToolCounts, ToolCountsByClass};

/// Counts of a run. Request counts cover measured requests unless stated otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// Sent and measured: completed, errored, cancelled, and cancelled by the workload.
    pub requests: u64,
    /// Answered.
    pub completed: u64,
    /// Failed.
    pub errored: u64,
    /// Withdrawn while in flight (Ctrl-C, end of the grace period).
    pub cancelled: u64,
    /// Cancelled in flight by the workload; not a failure.
    pub cancelled_by_client: u64,
    /// Dispatched within the measured window with unknown outcome: the record ends before they did.
    pub unfinished: u64,
    /// Sent after `benchmark_timeout`, with any outcome; excluded from all other counts and
    /// metrics.
    pub drained: u64,
    /// Known but never sent, by reason.
    pub never_sent: BTreeMap<NeverSentReason, u64>,
    /// Sessions that had arrived when the run ended but that the plugin had not delivered: at least
    /// as many requests were due and never sent. Excluded from all other counts.
    pub arrivals_missed: u64,
    /// Failures by HTTP status if the status was the failure, otherwise by error class.
    pub errors: BTreeMap<String, u64>,
    /// Failures and withdrawals by class.
    pub error_classes: BTreeMap<ErrorClass, u64>,
    /// Counts for each of the target's servers, by index in the configuration.
    pub by_server: BTreeMap<u16, ServerCounts>,
    /// Answered without any generated output: such requests have no latencies.
    pub empty_answers: u64,
    /// Sent again on a new connection.
    pub retried: u64,
    /// Tool runs by class.
    pub tools: ToolCountsByClass,
    /// Sessions that began.
    pub sessions: u64,
    /// Sessions whose requests were all answered.
    pub successful_sessions: u64,
    /// Sessions with a failed request, all of whose requests were attempted.
    pub errored_sessions: u64,
    /// Sessions whose unsent requests were withdrawn after a failure.
    pub cancelled_sessions: u64,
    /// Sessions that were cut short by the end of the run or of the record.
    pub incomplete_sessions: u64,
    /// Sessions whose agent failed within the measured window: the requests that it would have sent
    /// are unknown, and excluded from all other counts.
    pub failed_agent_sessions: u64,
}

/// The counts of one of the target's servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// Measured requests that were routed to this server.
    pub requests: u64,
    /// Answered.
    pub completed: u64,
    /// Failed or withdrawn.
    pub failed: u64,
}

impl RunCounts {
    /// Counts a finished, measured request.
    pub(crate) fn add_measured(&mut self, record: &RequestRecord) {
        self.requests += 1;
        self.retried += u64::from(record.retried);
        let server = self.by_server.entry(record.server).or_default();
        server.requests += 1;
        server.completed += u64::from(record.is_ok());
        server.failed += u64::from(record.is_failed());
        if let Status::Failed { class, .. } = &record.status {
            *self.error_classes.entry(*class).or_default() += 1;
        }
        match &record.status {
            Status::Ok { .. } => {
                self.completed += 1;
                self.empty_answers += u64::from(!record.has_output());
            }
            Status::CancelledByClient => self.cancelled_by_client += 1,
            Status::Failed {
                class: ErrorClass::Cancelled,
                ..
            } => self.cancelled += 1,
            Status::Failed { class, .. } => {
                self.errored += 1;
                *self
                    .errors
                    .entry(error_code(*class, record.http_status))
                    .or_default() += 1;
            }
        }
    }

    pub(crate) fn add_session_end(&mut self, end: SessionEnd) {
        match end {
            SessionEnd::Completed => self.successful_sessions += 1,
            SessionEnd::Errored => self.errored_sessions += 1,
            SessionEnd::Cancelled => self.cancelled_sessions += 1,
            SessionEnd::Incomplete => self.incomplete_sessions += 1,
        }
    }

    /// Returns the number of requests that were scheduled within the measured window and whose
    /// answer was wanted: sent ones, those still open when the record ends, and withheld ones
    /// (session cancelled, plugin failed, held back by a limit, or missed by the host). Requests
    /// with [`NeverSentReason::RunEnded`] had not become due and are excluded, and so are those
    /// that the workload cancelled.
    pub fn intended(&self) -> u64 {
        self.requests - self.cancelled_by_client + self.unfinished + self.withheld()
    }

    /// Returns the number of requests that were due and never sent.
    fn withheld(&self) -> u64 {
        let due = self.never_sent.iter().filter(|(reason, _)| reason.was_due());
        due.map(|(_, count)| count).sum()
    }

    /// Returns the counts that objectives can name.
    pub(crate) fn run_metrics(&self) -> [(RunMetric, Option<f64>); 10] {
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        [
            (RunMetric::ErrorRate, self.error_rate()),
            (RunMetric::CancellationRate, self.cancellation_rate()),
            (
                RunMetric::EmptyAnswerShare,
                share(self.empty_answers, self.completed),
            ),
            (RunMetric::NeverSentShare, share(self.withheld(), self.intended())),
            (RunMetric::Requests, Some(self.requests as f64)),
            (RunMetric::CompletedRequests, Some(self.completed as f64)),
            (RunMetric::ErroredRequests, Some(self.errored as f64)),
            (RunMetric::Sessions, Some(self.sessions as f64)),
            (RunMetric::ToolRuns, self.of_tools(|tool| tool.runs)),
            (RunMetric::ToolFailures, self.of_tools(|tool| tool.failures)),
        ]
    }

    /// Returns the sum of a count over all classes of tools; `None` without tool runs.
    fn of_tools(&self, count: fn(&ToolCounts) -> u64) -> Option<f64> {
        let total: u64 = self.tools.values().map(count).sum();
        (!self.tools.is_empty()).then_some(total as f64)
    }

    /// Returns the number of tool runs that were due within the measured window and did not end, by
    /// reason: their times are missing, and the longest are the likeliest.
    pub fn missing_tool_runs(&self) -> BTreeMap<ToolDropReason, u64> {
        let mut missing = BTreeMap::new();
        let dropped = self.tools.values().flat_map(|tool| &tool.dropped);
        for (reason, count) in dropped.filter(|(reason, _)| reason.is_missing()) {
            *missing.entry(*reason).or_default() += count;
        }
        missing
    }

    /// Returns the number of requests that were never sent, over all reasons.
    pub fn never_sent_total(&self) -> u64 {
        self.never_sent.values().sum()
    }

    /// Returns true if requests were sent whose answers were wanted, and none of them was answered.
    pub fn all_failed(&self) -> bool {
        self.requests > self.cancelled_by_client && self.completed == 0
    }

    /// Returns errored / sent; `None` if nothing was sent.
    pub fn error_rate(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.errored as f64 / self.requests as f64)
    }

    /// Returns cancelled / sent; `None` if nothing was sent.
    pub fn cancellation_rate(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.cancelled as f64 / self.requests as f64)
    }
}

/// Returns the key of a failure. A stream may fail after a status of 200, so the status is used
/// only if it is the failure.
fn error_code(class: ErrorClass, status: Option<u16>) -> String {
    match (class, status) {
        (ErrorClass::Status, Some(status)) => status.to_string(),
        (class, _) => class.name().to_owned(),
    }
}
