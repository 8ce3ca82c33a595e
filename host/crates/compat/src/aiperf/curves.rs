//! The time-weighted "effective" and "active" metrics: `aiperf/analysis/sweepline*.py` and
//! `aiperf/metrics/accumulator_sweeps.py`.

use veeksha_model::Nanos;
use veeksha_stats::StepCurve;

use super::catalogue::ConsoleGroup;
use super::facts::RequestFacts;
use super::results::{AiperfMetric, AiperfStats};
use crate::sample::GapPool;

/// Above this number of gaps the tokens of a request are spread evenly over its decoding, as AIPerf
/// does where its list backend keeps no single gaps: exact curves need some hundred bytes per gap.
const MOST_GAPS: usize = 2_000_000;

/// Curves of all requests; rates in tokens per nanosecond.
#[derive(Debug, Default)]
pub(super) struct AiperfCurves {
    concurrency: StepCurve,
    decoding: StepCurve,
    prefilling: StepCurve,
    decode: StepCurve,
    prefill: StepCurve,
    total: StepCurve,
    in_flight: StepCurve,
}

impl AiperfCurves {
    pub(super) fn of(all: &[RequestFacts], gaps: &GapPool) -> AiperfCurves {
        let mut curves = AiperfCurves::default();
        let by_gap = gaps.len() > 0 && gaps.len() <= MOST_GAPS;
        for facts in all {
            curves.add(facts, by_gap.then_some(gaps));
        }
        curves
    }

    fn add(&mut self, facts: &RequestFacts, gaps: Option<&GapPool>) {
        let (start, end) = (facts.start, facts.end);
        self.concurrency.add(start, end, 1.0);
        let Some(first) = facts.generation_start() else {
            return;
        };
        self.decoding.add(first, end, 1.0);
        self.prefilling.add(start, first, 1.0);
        let input = facts.isl as f64;
        if first > start {
            let rate = input / (first - start) as f64;
            self.prefill.add(start, first, rate);
            self.total.add(start, first, rate);
            self.in_flight.add(start, end, input);
        }
        let Some(output) = facts.osl().filter(|&output| output >= 1) else {
            return;
        };
        let rest = (output - 1) as f64;
        let even = if end > first {
            rest / (end - first) as f64
        } else {
            0.0
        };
        self.total.add(first, end, even);
        match gaps {
            None => {
                self.decode.add(first, end, even);
                self.in_flight.add(first, end, output as f64);
            }
            Some(gaps) if !facts.gaps.is_empty() => {
                // The first chunk carries one token, the others equal parts of the rest.
                self.in_flight.add(first, end, 1.0);
                let lasting = facts.gaps.clone().filter(|&at| gaps.get(at) > 0).count();
                let (part, each) = (rest / facts.gaps.len() as f64, rest / lasting.max(1) as f64);
                let mut before: Nanos = first;
                for at in facts.gaps.clone() {
                    let gap = gaps.get(at);
                    let arrival = before.saturating_add(gap);
                    if gap > 0 {
                        self.decode.add(before, arrival, each / gap as f64);
                    }
                    // As in AIPerf, a chunk that arrives with the end counts just before it.
                    self.in_flight.add(arrival.min(end.saturating_sub(1)), end, part);
                    before = arrival;
                }
            }
            Some(_) => {}
        }
    }

    /// Returns all metrics within a window.
    pub(super) fn metrics(&self, from: Nanos, to: Nanos) -> Vec<AiperfMetric> {
        if self.concurrency.steps().is_empty() {
            return Vec::new();
        }
        let metric = |metric: &CurveMetric| AiperfMetric {
            tag: metric.tag.to_owned(),
            header: metric.header.to_owned(),
            unit: metric.unit,
            stats: self.weighted(metric.formula, from, to).stats(metric.scale),
            group: metric.group,
            order: u32::MAX,
        };
        CURVE_METRICS.iter().map(metric).collect()
    }

