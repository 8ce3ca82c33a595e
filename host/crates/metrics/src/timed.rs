//! Samples with their instants, for comparisons of runs.

use veeksha_model::{Nanos, RequestId, SessionId};

use crate::row::{End, RequestRow};
use crate::run_metric::RunMetric;
use crate::run_samples::RunSamples;
use veeksha_definitions::{Metric, Samples};

impl RunSamples {
    /// Visits every sample of a metric: the scheduled instant of its request (for a session metric:
    /// of its first request; for a metric of tool runs: the instant of the call), its value in the
    /// metric's unit, and its weight, in the order of request ids. Samples without an instant are
    /// skipped.
    pub fn each_sample(&self, metric: &str, mut take: impl FnMut(Nanos, f64, f64)) {
        self.each_keyed_sample(metric, |at, value, weight, _| take(at, value, weight));
    }

    /// Visits the contribution of each sent and measured request to a run metric: the instant at
    /// which it ended, a value and its weight. Shares are the weighted mean of the values (1 for a
    /// request that counts, 0 for one that does not). [`RunMetric::Goodput`] and
    /// [`RunMetric::NeverSentShare`] also cover requests that were never sent, which are not
    /// visited. Rates over the measured window are the sum of the values ÷ the window. Other run
    /// metrics have no contributions.
    pub fn each_part(&self, run_metric: RunMetric, mut take: impl FnMut(Nanos, f64, f64)) {
        let is = |holds: bool| Some((f64::from(holds), 1.0));
        let amount = |amount: u32| Some((f64::from(amount), 1.0));
        let part = |row: &RequestRow| {
            let is_answered = row.end == End::Answered;
            let answered = || is_answered.then_some(());
            match run_metric {
                RunMetric::ErrorRate => is(row.end == End::Failed),
                RunMetric::CancellationRate => is(row.end == End::Cancelled),
                RunMetric::EmptyAnswerShare => answered().and(is(!row.observed.has_output())),
                RunMetric::NeverSentShare => is(false),
                RunMetric::Goodput if row.end == End::CancelledByClient => None,
                RunMetric::Goodput => is(row.good),
                RunMetric::GoodRequestsPerSecond => amount(row.good.into()),
                RunMetric::RequestsPerSecond => amount(is_answered.into()),
                RunMetric::InputTokensPerSecond => answered().and(amount(row.observed.total_prompt_tokens)),
                RunMetric::OutputTokensPerSecond => answered().and(amount(row.observed.output_tokens)),
                RunMetric::TotalTokensPerSecond => answered().and(amount(
                    row.observed
                        .total_prompt_tokens
                        .saturating_add(row.observed.output_tokens),
                )),
                RunMetric::OverallCachedTokenShare => {
                    let share = answered().and(row.sample(Metric::CachedTokenShare));
                    share.map(|share| (share, f64::from(row.observed.usage_prompt_tokens)))
                }
                _ => None,
            }
        };
        for row in self.requests.rows.iter().filter(|row| row.measured) {
            if let Some((value, weight)) = part(row) {
                take(row.completed, value, weight);
            }
        }
    }

    /// Visits samples as [`RunSamples::each_sample`] does, with a key derived from the id of the
    /// request or session, which is the same in every run of a workload.
    pub fn each_keyed_sample(&self, metric: &str, mut take: impl FnMut(Nanos, f64, f64, Option<u64>)) {
        let key = |row: &RequestRow| Some(request_key(row.id));
        let Some(metric) = self.catalogue().get(metric).and_then(|info| info.metric) else {
            if let Some(samples) = self.custom.get(metric) {
                for (at, value, weight, row) in samples.timed() {
                    let row = row.and_then(|row| self.requests.rows.get(row as usize));
                    take(at, value, weight, row.and_then(key));
                }
            }
            return;
        };
        let rows = || self.requests.rows.iter().filter(|row| row.has_samples());
        match metric.definition_of().samples {
            Samples::ChunkGaps => {
                for row in rows() {
                    let gaps = self.requests.gaps.of(row.gaps);
                    gaps.for_each(|gap| take(row.observed.intended, gap as f64 / 1e9, 1.0, key(row)));
                }
            }
            Samples::TokenGaps => {
                for row in rows() {
                    let gaps = self.requests.token_gaps(row);
                    gaps.for_each(|(gap, tokens)| {
                        let tokens = f64::from(tokens);
                        take(row.observed.intended, gap as f64 / tokens / 1e9, tokens, key(row));
                    });
                }
            }
            Samples::ThinkTimes => {
                for time in &self.sessions.think_times {
                    let row = self.requests.rows.get(time.row as usize);
                    take(time.intended, time.seconds, 1.0, row.and_then(key));
                }
            }
            Samples::Session => {
                for session in &self.sessions.sessions {
                    if let Some(value) = session.value(metric) {
                        take(session.intended, value, 1.0, Some(session_key(session.session)));
                    }
                }
            }
            Samples::ToolRun(value) => {
                for row in self.requests.measured_tool_runs() {
                    take(row.times.ready, value(&row.times), 1.0, Some(request_key(row.id)));
                }
            }
            Samples::Request(_) => {
                for row in rows() {
                    if let Some(value) = row.sample(metric) {
                        take(row.observed.intended, value, 1.0, key(row));
                    }
                }
            }
        }
    }
}

/// Returns the key of a request. Unique while there are fewer than 2^32 sessions.
fn request_key(request: RequestId) -> u64 {
    request.session.0.rotate_left(32) ^ u64::from(request.node.0)
}

/// Returns the key of a session. It differs from all request keys, because no session has that many
/// requests.
fn session_key(session: SessionId) -> u64 {
    session.0.rotate_left(32) ^ u64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use veeksha_model::NodeId;

    use super::*;

    #[test]
    fn keys_distinguish_requests_and_sessions() {
        let ids = [0, 1, 2, u64::from(u32::MAX)];
        let nodes = [0, 1, 2, 1 << 20];
        let mut keys = BTreeSet::new();
        for session in ids.map(SessionId) {
            assert!(keys.insert(session_key(session)));
            for node in nodes.map(NodeId) {
                assert!(keys.insert(request_key(RequestId { session, node })));
            }
        }
    }
}
