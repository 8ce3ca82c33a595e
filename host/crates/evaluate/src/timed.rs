//! Samples with their instants, for whoever compares runs.

use veeksha_model::Nanos;

use crate::{Metric, RunSamples};

impl RunSamples {
    /// Shows every sample of a metric: the instant that the schedule asked its request for (of a session's metric: its first request), its
    /// value in the metric's unit, and its weight. In the order of the requests' names. Nothing for a metric without samples. Samples of the
    /// whole run have no instant and are left out.
    pub fn each_sample(&self, metric: &str, mut take: impl FnMut(Nanos, f64, f64)) {
        let Some(metric) = self.catalogue().get(metric).and_then(|info| info.metric) else {
            if let Some(samples) = self.custom.get(metric) {
                samples
                    .timed()
                    .for_each(|(at, value, weight)| take(at, value, weight));
            }
            return;
        };
        let rows = || self.requests.rows.iter().filter(|row| row.counts());
        match metric {
            Metric::Tbc => {
                for row in rows() {
                    let gaps = self.requests.gaps.of(row.gaps);
                    gaps.for_each(|gap| take(row.intended, gap as f64 / 1e9, 1.0));
                }
            }
            Metric::Itl => {
                for row in rows() {
                    let gaps = self.requests.token_gaps(row);
                    gaps.for_each(|(gap, tokens)| {
                        let tokens = f64::from(tokens);
                        take(row.intended, gap as f64 / tokens / 1e9, tokens);
                    });
                }
            }
            Metric::SessionThinkTime => {
                let times = &self.sessions.think_times;
                times
                    .iter()
                    .for_each(|time| take(time.intended, time.seconds, 1.0));
            }
            Metric::SessionSize
            | Metric::SessionDuration
            | Metric::SessionMakespan
            | Metric::SessionCriticalPath
            | Metric::SessionToolTime
            | Metric::SessionSlowdown => {
                for session in &self.sessions.sessions {
                    if let Some(value) = session.value(metric) {
                        take(session.intended, value, 1.0);
                    }
                }
            }
            metric => {
                for row in rows() {
                    if let Some(value) = self.requests.value(metric, row) {
                        take(row.intended, value, 1.0);
                    }
                }
            }
        }
    }
}
