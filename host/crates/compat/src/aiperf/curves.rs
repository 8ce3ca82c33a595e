//! The time-weighted "effective" and "active" metrics: `aiperf/analysis/sweepline*.py` and
//! `aiperf/metrics/accumulator_sweeps.py`.

use veeksha_model::Nanos;
use veeksha_stats::StepCurve;

use super::catalogue::Group;
use super::facts::Facts;
use super::results::{Metric, Stats};
use crate::sample::GapPool;

/// Above this number of gaps the tokens of a request are spread evenly over its decoding, as AIPerf
/// does where its list backend keeps no single gaps: exact curves need some hundred bytes per gap.
const MOST_GAPS: usize = 2_000_000;

/// Curves of all requests; rates in tokens per nanosecond.
#[derive(Debug, Default)]
pub(super) struct Curves {
    concurrency: StepCurve,
    decoding: StepCurve,
    prefilling: StepCurve,
    decode: StepCurve,
    prefill: StepCurve,
    total: StepCurve,
    in_flight: StepCurve,
}

impl Curves {
    pub(super) fn of(all: &[Facts], gaps: &GapPool) -> Curves {
        let mut curves = Curves::default();
        let by_gap = gaps.len() > 0 && gaps.len() <= MOST_GAPS;
        for facts in all {
            curves.add(facts, by_gap.then_some(gaps));
        }
        curves
    }

    fn add(&mut self, facts: &Facts, gaps: Option<&GapPool>) {
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
    pub(super) fn metrics(&self, from: Nanos, to: Nanos) -> Vec<Metric> {
        if self.concurrency.steps().is_empty() {
            return Vec::new();
        }
        let plain = |curve: &StepCurve| Weighted::of(curve.pieces(from, to));
        let over = |rate: &StepCurve, users: &StepCurve| {
            let pieces = pairs(rate, users, from, to);
            let each = |(length, rate, users): (u64, f64, f64)| {
                (length, if users > 0.0 { rate / users } else { 0.0 })
            };
            Weighted::of(pieces.into_iter().map(each))
        };
        let active = |rate: &StepCurve, mask: &StepCurve, per_user: bool| {
            let pieces = pairs(rate, mask, from, to);
            let while_active = pieces.into_iter().filter(|piece| piece.2 > 0.0);
            let each =
                |(length, rate, users): (u64, f64, f64)| (length, if per_user { rate / users } else { rate });
            Weighted::of(while_active.map(each))
        };
        let (tokens, user) = ("tokens/sec", "tokens/sec/user");
        let (effective, whole) = (Group::Effective, 1.0);
        let second = 1e9;
        let rows = [
            (
                "effective_concurrency",
                "Effective Concurrency",
                "requests",
                whole,
                plain(&self.concurrency),
                effective,
            ),
            (
                "effective_decode_throughput",
                "Effective Decode Throughput",
                tokens,
                second,
                plain(&self.decode),
                effective,
            ),
            (
                "effective_prefill_throughput",
                "Effective Prefill Throughput",
                tokens,
                second,
                plain(&self.prefill),
                effective,
            ),
            (
                "effective_decode_concurrency",
                "Effective Decode Concurrency",
                "requests",
                whole,
                plain(&self.decoding),
                effective,
            ),
            (
                "effective_prefill_concurrency",
                "Effective Prefill Concurrency",
                "requests",
                whole,
                plain(&self.prefilling),
                effective,
            ),
            (
                "effective_total_throughput",
                "Effective Total Throughput",
                tokens,
                second,
                plain(&self.total),
                effective,
            ),
            (
                "effective_decode_throughput_per_user",
                "Effective Decode Throughput Per User",
                user,
                second,
                over(&self.decode, &self.decoding),
                effective,
            ),
            (
                "effective_prefill_throughput_per_user",
                "Effective Prefill Throughput Per User",
                user,
                second,
                over(&self.prefill, &self.prefilling),
                effective,
            ),
            (
                "tokens_in_flight",
                "Tokens In Flight",
                "tokens",
                whole,
                plain(&self.in_flight),
                effective,
            ),
            (
                "active_decode_throughput",
                "Active Decode Throughput",
                tokens,
                second,
                active(&self.decode, &self.decoding, false),
                Group::Active,
            ),
            (
                "active_prefill_throughput",
                "Active Prefill Throughput",
                tokens,
                second,
                active(&self.prefill, &self.prefilling, false),
                Group::Active,
            ),
            (
                "active_decode_throughput_per_user",
                "Active Decode Throughput Per User",
                user,
                second,
                active(&self.decode, &self.decoding, true),
                Group::Active,
            ),
            (
                "active_prefill_throughput_per_user",
                "Active Prefill Throughput Per User",
                user,
                second,
                active(&self.prefill, &self.prefilling, true),
                Group::Active,
            ),
            (
                "active_total_throughput",
                "Active Total Throughput",
                tokens,
                second,
                active(&self.total, &self.concurrency, false),
                Group::Active,
            ),
        ];
        rows.into_iter()
            .map(|(tag, header, unit, scale, weighted, group)| Metric {
                tag: tag.to_owned(),
                header: header.to_owned(),
                unit,
                stats: weighted.stats(scale),
                group,
                order: u32::MAX,
            })
            .collect()
    }
}

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
struct Weighted(Vec<(f64, f64)>);

impl Weighted {
    fn of(pieces: impl Iterator<Item = (u64, f64)>) -> Weighted {
        let mut pieces: Vec<(f64, f64)> = pieces
            .filter(|piece| piece.0 > 0)
            .map(|(length, value)| (value, length as f64))
            .collect();
        pieces.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        Weighted(pieces)
    }

    /// Returns the statistics; all are 0 without duration, as in AIPerf.
    fn stats(&self, scale: f64) -> Stats {
        let time: f64 = self.0.iter().map(|piece| piece.1).sum();
        let (Some(least), Some(most)) = (self.0.first(), self.0.last()) else {
            let zero = Some(0.0);
            return Stats::curve(zero, [zero; 2], [zero; 4], zero);
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
        Stats::curve(
            scaled(mean),
            [scaled(least.0), scaled(most.0)],
            [0.5, 0.9, 0.95, 0.99].map(percentile),
            scaled(std),
        )
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
        let stats = Weighted::of([(6, 1.0), (1, 9.0), (3, 5.0)].into_iter()).stats(1.0);
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
    fn one(by_gap: bool) -> Curves {
        let request = Request {
            prompt: 20,
            ..Request::default()
        };
        let request = request
            .content(&[100.0, 150.0, 200.0, 250.0, 300.0])
            .output(5, true);
        let mut gaps = GapPool::default();
        let facts = Facts::of(&record(&request), &mut gaps);
        let mut curves = Curves::default();
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