    /// Returns the values of a formula in a window.
    fn weighted(&self, formula: CurveFormula, from: Nanos, to: Nanos) -> WeightedValues {
        match formula {
            CurveFormula::Plain(curve) => WeightedValues::of(curve(self).pieces(from, to)),
            CurveFormula::PerUser(rate, users) => {
                let each = |(length, rate, users): (u64, f64, f64)| {
                    (length, if users > 0.0 { rate / users } else { 0.0 })
                };
                WeightedValues::of(pairs(rate(self), users(self), from, to).into_iter().map(each))
            }
            CurveFormula::Active(rate, mask) => {
                let pieces = pairs(rate(self), mask(self), from, to).into_iter();
                let active = pieces.filter(|piece| piece.2 > 0.0);
                WeightedValues::of(active.map(|(length, rate, _)| (length, rate)))
            }
            CurveFormula::ActivePerUser(rate, users) => {
                let pieces = pairs(rate(self), users(self), from, to).into_iter();
                let active = pieces.filter(|piece| piece.2 > 0.0);
                WeightedValues::of(active.map(|(length, rate, users)| (length, rate / users)))
            }
        }
    }
}

type CurveOf = fn(&AiperfCurves) -> &StepCurve;

/// Formula of a time-weighted metric.
#[derive(Clone, Copy)]
enum CurveFormula {
    Plain(CurveOf),
    /// A rate per user; 0 without users.
    PerUser(CurveOf, CurveOf),
    /// A rate while the second curve is positive.
    Active(CurveOf, CurveOf),
    /// A rate per user while there are users.
    ActivePerUser(CurveOf, CurveOf),
}

/// A time-weighted metric.
struct CurveMetric {
    tag: &'static str,
    header: &'static str,
    unit: &'static str,
    /// Displayed units per internal unit: rates are per nanosecond.
    scale: f64,
    group: ConsoleGroup,
    formula: CurveFormula,
}

const TOKENS: &str = "tokens/sec";
const PER_USER: &str = "tokens/sec/user";

const fn level(tag: &'static str, header: &'static str, unit: &'static str, curve: CurveOf) -> CurveMetric {
    CurveMetric {
        tag,
        header,
        unit,
        scale: 1.0,
        group: ConsoleGroup::Effective,
        formula: CurveFormula::Plain(curve),
    }
}

const fn rate(
    tag: &'static str,
    header: &'static str,
    unit: &'static str,
    group: ConsoleGroup,
    formula: CurveFormula,
) -> CurveMetric {
    CurveMetric {
        tag,
        header,
        unit,
        scale: 1e9,
        group,
        formula,
    }
}

const CONCURRENCY: CurveOf = |curves| &curves.concurrency;
const DECODING: CurveOf = |curves| &curves.decoding;
const PREFILLING: CurveOf = |curves| &curves.prefilling;
const DECODE: CurveOf = |curves| &curves.decode;
const PREFILL: CurveOf = |curves| &curves.prefill;
const TOTAL: CurveOf = |curves| &curves.total;

