//! Metrics of the whole run: one value each, for use in objectives.

use veeksha_model::Better;
use veeksha_slo::Range;

/// A metric of the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunMetric {
    /// `error_rate`
    ErrorRate,
    /// `cancellation_rate`
    CancellationRate,
    /// `empty_answer_share`
    EmptyAnswerShare,
    /// `never_sent_share`
    NeverSentShare,
    /// `goodput`
    Goodput,
    /// `good_requests_per_second`
    GoodRequestsPerSecond,
    /// `requests_per_second`
    RequestsPerSecond,
    /// `request_dispatch_rate`
    RequestDispatchRate,
    /// `session_dispatch_rate`
    SessionDispatchRate,
    /// `input_tokens_per_second`
    InputTokensPerSecond,
    /// `output_tokens_per_second`
    OutputTokensPerSecond,
    /// `total_tokens_per_second`
    TotalTokensPerSecond,
    /// `overall_cached_token_share`
    OverallCachedTokenShare,
    /// `mean_requests_in_flight`
    MeanRequestsInFlight,
    /// `max_requests_in_flight`
    MaxRequestsInFlight,
    /// `num_requests`
    Requests,
    /// `num_completed_requests`
    CompletedRequests,
    /// `num_errored_requests`
    ErroredRequests,
    /// `num_sessions`
    Sessions,
    /// `tool_runs`
    ToolRuns,
    /// `tool_failures`
    ToolFailures,
    /// `window_seconds`
    WindowSeconds,
}

/// The facts about a metric of the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunMetricInfo {
    /// The metric.
    pub metric: RunMetric,
    /// The name in objectives and files.
    pub name: &'static str,
    /// The unit; `1` for a share.
    pub unit: &'static str,
    /// The direction in which it improves.
    pub better: Better,
    /// One line: the formula in prose.
    pub definition: &'static str,
}

const fn info(
    metric: RunMetric,
    name: &'static str,
    unit: &'static str,
    better: Better,
    definition: &'static str,
) -> RunMetricInfo {
    RunMetricInfo {
        metric,
        name,
        unit,
        better,
        definition,
    }
}

