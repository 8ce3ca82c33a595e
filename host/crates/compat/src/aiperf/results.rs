//! The metrics of a set of requests: `aiperf/metrics/accumulator.py`.

use serde_json::{Map, Value};
use veeksha_model::Nanos;

use super::catalogue::{
    ConsoleGroup, INTER_CHUNK, ISSUED, RECORD_METRICS, RecordMetric, ValueKind, larger_is_better,
    length_mismatched, usage_discrepant,
};
use super::facts::RequestFacts;
use crate::options::Threshold;
use crate::report::number;
use crate::sample::{GapPool, ToolSample};

/// AIPerf's statistics of a metric, in the displayed unit. `None` if a statistic does not exist;
/// failures count as infinite in adjusted metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AiperfStats {
    pub(crate) avg: Option<f64>,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) sum: Option<f64>,
    pub(crate) p1: Option<f64>,
    pub(crate) p5: Option<f64>,
    pub(crate) p10: Option<f64>,
    pub(crate) p25: Option<f64>,
    pub(crate) p50: Option<f64>,
    pub(crate) p75: Option<f64>,
    pub(crate) p90: Option<f64>,
    pub(crate) p95: Option<f64>,
    pub(crate) p99: Option<f64>,
    pub(crate) std: Option<f64>,
    pub(crate) count: Option<u64>,
}

impl AiperfStats {
    fn scalar(value: f64) -> AiperfStats {
        AiperfStats {
            avg: Some(value),
            ..AiperfStats::default()
        }
    }

    fn of(sample: &ToolSample) -> AiperfStats {
        let percentile = |p| sample.percentile(p);
        AiperfStats {
            avg: sample.mean(),
            min: sample.min(),
            max: sample.max(),
            sum: Some(sample.sum()),
            p1: percentile(1.0),
            p5: percentile(5.0),
            p10: percentile(10.0),
            p25: percentile(25.0),
            p50: percentile(50.0),
            p75: percentile(75.0),
            p90: percentile(90.0),
            p95: percentile(95.0),
            p99: percentile(99.0),
            std: sample.std(),
            count: Some(sample.len() as u64),
        }
    }

    /// Adds `errors` infinite values; percentiles are the nearest value (`np.percentile(..,
    /// method="nearest")`).
    fn adjusted(sample: &ToolSample, errors: usize) -> AiperfStats {
        let last = sample.len() + errors - 1;
        let nearest = |p: f64| {
            let rank = (last as f64 * (p / 100.0)).round_ties_even() as usize;
            let exact = (rank < sample.len()).then(|| sample.rank(rank));
            Some(exact.unwrap_or(f64::INFINITY))
        };
        AiperfStats {
            avg: Some(f64::INFINITY),
            min: sample.min(),
            max: Some(f64::INFINITY),
            sum: Some(f64::INFINITY),
            p1: nearest(1.0),
            p5: nearest(5.0),
            p10: nearest(10.0),
            p25: nearest(25.0),
            p50: nearest(50.0),
            p75: nearest(75.0),
            p90: nearest(90.0),
            p95: nearest(95.0),
            p99: nearest(99.0),
            std: None,
            count: Some((last + 1) as u64),
        }
    }

    /// Returns the statistics by AIPerf's names, in the order of its `STAT_KEYS`.
    pub(super) fn named(&self) -> [(&'static str, Option<f64>); 14] {
        [
            ("avg", self.avg),
            ("min", self.min),
            ("max", self.max),
            ("sum", self.sum),
            ("p1", self.p1),
            ("p5", self.p5),
            ("p10", self.p10),
            ("p25", self.p25),
            ("p50", self.p50),
            ("p75", self.p75),
            ("p90", self.p90),
            ("p95", self.p95),
            ("p99", self.p99),
            ("std", self.std),
        ]
    }

    /// Returns true if AIPerf's CSV lists it among the metrics with percentiles.
    pub(super) fn is_distribution(&self) -> bool {
        self.p50.is_some()
    }
}

/// A metric with its statistics.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AiperfMetric {
    pub(crate) tag: String,
    pub(crate) header: String,
    pub(crate) unit: &'static str,
    pub(crate) stats: AiperfStats,
    pub(super) group: ConsoleGroup,
    pub(super) order: u32,
}