const CURVE_METRICS: [CurveMetric; 14] = [
    level(
        "effective_concurrency",
        "Effective Concurrency",
        "requests",
        CONCURRENCY,
    ),
    rate(
        "effective_decode_throughput",
        "Effective Decode Throughput",
        TOKENS,
        ConsoleGroup::Effective,
        CurveFormula::Plain(DECODE),
    ),
    rate(
        "effective_prefill_throughput",
        "Effective Prefill Throughput",
        TOKENS,
        ConsoleGroup::Effective,
        CurveFormula::Plain(PREFILL),
    ),
    level(
        "effective_decode_concurrency",
        "Effective Decode Concurrency",
        "requests",
        DECODING,
    ),
    level(
        "effective_prefill_concurrency",
        "Effective Prefill Concurrency",
        "requests",
        PREFILLING,
    ),
    rate(
        "effective_total_throughput",
        "Effective Total Throughput",
        TOKENS,
        ConsoleGroup::Effective,
        CurveFormula::Plain(TOTAL),
    ),
    rate(
        "effective_decode_throughput_per_user",
        "Effective Decode Throughput Per User",
        PER_USER,
        ConsoleGroup::Effective,
        CurveFormula::PerUser(DECODE, DECODING),
    ),
    rate(
        "effective_prefill_throughput_per_user",
        "Effective Prefill Throughput Per User",
        PER_USER,
        ConsoleGroup::Effective,
        CurveFormula::PerUser(PREFILL, PREFILLING),
    ),
    level("tokens_in_flight", "Tokens In Flight", "tokens", |curves| {
        &curves.in_flight
    }),
    rate(
        "active_decode_throughput",
        "Active Decode Throughput",
        TOKENS,
        ConsoleGroup::Active,
        CurveFormula::Active(DECODE, DECODING),
    ),
    rate(
        "active_prefill_throughput",
        "Active Prefill Throughput",
        TOKENS,
        ConsoleGroup::Active,
        CurveFormula::Active(PREFILL, PREFILLING),
    ),
    rate(
        "active_decode_throughput_per_user",
        "Active Decode Throughput Per User",
        PER_USER,
        ConsoleGroup::Active,
        CurveFormula::ActivePerUser(DECODE, DECODING),
    ),
    rate(
        "active_prefill_throughput_per_user",
        "Active Prefill Throughput Per User",
        PER_USER,
        ConsoleGroup::Active,
        CurveFormula::ActivePerUser(PREFILL, PREFILLING),
    ),
    rate(
        "active_total_throughput",
        "Active Total Throughput",
        TOKENS,
        ConsoleGroup::Active,
        CurveFormula::Active(TOTAL, CONCURRENCY),
    ),
];

/// Merges two curves into pieces of constant values: duration and both values.
fn pairs(a: &StepCurve, b: &StepCurve, from: Nanos, to: Nanos) -> Vec<(u64, f64, f64)> {
    let (mut a, mut b) = (a.pieces(from, to), b.pieces(from, to));
    let (mut left, mut right) = (a.next(), b.next());
    let mut pairs = Vec::new();
    while let (Some(one), Some(other)) = (left, right) {
        let length = one.0.min(other.0);
        if length > 0 {
            pairs.push((length, one.1, other.1));
        }
        left = if one.0 > length {
            Some((one.0 - length, one.1))
        } else {
            a.next()
        };
        right = if other.0 > length {
            Some((other.0 - length, other.1))
        } else {
            b.next()
        };
    }
    pairs
}

/// Pieces of a curve by value, weighted by duration: `compute_time_weighted_stats`.
struct WeightedValues(Vec<(f64, f64)>);

impl WeightedValues {
    fn of(pieces: impl Iterator<Item = (u64, f64)>) -> WeightedValues {
        let mut pieces: Vec<(f64, f64)> = pieces
            .filter(|piece| piece.0 > 0)
            .map(|(length, value)| (value, length as f64))
            .collect();
        pieces.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        WeightedValues(pieces)
    }