/// In the order of the enum (checked by a test).
const RUN_METRICS: [RunMetricInfo; 22] = [
    info(
        RunMetric::ErrorRate,
        "error_rate",
        "1",
        Better::Less,
        "measured requests that failed / measured requests that were sent",
    ),
    info(
        RunMetric::CancellationRate,
        "cancellation_rate",
        "1",
        Better::Less,
        "measured requests that were withdrawn in flight / measured requests that were sent",
    ),
    info(
        RunMetric::EmptyAnswerShare,
        "empty_answer_share",
        "1",
        Better::Less,
        "answers without anything generated / answers",
    ),
    info(
        RunMetric::NeverSentShare,
        "never_sent_share",
        "1",
        Better::Less,
        "requests that were due and never sent / requests that the schedule asked for; those that the end of the run overtook had not become due",
    ),
    info(
        RunMetric::Goodput,
        "goodput",
        "1",
        Better::Higher,
        "requests that were answered with something, kept every condition and were judged good / requests that the schedule asked for",
    ),
    info(
        RunMetric::GoodRequestsPerSecond,
        "good_requests_per_second",
        "requests/s",
        Better::Higher,
        "the good requests of goodput / measured window",
    ),
    info(
        RunMetric::RequestsPerSecond,
        "requests_per_second",
        "requests/s",
        Better::Higher,
        "answered requests / measured window (first intended instant to last completion)",
    ),
    info(
        RunMetric::RequestDispatchRate,
        "request_dispatch_rate",
        "requests/s",
        Better::Neither,
        "(measured requests - 1) / (last dispatch - first dispatch)",
    ),
    info(
        RunMetric::SessionDispatchRate,
        "session_dispatch_rate",
        "sessions/s",
        Better::Neither,
        "(sessions - 1) / (last start - first start)",
    ),
    info(
        RunMetric::InputTokensPerSecond,
        "input_tokens_per_second",
        "tokens/s",
        Better::Higher,
        "prompt tokens (history and new messages, by the host's tokenizer; not the server's count) of answered requests / measured window",
    ),
    info(
        RunMetric::OutputTokensPerSecond,
        "output_tokens_per_second",
        "tokens/s",
        Better::Higher,
        "output tokens of answered requests (as the server reports them, else by the host's tokenizer) / measured window; the curve of the same name has them by when their chunks came, what was sent after the timeout included, and within the window the same area for each answer",
    ),
    info(
        RunMetric::TotalTokensPerSecond,
        "total_tokens_per_second",
        "tokens/s",
        Better::Higher,
        "prompt tokens (by the host's tokenizer; not the server's count) and output tokens (as the server reports them, else by the host's tokenizer) of answered requests / measured window",
    ),
    info(
        RunMetric::OverallCachedTokenShare,
        "overall_cached_token_share",
        "1",
        Better::Higher,
        "prompt tokens that, by the servers, came from their prefix cache / prompt tokens that they counted (with their chat template), over the answers that have a cached_token_share",
    ),
    info(
        RunMetric::MeanRequestsInFlight,
        "mean_requests_in_flight",
        "requests",
        Better::Neither,
        "requests between dispatch and completion, those that are drained and not measured included; time-weighted mean over the measured window",
    ),
    info(
        RunMetric::MaxRequestsInFlight,
        "max_requests_in_flight",
        "requests",
        Better::Neither,
        "requests between dispatch and completion, those that are drained and not measured included; largest number within the measured window",
    ),
    info(
        RunMetric::Requests,
        "num_requests",
        "requests",
        Better::Neither,
        "measured requests that were sent",
    ),
    info(
        RunMetric::CompletedRequests,
        "num_completed_requests",
        "requests",
        Better::Neither,
        "measured requests that were answered",
    ),
    info(
        RunMetric::ErroredRequests,
        "num_errored_requests",
        "requests",
        Better::Neither,
        "measured requests that failed",
    ),
    info(
        RunMetric::Sessions,
        "num_sessions",
        "sessions",
        Better::Neither,
        "sessions that began, also those of which requests are drained and not measured",
    ),
    info(
        RunMetric::ToolRuns,
        "tool_runs",
        "runs",
        Better::Neither,
        "measured tool runs that ended; absent without any",
    ),
    info(
        RunMetric::ToolFailures,
        "tool_failures",
        "runs",
        Better::Less,
        "measured tool runs that failed; absent without any tool run",
    ),
    info(
        RunMetric::WindowSeconds,
        "window_seconds",
        "s",
        Better::Neither,
        "the measured window: first intended instant of a measured request to the last completion of one",
    ),
];

impl RunMetric {
    /// Returns all run metrics, in the order of the table.
    pub fn all() -> impl Iterator<Item = RunMetric> {
        RUN_METRICS.iter().map(|info| info.metric)
    }

    /// Returns the entry in the table.
    pub fn info(self) -> &'static RunMetricInfo {
        &RUN_METRICS[self as usize]
    }

    /// Returns the name in objectives and files.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Returns true if it is a share, from 0 to 1: every run metric without a unit is a share.
    pub fn is_share(self) -> bool {
        self.info().unit == "1"
    }

    /// Returns the range of its values.
    pub fn range(self) -> Range {
        if self.is_share() {
            Range::Share
        } else {
            Range::NotNegative
        }
    }

    /// Returns the run metric with this name.
    pub fn of_name(name: &str) -> Option<RunMetric> {
        RUN_METRICS
            .iter()
            .find(|info| info.name == name)
            .map(|info| info.metric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_metric_has_one_entry_and_a_name_of_no_other_metric() {
        for (place, info) in RUN_METRICS.iter().enumerate() {
            assert_eq!(info.metric as usize, place, "{}", info.name);
            assert_eq!(RunMetric::of_name(info.name), Some(info.metric));
            assert!(info.name.parse::<crate::Metric>().is_err(), "{}", info.name);
        }
    }
}
