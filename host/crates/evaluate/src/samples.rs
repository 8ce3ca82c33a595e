//! All samples of a run, by metric.

use veeksha_events::{Latencies, RequestRecord};
use veeksha_stats::{Summary, percentile};

use crate::Metric;
use crate::gap_samples::{GapSamples, SortedGaps};
use crate::latencies::gaps;

/// The samples of every metric, in seconds, tokens or requests: eight bytes a sample, four a gap. Nothing else is kept of
/// a request.
#[derive(Debug)]
pub(crate) struct Samples {
    /// By `Metric as usize`; that of `tbc` stays empty.
    by_metric: Vec<Vec<f64>>,
    gaps: GapSamples,
}

impl Samples {
    pub(crate) fn new() -> Self {
        Samples {
            by_metric: Metric::all().map(|_| Vec::new()).collect(),
            gaps: GapSamples::default(),
        }
    }

    pub(crate) fn push(&mut self, metric: Metric, value: f64) {
        self.by_metric[metric as usize].push(value);
    }

    /// Adds an answered, measured request.
    pub(crate) fn add_request(&mut self, record: &RequestRecord, latencies: &Latencies) {
        for metric in Metric::all() {
            if let Some(value) = single_value(metric, record, latencies) {
                self.push(metric, value);
            }
        }
        gaps(record).for_each(|gap| self.gaps.push(gap));
    }

    /// Sorts every metric once.
    pub(crate) fn sorted(mut self) -> SortedSamples {
        let mut summaries: Vec<_> = self.by_metric.iter_mut().map(Summary::of).collect();
        let gaps = self.gaps.sorted();
        summaries[Metric::Tbc as usize] = gaps.summary();
        SortedSamples {
            by_metric: self.by_metric,
            gaps,
            summaries,
        }
    }
}

/// The one value that an answered request has of a metric; `None` where it has none, or a list of them (`tbc`).
pub(crate) fn single_value(metric: Metric, record: &RequestRecord, latencies: &Latencies) -> Option<f64> {
    match metric {
        Metric::PromptTokens => Some(f64::from(record.prompt_tokens)),
        Metric::OutputTokens => Some(f64::from(record.output_tokens)),
        Metric::TotalTokens => Some(f64::from(record.total_prompt_tokens) + f64::from(record.output_tokens)),
        Metric::Tpot => latencies.tpot,
        Metric::Ttfc => latencies.ttfc,
        Metric::TtfcFromIntended => latencies.ttfc_from_intended,
        Metric::EndToEnd => latencies.end_to_end,
        Metric::EndToEndFromIntended => latencies.end_to_end_from_intended,
        Metric::NormalizedEndToEnd => latencies.normalized_end_to_end,
        Metric::OutputThroughput => latencies.output_throughput,
        Metric::Tbc | Metric::SessionSize | Metric::SessionDuration | Metric::SessionThinkTime => None,
    }
}

/// Samples in ascending order, with their summaries.
#[derive(Debug)]
pub(crate) struct SortedSamples {
    by_metric: Vec<Vec<f64>>,
    gaps: SortedGaps,
    summaries: Vec<Option<Summary>>,
}

impl SortedSamples {
    pub(crate) fn summary(&self, metric: Metric) -> Option<Summary> {
        self.summaries[metric as usize]
    }

    pub(crate) fn count(&self, metric: Metric) -> usize {
        if metric == Metric::Tbc {
            self.gaps.count()
        } else {
            self.by_metric[metric as usize].len()
        }
    }

    pub(crate) fn percentile(&self, metric: Metric, p: f64) -> Option<f64> {
        if metric == Metric::Tbc {
            self.gaps.percentile(p)
        } else {
            percentile(&self.by_metric[metric as usize], p)
        }
    }
}
