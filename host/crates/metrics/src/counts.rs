//! How many requests and sessions there were, and how they ended.

use std::collections::BTreeMap;

use veeksha_events::{NeverSentReason, RequestRecord, SessionEnd, Status};
use veeksha_model::ErrorClass;

use crate::run_metric::RunMetric;

/// Counts of a run. Those of requests are of measured requests unless they say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sent and measured: completed, errored and cancelled.
    pub requests: u64,
    /// Answered.
    pub completed: u64,
    /// Failed.
    pub errored: u64,
    /// Withdrawn while in flight (Ctrl-C, end of the grace period).
    pub cancelled: u64,
    /// Dispatched within the measured window, and nothing more is known: the record ends before they did.
    pub unfinished: u64,
    /// Sent after `benchmark_timeout`, however they ended; in no other count and no metric.
    pub drained: u64,
    /// Known and never sent, by reason.
    pub never_sent: BTreeMap<NeverSentReason, u64>,
    /// Sessions that had arrived when the run ended, and that the plugin had not delivered: at least as many requests were due and
    /// never sent. They are in no other count.
    pub arrivals_missed: u64,
    /// Failures by HTTP status where the status was the failure, else by the class of the error.
    pub errors: BTreeMap<String, u64>,
    /// Failures and withdrawals by class.
    pub error_classes: BTreeMap<ErrorClass, u64>,
    /// What each of the target's servers did, by its place in the configuration.
    pub by_server: BTreeMap<u16, ServerCounts>,
    /// Answered without anything generated: such requests have no latencies.
    pub empty_answers: u64,
    /// Sent again on a fresh connection.
    pub retried: u64,
    /// Sessions that began.
    pub sessions: u64,
    /// Sessions whose requests were all answered.
    pub successful_sessions: u64,
    /// Sessions with a failed request, all of whose requests were tried.
    pub errored_sessions: u64,
    /// Sessions whose unsent requests were withdrawn after a failure.
    pub cancelled_sessions: u64,
    /// Sessions that the end of the run, or of the record, cut short.
    pub incomplete_sessions: u64,
}

/// What one of the target's servers did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// Measured requests that it was chosen for.
    pub requests: u64,
    /// Answered.
    pub completed: u64,
    /// Failed or withdrawn.
    pub failed: u64,
}

impl Counts {
    /// Counts a finished request that is measured.
    pub(crate) fn add_measured(&mut self, record: &RequestRecord) {
        self.requests += 1;
        self.retried += u64::from(record.retried);
        let server = self.by_server.entry(record.server).or_default();
        server.requests += 1;
        server.completed += u64::from(record.is_ok());
        server.failed += u64::from(!record.is_ok());
        if let Status::Failed { class, .. } = &record.status {
            *self.error_classes.entry(*class).or_default() += 1;
        }
        match &record.status {
            Status::Ok { .. } => {
                self.completed += 1;
                self.empty_answers += u64::from(record.generated_at().next().is_none());
            }
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

    /// Requests that the schedule asked for within the measured window: those that were sent, those still open when the
    /// record ends, and those withheld: because their session was cancelled, its plugin failed, a limit held them back, or the host did
    /// not come to them. Requests that the end of the run overtook ([`NeverSentReason::RunEnded`]) had not become due and are not among them.
    pub fn intended(&self) -> u64 {
        self.requests + self.unfinished + self.withheld()
    }

    /// Requests that were due and never sent.
    fn withheld(&self) -> u64 {
        let due = self
            .never_sent
            .iter()
            .filter(|(reason, _)| **reason != NeverSentReason::RunEnded);
        due.map(|(_, count)| count).sum()
    }

    /// Those of its figures that objectives can name.
    pub(crate) fn figures(&self) -> [(RunMetric, Option<f64>); 8] {
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
        ]
    }

    /// All requests that were never sent.
    pub fn never_sent_total(&self) -> u64 {
        self.never_sent.values().sum()
    }

    /// Whether requests were sent and not one of them was answered.
    pub fn all_failed(&self) -> bool {
        self.requests > 0 && self.completed == 0
    }

    /// Errored / sent; `None` if nothing was sent.
    pub fn error_rate(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.errored as f64 / self.requests as f64)
    }

    /// Cancelled / sent; `None` if nothing was sent.
    pub fn cancellation_rate(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.cancelled as f64 / self.requests as f64)
    }
}

/// A stream may fail after a status of 200, so the status is the code only where it is the failure.
fn error_code(class: ErrorClass, status: Option<u16>) -> String {
    match (class, status) {
        (ErrorClass::Status, Some(status)) => status.to_string(),
        (class, _) => class.name().to_owned(),
    }
}
