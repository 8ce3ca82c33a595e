//! The metrics of a set of requests: `aiperf/metrics/accumulator.py`.

use serde_json::{Map, Value};
use veeksha_model::Nanos;

use super::catalogue::{
    self, Group, INTER_CHUNK, ISSUED, Kind, RECORD_METRICS, RecordMetric, larger_is_better,
};
use super::facts::Facts;
use crate::options::Threshold;
use crate::report::number;
use crate::sample::{GapPool, Sample};

/// AIPerf's statistics of a metric, in the displayed unit. `None` if a statistic does not exist;
/// failures count as infinite in adjusted metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Stats {
    pub(crate) avg: Option<f64>,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
    sum: Option<f64>,
    p1: Option<f64>,
    p5: Option<f64>,
    p10: Option<f64>,
    p25: Option<f64>,
    pub(crate) p50: Option<f64>,
    p75: Option<f64>,
    pub(crate) p90: Option<f64>,
    pub(crate) p95: Option<f64>,
    pub(crate) p99: Option<f64>,
    pub(crate) std: Option<f64>,
    pub(crate) count: Option<u64>,
}

/// Keys in the order of `STAT_KEYS`.
pub(super) const STAT_KEYS: [&str; 14] = [
    "avg", "min", "max", "sum", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "std",
];

impl Stats {
    fn scalar(value: f64) -> Stats {
        Stats {
            avg: Some(value),
            ..Stats::default()
        }
    }

    /// Creates the statistics of a curve: mean, extremes, four percentiles, standard deviation.
    pub(super) fn curve(
        avg: Option<f64>,
        [min, max]: [Option<f64>; 2],
        [p50, p90, p95, p99]: [Option<f64>; 4],
        std: Option<f64>,
    ) -> Stats {
        Stats {
            avg,
            min,
            max,
            p50,
            p90,
            p95,
            p99,
            std,
            ..Stats::default()
        }
    }

