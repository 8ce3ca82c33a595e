//! All samples of a run, by metric.

use veeksha_events::{Latencies, RequestRecord};
use veeksha_stats::{Summary, interpolate};

use crate::Metric;

/// The samples of every metric, in seconds, tokens or requests. Eight bytes a sample; nothing else is kept of a request.
#[derive(Debug)]
pub(crate) struct Samples {
    by_metric: Vec<Vec<f64>>,
}

impl Samples {
    pub(crate) fn new() -> Self {
        Samples {
            by_metric: Metric::all().map(|_| Vec::new()).collect(),
        }
    }

    pub(crate) fn push(&mut self, metric: Metric, value: f64) {
        self.by_metric[metric as usize].push(value);
    }

    /// Adds an answered, measured request.
    pub(crate) fn add_request(&mut self, record: &RequestRecord, latencies: &Latencies) {
        self.push(Metric::PromptTokens, f64::from(record.prompt_tokens));
        self.push(Metric::OutputTokens, f64::from(record.output_tokens));
        self.push(
            Metric::TotalTokens,
            f64::from(record.total_prompt_tokens) + f64::from(record.output_tokens),
        );
        for metric in Metric::all() {
            if let Some(value) = single_value(metric, latencies) {
                self.push(metric, value);
            }
        }
        self.by_metric[Metric::Tbc as usize].extend_from_slice(&latencies.tbc);
    }

    /// Sorts every metric once.
    pub(crate) fn sorted(mut self) -> SortedSamples {
        let summaries = self.by_metric.iter_mut().map(Summary::of).collect();
        SortedSamples {
            by_metric: self.by_metric,
            summaries,
        }
    }
}

/// The one value that a request has of a metric; `None` where it has none, or a list of them (`tbc`).
pub(crate) fn single_value(metric: Metric, latencies: &Latencies) -> Option<f64> {
    match metric {
        Metric::Tpot => latencies.tpot,
        Metric::Ttfc => latencies.ttfc,
        Metric::TtfcFromIntended => latencies.ttfc_from_intended,
        Metric::EndToEnd => latencies.end_to_end,
        Metric::EndToEndFromIntended => latencies.end_to_end_from_intended,
        Metric::NormalizedEndToEnd => latencies.normalized_end_to_end,
        Metric::OutputThroughput => latencies.output_throughput,
        Metric::PromptTokens
        | Metric::OutputTokens
        | Metric::TotalTokens
        | Metric::Tbc
        | Metric::SessionSize
        | Metric::SessionDuration
        | Metric::SessionThinkTime => None,
    }
}

/// Samples in ascending order, with their summaries.
#[derive(Debug)]
pub(crate) struct SortedSamples {
    by_metric: Vec<Vec<f64>>,
    summaries: Vec<Option<Summary>>,
}

impl SortedSamples {
    pub(crate) fn summary(&self, metric: Metric) -> Option<Summary> {
        self.summaries[metric as usize]
    }

    pub(crate) fn count(&self, metric: Metric) -> usize {
        self.by_metric[metric as usize].len()
    }

    pub(crate) fn percentile(&self, metric: Metric, p: f64) -> Option<f64> {
        let values = &self.by_metric[metric as usize];
        interpolate(values.len(), p, |rank| values[rank])
    }
}