impl AiperfMetric {
    /// `JsonMetricResult`: missing statistics are left out; an infinite one is null.
    pub(super) fn json(&self) -> Value {
        let mut object = Map::from_iter([("unit".to_owned(), Value::from(self.unit))]);
        for (name, value) in self.stats.named() {
            if value.is_some() {
                object.insert(name.to_owned(), number(value));
            }
        }
        if let Some(count) = self.stats.count {
            object.insert("count".to_owned(), count.into());
        }
        Value::Object(object)
    }
}

/// Requests and the window they are evaluated in.
pub(super) struct Selection<'a> {
    pub(super) requests: Vec<&'a RequestFacts>,
    pub(super) gaps: &'a GapPool,
    pub(super) goodput: &'a [Threshold],
    /// Window over which rates are computed.
    pub(super) window: (Nanos, Nanos),
    /// True for a time slice, which lacks the metrics of the whole run.
    pub(super) slice: bool,
}

impl Selection<'_> {
    /// Returns all metrics except the time-weighted ones.
    pub(super) fn metrics(&self) -> Vec<AiperfMetric> {
        let errors = self.requests.iter().filter(|facts| facts.error).count();
        let mut metrics = self.record_metrics(errors);
        let totals = SelectionTotals {
            selection: self,
            valid: self.requests.len() - errors,
            errors,
            duration: self.duration(),
        };
        let goodput = GOODPUT_TOTALS.iter().filter(|_| !self.goodput.is_empty());
        for metric in TOTALS.iter().chain(goodput) {
            if let Some(value) = (metric.of)(&totals).filter(|value| value.is_finite()) {
                metrics.push(AiperfMetric {
                    tag: metric.tag.to_owned(),
                    header: metric.header.to_owned(),
                    unit: metric.unit,
                    stats: AiperfStats::scalar(value),
                    group: metric.group,
                    order: metric.order,
                });
            }
        }
        metrics
    }

    /// Returns the metrics with one value per request.
    fn record_metrics(&self, errors: usize) -> Vec<AiperfMetric> {
        let mut metrics = Vec::new();
        for metric in &RECORD_METRICS {
            if self.slice && ISSUED.contains(&metric.tag) {
                continue;
            }
            let sample = match metric.tag {
                INTER_CHUNK => self.gaps(metric.per),
                _ => ToolSample::of(
                    self.requests
                        .iter()
                        .filter_map(|facts| value(metric, facts))
                        .collect(),
                ),
            };
            if sample.len() == 0 {
                continue;
            }
            metrics.push(AiperfMetric {
                tag: metric.tag.to_owned(),
                header: metric.header.to_owned(),
                unit: metric.unit,
                stats: AiperfStats::of(&sample),
                group: metric.group,
                order: metric.order,
            });
            if metric.kind == ValueKind::Latency && errors > 0 {
                metrics.push(AiperfMetric {
                    tag: format!("adj_{}", metric.tag),
                    header: format!("{} (error-adjusted)", metric.header),
                    unit: metric.unit,
                    stats: AiperfStats::adjusted(&sample, errors),
                    group: ConsoleGroup::Default,
                    order: u32::MAX,
                });
            }
        }
        metrics
    }

    /// `benchmark_duration` in seconds: from the first start to the last content of the answered
    /// requests.
    fn duration(&self) -> Option<f64> {
        let answered = || self.requests.iter().filter(|facts| !facts.error);
        let first = answered().map(|facts| facts.start).min()?;
        let last = answered()
            .filter_map(|facts| Some(facts.start.saturating_add(facts.latency?)))
            .max()?;
        last.checked_sub(first)
            .filter(|&nanos| nanos > 0)
            .map(|nanos| nanos as f64 / 1e9)
    }

    fn gaps(&self, per: f64) -> ToolSample {
        let mut chosen = GapPool::default();
        for facts in &self.requests {
            facts.gaps.clone().for_each(|at| chosen.push(self.gaps.get(at)));
        }
        chosen.into_sample(per)
    }
}

/// Inputs of the metrics with one value per selection.
struct SelectionTotals<'a> {
    selection: &'a Selection<'a>,
    /// Requests without and with an error.
    valid: usize,
    errors: usize,
    /// `benchmark_duration`.
    duration: Option<f64>,
}