    fn of(sample: &Sample) -> Stats {
        let percentile = |p| sample.percentile(p);
        Stats {
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
    fn adjusted(sample: &Sample, errors: usize) -> Stats {
        let last = sample.len() + errors - 1;
        let nearest = |p: f64| {
            let rank = (last as f64 * (p / 100.0)).round_ties_even() as usize;
            let exact = (rank < sample.len()).then(|| sample.rank(rank));
            Some(exact.unwrap_or(f64::INFINITY))
        };
        Stats {
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

    pub(super) fn get(&self, key: &str) -> Option<f64> {
        match key {
            "avg" => self.avg,
            "min" => self.min,
            "max" => self.max,
            "sum" => self.sum,
            "p1" => self.p1,
            "p5" => self.p5,
            "p10" => self.p10,
            "p25" => self.p25,
            "p50" => self.p50,
            "p75" => self.p75,
            "p90" => self.p90,
            "p95" => self.p95,
            "p99" => self.p99,
            "std" => self.std,
            _ => None,
        }
    }

    /// Returns true if AIPerf's CSV lists it among the metrics with percentiles.
    pub(super) fn is_distribution(&self) -> bool {
        self.p50.is_some()
    }
}

/// A metric with its statistics.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metric {
    pub(crate) tag: String,
    pub(crate) header: String,
    pub(crate) unit: &'static str,
    pub(crate) stats: Stats,
    pub(super) group: Group,
    pub(super) order: u32,
}

impl Metric {
    /// `JsonMetricResult`: missing statistics are left out; an infinite one is null.
    pub(super) fn json(&self) -> Value {
        let mut object = Map::from_iter([("unit".to_owned(), Value::from(self.unit))]);
        for key in STAT_KEYS {
            if let Some(value) = self.stats.get(key) {
                object.insert(key.to_owned(), number(Some(value)));
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
    pub(super) requests: Vec<&'a Facts>,
    pub(super) gaps: &'a GapPool,
    pub(super) goodput: &'a [Threshold],
    /// Window over which rates are computed.
    pub(super) window: (Nanos, Nanos),
    /// True for a time slice, which lacks the metrics of the whole run.
    pub(super) slice: bool,
}

impl Selection<'_> {
    /// Returns all metrics except the time-weighted ones.
    pub(super) fn metrics(&self) -> Vec<Metric> {
        let errors = self.requests.iter().filter(|facts| facts.error).count();
        let valid = self.requests.len() - errors;
        let mut metrics = Vec::new();
        for metric in &RECORD_METRICS {
            let issued = ISSUED.contains(&metric.tag);
            if issued && self.slice {
                continue;
            }
            let sample = match metric.tag {
                INTER_CHUNK => self.gaps(metric.per),
                _ => Sample::of(
                    self.requests
                        .iter()
                        .filter_map(|facts| value(metric, facts))
                        .collect(),
                ),
            };
            if sample.len() == 0 {
                continue;
            }
            metrics.push(Metric {
                tag: metric.tag.to_owned(),
                header: metric.header.to_owned(),
                unit: metric.unit,
                stats: Stats::of(&sample),
                group: metric.group,
                order: metric.order,
            });
            if metric.kind == Kind::Latency && errors > 0 {
                metrics.push(Metric {
                    tag: format!("adj_{}", metric.tag),
                    header: format!("{} (error-adjusted)", metric.header),
                    unit: metric.unit,
                    stats: Stats::adjusted(&sample, errors),
                    group: Group::Default,
                    order: u32::MAX,
                });
            }
        }
        let mut put = |tag: &str,
                       header: &str,
                       unit: &'static str,
                       (group, order): (Group, u32),
                       value: Option<f64>| {
            if let Some(value) = value.filter(|value| value.is_finite()) {
                metrics.push(Metric {
                    tag: tag.to_owned(),
                    header: header.to_owned(),
                    unit,
                    stats: Stats::scalar(value),
                    group,
                    order,
                });
            }
        };
        let hidden = (Group::None, 0);
        let shown = |order| (Group::Default, order);
        let some = |count: usize| (count > 0).then_some(count as f64);
        let (from, to) = self.window;
        let seconds = to.saturating_sub(from) as f64 / 1e9;
        let per_second = |value: Option<f64>| {
            value
                .filter(|_| seconds > 0.0 && self.duration().is_some())
                .map(|value| value / seconds)
        };
        let sum = |tag: &str| {
            let metric = RECORD_METRICS.iter().find(|metric| metric.tag == tag)?;
            let values = self.requests.iter().filter_map(|facts| value(metric, facts));
            values.reduce(|sum, value| sum + value)
        };
        put(
            "request_count",
            "Request Count",
            "requests",
            shown(1100),
            some(valid),
        );
        put(
            "error_request_count",
            "Error Request Count",
            "requests",
            hidden,
            some(errors),
        );
        let header = "Completed Requests (Success + Error)";
        put(
            "completed_request_count",
            header,
            "requests",
            shown(1075),
            some(valid + errors),
        );
        let share = some(valid + errors).map(|all| 100.0 * errors as f64 / all);
        put(
            "request_error_rate",
            "Request Error Rate",
            "%",
            shown(1080),
            share,
        );
        put(
            "benchmark_duration",
            "Benchmark Duration",
            "sec",
            hidden,
            self.duration(),
        );
        put(
            "request_throughput",
            "Request Throughput",
            "requests/sec",
            shown(900),
            per_second(some(valid)),
        );
        let (isl, osl) = (sum("input_sequence_length"), sum("output_sequence_length"));
        put(
            "output_token_throughput",
            "Output Token Throughput",
            "tokens/sec",
            shown(800),
            per_second(osl),
        );
        put(
            "input_token_throughput",
            "Input Token Throughput",
            "tokens/sec",
            shown(805),
            per_second(isl),
        );
        let both = isl.zip(osl).map(|(isl, osl)| isl + osl);
        put(
            "total_token_throughput",
            "Total Token Throughput",
            "tokens/sec",
            hidden,
            per_second(both),
        );
        put("total_isl", "Total Input Sequence Length", "tokens", hidden, isl);
        put("total_osl", "Total Output Sequence Length", "tokens", hidden, osl);
        put(
            "total_error_isl",
            "Total Error Input Sequence Length",
            "tokens",
            hidden,
            sum("error_isl"),
        );
        put(
            "total_output_tokens",
            "Total Output Tokens",
            "tokens",
            hidden,
            sum("output_token_count"),
        );
        put(
            "total_reasoning_tokens",
            "Total Reasoning Tokens",
            "tokens",
            hidden,
            sum("reasoning_token_count"),
        );
        let usage = [
            ("prompt_tokens", "Prompt Tokens", 2000),
            ("completion_tokens", "Completion Tokens", 2100),
            ("total_tokens", "Total Tokens", 2200),
            ("reasoning_tokens", "Reasoning Tokens", 2110),
            ("prompt_cache_read_tokens", "Prompt Cache Read Tokens", 2010),
        ];
        for (name, header, order) in usage {
            let total = sum(&format!("usage_{name}"));
            let header = format!("Total Usage {header}");
            put(
                &format!("total_usage_{name}"),
                &header,
                "tokens",
                (Group::Usage, order),
                total,
            );
        }
        let prompt = sum("usage_prompt_tokens").filter(|&prompt| prompt > 0.0);
        let cached = sum("usage_prompt_cache_read_tokens").zip(prompt);
        let header = "Overall Usage Prompt Cache Read %";
        let share = cached.map(|(cached, prompt)| cached / prompt * 100.0);
        put(
            "overall_usage_prompt_cache_read_pct",
            header,
            "%",
            (Group::Usage, 2012),
            share,
        );
        let count = |flag: fn(&Facts) -> Option<bool>| {
            let flags = self.requests.iter().filter_map(|facts| flag(facts));
            flags.map(f64::from).reduce(|sum, one| sum + one)
        };
        let mismatched = count(catalogue::length_mismatched);
        put(
            "osl_mismatch_count",
            "OSL Mismatch Count",
            "requests",
            hidden,
            mismatched,
        );
        let discrepant = count(catalogue::usage_discrepant);
        put(
            "usage_discrepancy_count",
            "Usage Discrepancy Count",
            "requests",
            hidden,
            discrepant,
        );
        if !self.goodput.is_empty() {
            let verdicts = self.requests.iter().filter_map(|facts| good(facts, self.goodput));
            let good = verdicts.map(f64::from).reduce(|sum, one| sum + one);
            put(
                "good_request_count",
                "Good Request Count",
                "requests",
                hidden,
                good,
            );
            put(
                "goodput",
                "Goodput",
                "requests/sec",
                shown(1000),
                per_second(good),
            );
            let share = good.unwrap_or(0.0) / (valid + errors).max(1) as f64;
            put(
                "good_request_fraction",
                "GoodRequestFraction",
                "ratio",
                hidden,
                Some(share),
            );
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

    fn gaps(&self, per: f64) -> Sample {
        let mut chosen = GapPool::default();
        for facts in &self.requests {
            facts.gaps.clone().for_each(|at| chosen.push(self.gaps.get(at)));
        }
        chosen.into_sample(per)
    }
}

fn value(metric: &RecordMetric, facts: &Facts) -> Option<f64> {
    if ISSUED.contains(&metric.tag) {
        return (metric.of)(facts).map(|value| value / metric.per);
    }
    metric.value(facts)
}

/// Returns true if a request meets every threshold; `None` if it failed or lacks one of the
/// metrics.
pub(super) fn good(facts: &Facts, goodput: &[Threshold]) -> Option<bool> {
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
