//! The figures of a run.

use serde_json::Value;
use veeksha_stats::Summary;

use crate::samples::SortedSamples;
use crate::{Counts, HostFigures, Metric, SloResults, Throughput, json};

/// All figures of a run. The three functions give them in the shape of Veeksha's files, with what Veeksha leaves out
/// beside it; a figure that does not exist is `null` there (or its key is absent, where Veeksha omits it).
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// How many requests and sessions, and how they ended.
    pub counts: Counts,
    /// Metrics that have samples, in the order of [`Metric::all`].
    pub metrics: Vec<MetricSummary>,
    /// What the system delivered per second.
    pub throughput: Throughput,
    /// What was asked of the run, and goodput.
    pub slos: SloResults,
    /// How well the host did.
    pub host: HostFigures,
    /// Sessions begun per second: (sessions − 1) / (last start − first start).
    pub session_dispatch_rate: Option<f64>,
    /// How the record ends.
    pub end: RunEnd,
}

/// The summary of a metric's samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricSummary {
    /// Which metric; it knows its names and its unit.
    pub metric: Metric,
    /// Its figures, in the metric's unit.
    pub summary: Summary,
}

/// How a record ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunEnd {
    /// Whether the run came to its end; a record without it was cut short.
    pub complete: bool,
    /// Whether the user stopped it.
    pub interrupted: bool,
}

impl Evaluation {
    pub(crate) fn metrics_of(samples: &SortedSamples) -> Vec<MetricSummary> {
        let with_samples = |metric| {
            samples
                .summary(metric)
                .map(|summary| MetricSummary { metric, summary })
        };
        Metric::all().filter_map(with_samples).collect()
    }

    /// The figures of one metric; `None` if it has no samples.
    pub fn metric(&self, metric: Metric) -> Option<&Summary> {
        self.metrics
            .iter()
            .find(|entry| entry.metric == metric)
            .map(|entry| &entry.summary)
    }

    /// `metrics/summary_stats.json`.
    pub fn summary_stats(&self) -> Value {
        json::summary_stats(self)
    }

    /// `metrics/throughput_metrics.json`.
    pub fn throughput_metrics(&self) -> Value {
        json::throughput_metrics(self)
    }

    /// `metrics/slo_results.json`.
    pub fn slo_results(&self) -> Value {
        json::slo_results(self)
    }
}