impl SelectionTotals<'_> {
    /// Divides by the length of the window; `None` without a duration.
    fn per_second(&self, value: Option<f64>) -> Option<f64> {
        let (from, to) = self.selection.window;
        let seconds = to.saturating_sub(from) as f64 / 1e9;
        let is_defined = seconds > 0.0 && self.duration.is_some();
        value.filter(|_| is_defined).map(|value| value / seconds)
    }

    /// Returns the sum of a metric over the requests that have it.
    fn sum(&self, tag: &str) -> Option<f64> {
        let metric = RECORD_METRICS.iter().find(|metric| metric.tag == tag)?;
        let requests = self.selection.requests.iter();
        let values = requests.filter_map(|facts| value(metric, facts));
        values.reduce(|sum, value| sum + value)
    }

    /// Counts the requests with a flag, out of those for which it is defined.
    fn count(&self, flag: impl Fn(&RequestFacts) -> Option<bool>) -> Option<f64> {
        let requests = self.selection.requests.iter();
        let flags = requests.filter_map(|facts| flag(facts));
        flags.map(f64::from).reduce(|sum, one| sum + one)
    }

    fn good(&self) -> Option<f64> {
        self.count(|facts| good(facts, self.selection.goodput))
    }

    fn all(&self) -> usize {
        self.valid + self.errors
    }
}

fn positive(count: usize) -> Option<f64> {
    (count > 0).then_some(count as f64)
}