    /// Returns the statistics; all are 0 without duration, as in AIPerf.
    fn stats(&self, scale: f64) -> AiperfStats {
        let time: f64 = self.0.iter().map(|piece| piece.1).sum();
        let (Some(least), Some(most)) = (self.0.first(), self.0.last()) else {
            let zero = Some(0.0);
            return AiperfStats {
                avg: zero,
                min: zero,
                max: zero,
                p50: zero,
                p90: zero,
                p95: zero,
                p99: zero,
                std: zero,
                ..AiperfStats::default()
            };
        };
        let mean = self.0.iter().map(|(value, length)| value * length).sum::<f64>() / time;
        let squares = self
            .0
            .iter()
            .map(|(value, length)| length * (value - mean).powi(2));
        let std = (squares.sum::<f64>() / time).sqrt();
        let scaled = |value: f64| Some(value * scale);
        let percentile = |p: f64| {
            let mut passed = 0.0;
            let reached = |piece: &&(f64, f64)| {
                passed += piece.1;
                passed / time >= p
            };
            scaled(self.0.iter().find(reached).unwrap_or(most).0)
        };
        AiperfStats {
            avg: scaled(mean),
            min: scaled(least.0),
            max: scaled(most.0),
            p50: percentile(0.5),
            p90: percentile(0.9),
            p95: percentile(0.95),
            p99: percentile(0.99),
            std: scaled(std),
            ..AiperfStats::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Request, record};

    #[test]
    fn pairs_are_cut_at_the_edges_of_both_curves() {
        let (mut a, mut b) = (StepCurve::new(), StepCurve::new());
        a.add(2, 6, 1.0);
        b.add(4, 8, 3.0);
        let expected = [
            (2, 0.0, 0.0),
            (2, 1.0, 0.0),
            (2, 1.0, 3.0),
            (2, 0.0, 3.0),
            (2, 0.0, 0.0),
        ];
        assert_eq!(pairs(&a, &b, 0, 10), expected);
    }

    #[test]
    fn percentiles_are_weighted_by_time() {
        // 1 for 6, 5 for 3, 9 for 1: mean (6 + 15 + 9) / 10 = 3; half of the time at most 1, 90 %
        // at most 5.
        let stats = WeightedValues::of([(6, 1.0), (1, 9.0), (3, 5.0)].into_iter()).stats(1.0);
        assert_eq!(
            (stats.avg, stats.min, stats.max),
            (Some(3.0), Some(1.0), Some(9.0))
        );
        assert_eq!(
            (stats.p50, stats.p90, stats.p95),
            (Some(1.0), Some(5.0), Some(9.0))
        );
    }

    /// Taken up at 0, first content at 100 ms, last and end at 300 ms; 20 tokens in, 5 out.
    fn one(by_gap: bool) -> AiperfCurves {
        let request = Request {
            prompt: 20,
            ..Request::default()
        };
        let request = request
            .content(&[100.0, 150.0, 200.0, 250.0, 300.0])
            .output(5, true);
        let mut gaps = GapPool::default();
        let facts = RequestFacts::of(&record(&request), &mut gaps);
        let mut curves = AiperfCurves::default();
        curves.add(&facts, by_gap.then_some(&gaps));
        curves
    }

    #[test]
    fn rates_and_tokens_of_one_request() {
        let ms = 1_000_000;
        for by_gap in [true, false] {
            let metrics = one(by_gap).metrics(0, 300 * ms);
            let avg = |tag: &str| {
                let metric = metrics.iter().find(|metric| metric.tag == tag).unwrap();
                metric.stats.avg.unwrap()
            };
            let close = |tag: &str, expected: f64| {
                let value = avg(tag);
                assert!((value - expected).abs() < 1e-6 * expected, "{tag}: {value}");
            };
            // 20 tokens in 100 ms; 4 tokens in 200 ms, the first one having come with the start of
            // the decoding.
            close("active_prefill_throughput", 200.0);
            close("active_decode_throughput", 20.0);
            close("effective_prefill_throughput", 20.0 / 0.3);
            close("effective_decode_throughput", 4.0 / 0.3);
            close("effective_total_throughput", 24.0 / 0.3);
            close("effective_concurrency", 1.0);
            close("effective_decode_concurrency", 2.0 / 3.0);
        }
        // Gap by gap: 20 for 100 ms, then 21, 22, 23, 24 for 50 ms each. Without gaps: 25 for the
        // 200 ms.
        let in_flight = |by_gap| {
            let metrics = one(by_gap).metrics(0, 300 * ms);
            let metric = metrics
                .into_iter()
                .find(|metric| metric.tag == "tokens_in_flight");
            metric.unwrap().stats.avg.unwrap()
        };
        assert!((in_flight(true) - (20.0 * 2.0 + 21.0 + 22.0 + 23.0 + 24.0) / 6.0).abs() < 1e-6);
        assert!((in_flight(false) - (20.0 + 25.0 * 2.0) / 3.0).abs() < 1e-6);
    }
}
