//! Samples with their instants, for whoever compares runs.

use veeksha_model::{Nanos, RequestId, SessionId};

use crate::row::{End, Row};
use crate::run_metric::RunMetric;
use crate::run_samples::RunSamples;
use veeksha_definitions::Metric;

impl RunSamples {
    /// Shows every sample of a metric: the instant that the schedule asked its request for (of a session's metric: its first request), its
    /// value in the metric's unit, and its weight. In the order of the requests' names. Nothing for a metric without samples. Samples of the
    /// whole run have no instant and are left out.
    pub fn each_sample(&self, metric: &str, mut take: impl FnMut(Nanos, f64, f64)) {
        self.each_keyed_sample(metric, |at, value, weight, _| take(at, value, weight));
    }

    /// Shows what each request that was sent and measured adds to a figure of the whole run: the instant at which it ended, a value and its
    /// weight. Shares are the weighted mean of the values (1 for a request that counts, 0 for one that does not; those of
    /// [`RunMetric::Goodput`] and [`RunMetric::NeverSentShare`] are besides of requests that were never sent, which are not shown). Rates over the
    /// measured window are the sum of the values ÷ the window. Nothing for other figures.
    pub fn each_part(&self, figure: RunMetric, mut take: impl FnMut(Nanos, f64, f64)) {
        let is = |holds: bool| Some((f64::from(holds), 1.0));
        let amount = |amount: u32| Some((f64::from(amount), 1.0));
        let part = |row: &Row| {
            let is_answered = row.end == End::Answered;
            let answered = || is_answered.then_some(());
            match figure {
                RunMetric::ErrorRate => is(row.end == End::Failed),
                RunMetric::CancellationRate => is(row.end == End::Cancelled),
                RunMetric::EmptyAnswerShare => answered().and(is(row.observed.first.get().is_none())),
                RunMetric::NeverSentShare => is(false),
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

    /// As [`RunSamples::each_sample`], with a number made of the name of the request or the session: the same one in every run of a
    /// workload.
    pub fn each_keyed_sample(&self, metric: &str, mut take: impl FnMut(Nanos, f64, f64, Option<u64>)) {
        let key = |row: &Row| Some(request_key(row.id));
        let Some(metric) = self.catalogue().get(metric).and_then(|info| info.metric) else {
            if let Some(samples) = self.custom.get(metric) {
                for (at, value, weight, row) in samples.timed() {
                    let row = row.and_then(|row| self.requests.rows.get(row as usize));
                    take(at, value, weight, row.and_then(key));
                }
            }
            return;
        };
        let rows = || self.requests.rows.iter().filter(|row| row.counts());
        match metric {
            Metric::Tbc => {
                for row in rows() {
                    let gaps = self.requests.gaps.of(row.gaps);
                    gaps.for_each(|gap| take(row.observed.intended, gap as f64 / 1e9, 1.0, key(row)));
                }
            }
            Metric::Itl => {
                for row in rows() {
                    let gaps = self.requests.token_gaps(row);
                    gaps.for_each(|(gap, tokens)| {
                        let tokens = f64::from(tokens);
                        take(row.observed.intended, gap as f64 / tokens / 1e9, tokens, key(row));
                    });
                }
            }
            Metric::SessionThinkTime => {
                for time in &self.sessions.think_times {
                    let row = self.requests.rows.get(time.row as usize);
                    take(time.intended, time.seconds, 1.0, row.and_then(key));
                }
            }
            Metric::SessionSize
            | Metric::SessionDuration
            | Metric::SessionMakespan
            | Metric::SessionCriticalPath
            | Metric::SessionToolTime
            | Metric::SessionSlowdown => {
                for session in &self.sessions.sessions {
                    if let Some(value) = session.value(metric) {
                        take(session.intended, value, 1.0, Some(session_key(session.session)));
                    }
                }
            }
            metric => {
                for row in rows() {
                    if let Some(value) = row.sample(metric) {
                        take(row.observed.intended, value, 1.0, key(row));
                    }
                }
            }
        }
    }
}

/// Unique while sessions are fewer than 2^32.
fn request_key(request: RequestId) -> u64 {
    request.session.0.rotate_left(32) ^ u64::from(request.node.0)
}

/// No request's: no session has so many.
fn session_key(session: SessionId) -> u64 {
    session.0.rotate_left(32) ^ u64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use veeksha_model::NodeId;

    use super::*;

    #[test]
    fn keys_tell_requests_and_sessions_apart() {
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