/// A metric with one value per selection.
struct TotalMetric {
    tag: &'static str,
    header: &'static str,
    unit: &'static str,
    group: ConsoleGroup,
    /// Position in the console table.
    order: u32,
    of: fn(&SelectionTotals<'_>) -> Option<f64>,
}

/// Creates a metric that no console table shows.
const fn hidden(
    tag: &'static str,
    header: &'static str,
    unit: &'static str,
    of: fn(&SelectionTotals<'_>) -> Option<f64>,
) -> TotalMetric {
    TotalMetric {
        tag,
        header,
        unit,
        group: ConsoleGroup::None,
        order: 0,
        of,
    }
}

/// Creates a metric of the default console table.
const fn shown(
    order: u32,
    tag: &'static str,
    header: &'static str,
    unit: &'static str,
    of: fn(&SelectionTotals<'_>) -> Option<f64>,
) -> TotalMetric {
    TotalMetric {
        group: ConsoleGroup::Default,
        order,
        ..hidden(tag, header, unit, of)
    }
}

/// Creates a metric of the console table of the server's token counts.
const fn usage(
    order: u32,
    tag: &'static str,
    header: &'static str,
    of: fn(&SelectionTotals<'_>) -> Option<f64>,
) -> TotalMetric {
    TotalMetric {
        group: ConsoleGroup::Usage,
        ..shown(order, tag, header, "tokens", of)
    }
}

const TOTALS: [TotalMetric; 22] = [
    shown(1100, "request_count", "Request Count", "requests", |totals| {
        positive(totals.valid)
    }),
    hidden(
        "error_request_count",
        "Error Request Count",
        "requests",
        |totals| positive(totals.errors),
    ),
    shown(
        1075,
        "completed_request_count",
        "Completed Requests (Success + Error)",
        "requests",
        |totals| positive(totals.all()),
    ),
    shown(1080, "request_error_rate", "Request Error Rate", "%", |totals| {
        positive(totals.all()).map(|all| 100.0 * totals.errors as f64 / all)
    }),
    hidden("benchmark_duration", "Benchmark Duration", "sec", |totals| {
        totals.duration
    }),
    shown(
        900,
        "request_throughput",
        "Request Throughput",
        "requests/sec",
        |totals| totals.per_second(positive(totals.valid)),
    ),
    shown(
        800,
        "output_token_throughput",
        "Output Token Throughput",
        "tokens/sec",
        |totals| totals.per_second(totals.sum("output_sequence_length")),
    ),
    shown(
        805,
        "input_token_throughput",
        "Input Token Throughput",
        "tokens/sec",
        |totals| totals.per_second(totals.sum("input_sequence_length")),
    ),
    hidden(
        "total_token_throughput",
        "Total Token Throughput",
        "tokens/sec",
        |totals| {
            let input = totals.sum("input_sequence_length");
            let both = input.zip(totals.sum("output_sequence_length"));
            totals.per_second(both.map(|(input, output)| input + output))
        },
    ),
    hidden("total_isl", "Total Input Sequence Length", "tokens", |totals| {
        totals.sum("input_sequence_length")
    }),
    hidden("total_osl", "Total Output Sequence Length", "tokens", |totals| {
        totals.sum("output_sequence_length")
    }),
    hidden(
        "total_error_isl",
        "Total Error Input Sequence Length",
        "tokens",
        |totals| totals.sum("error_isl"),
    ),
    hidden("total_output_tokens", "Total Output Tokens", "tokens", |totals| {
        totals.sum("output_token_count")
    }),
    hidden(
        "total_reasoning_tokens",
        "Total Reasoning Tokens",
        "tokens",
        |totals| totals.sum("reasoning_token_count"),
    ),
    usage(
        2000,
        "total_usage_prompt_tokens",
        "Total Usage Prompt Tokens",
        |totals| totals.sum("usage_prompt_tokens"),
    ),
    usage(
        2100,
        "total_usage_completion_tokens",
        "Total Usage Completion Tokens",
        |totals| totals.sum("usage_completion_tokens"),
    ),
    usage(
        2200,
        "total_usage_total_tokens",
        "Total Usage Total Tokens",
        |totals| totals.sum("usage_total_tokens"),
    ),
    usage(
        2110,
        "total_usage_reasoning_tokens",
        "Total Usage Reasoning Tokens",
        |totals| totals.sum("usage_reasoning_tokens"),
    ),
    usage(
        2010,
        "total_usage_prompt_cache_read_tokens",
        "Total Usage Prompt Cache Read Tokens",
        |totals| totals.sum("usage_prompt_cache_read_tokens"),
    ),
    TotalMetric {
        unit: "%",
        ..usage(
            2012,
            "overall_usage_prompt_cache_read_pct",
            "Overall Usage Prompt Cache Read %",
            |totals| {
                let prompt = totals.sum("usage_prompt_tokens").filter(|&prompt| prompt > 0.0)?;
                let cached = totals.sum("usage_prompt_cache_read_tokens")?;
                Some(cached / prompt * 100.0)
            },
        )
    },
    hidden("osl_mismatch_count", "OSL Mismatch Count", "requests", |totals| {
        totals.count(length_mismatched)
    }),
    hidden(
        "usage_discrepancy_count",
        "Usage Discrepancy Count",
        "requests",
        |totals| totals.count(usage_discrepant),
    ),
];

/// Metrics that exist if there are goodput thresholds.
const GOODPUT_TOTALS: [TotalMetric; 3] = [
    hidden("good_request_count", "Good Request Count", "requests", |totals| {
        totals.good()
    }),
    shown(1000, "goodput", "Goodput", "requests/sec", |totals| {
        totals.per_second(totals.good())
    }),
    hidden(
        "good_request_fraction",
        "GoodRequestFraction",
        "ratio",
        |totals| Some(totals.good().unwrap_or(0.0) / totals.all().max(1) as f64),
    ),
];

fn value(metric: &RecordMetric, facts: &RequestFacts) -> Option<f64> {
    if ISSUED.contains(&metric.tag) {
        return (metric.of)(facts).map(|value| value / metric.per);
    }
    metric.value(facts)
}

/// Returns true if a request meets every threshold; `None` if it failed or lacks one of the
/// metrics.
pub(super) fn good(facts: &RequestFacts, goodput: &[Threshold]) -> Option<bool> {
    let met = |threshold: &Threshold| {
        let metric = RECORD_METRICS
            .iter()
            .find(|metric| metric.tag == threshold.metric);
        let value = metric.and_then(|metric| metric.value(facts))?;
        Some(if larger_is_better(&threshold.metric) {
            value >= threshold.value
        } else {
            value <= threshold.value
        })
    };
    let verdicts: Option<Vec<bool>> = goodput.iter().map(met).collect();
    verdicts
        .filter(|_| !facts.error)
        .map(|verdicts| verdicts.into_iter().all(|met| met))
}
