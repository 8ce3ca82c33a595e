//! Curves over time that change in steps: how many requests were in flight, how many tokens came
//! per second.

use std::sync::OnceLock;

/// The sum of weighted intervals at every instant, by an exact sweep line. An interval counts from
/// its beginning on, and no longer at its end: `[from, to)`. Instants are nanoseconds. Where no
/// interval lies the value is 0.
///
/// It holds 32 bytes for an interval until the first question is asked, and 16 bytes for each
/// instant at which the value changes from then on. Adding after a question is allowed; the next
/// question sorts again.
#[derive(Clone, Debug, Default)]
pub struct StepCurve {
    begins: Vec<(u64, f64)>,
    ends: Vec<(u64, f64)>,
    /// Cache of `points`.
    points: OnceLock<Vec<(u64, f64)>>,
}

/// The time over which a statistic of a curve is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// All of it.
    All,
    /// Only where the value is above 0.
    Active,
}

/// Time-weighted summary of a curve, in the curve's unit. A percentile is the smallest value that
/// the curve did not exceed for that share of the time: time is continuous, so there is no
/// interpolation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveSummary {
    /// The time it rests on, in nanoseconds; never 0.
    pub nanos: u64,
    /// Time-weighted mean.
    pub mean: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

impl StepCurve {
    /// A curve that is 0 everywhere.
    pub fn new() -> Self {
        StepCurve::default()
    }

    /// Adds `weight` from `from` on until `to`. An interval without length, and a weight that is
    /// not finite, change nothing.
    pub fn add(&mut self, from: u64, to: u64, weight: f64) {
        if from < to && weight.is_finite() && weight != 0.0 {
            self.begins.push((from, weight));
            self.ends.push((to, weight));
            self.points.take();
        }
    }

    /// Prepares for questions, in place. Without it the first question makes a copy of all
    /// intervals for a while; where there are many, that is worth avoiding.
    pub fn settle(&mut self) {
        sort(&mut self.begins);
        sort(&mut self.ends);
        let points = sweep(&self.begins, &self.ends);
        self.points = OnceLock::from(points);
    }

    /// The instants at which the value changes, ascending, each with the value from that instant
    /// on. The last value is 0.
    pub fn points(&self) -> Vec<(u64, f64)> {
        self.steps().to_vec()
    }

    /// As [`StepCurve::points`], without a copy.
    pub fn steps(&self) -> &[(u64, f64)] {
        self.points.get_or_init(|| {
            let (mut begins, mut ends) = (self.begins.clone(), self.ends.clone());
            sort(&mut begins);
            sort(&mut ends);
            sweep(&begins, &ends)
        })
    }

    /// The value at an instant.
    pub fn value_at(&self, at: u64) -> f64 {
        let steps = self.steps();
        let after = steps.partition_point(|(instant, _)| *instant <= at);
        after.checked_sub(1).map_or(0.0, |before| steps[before].1)
    }

    /// The time-weighted mean within `[from, to)`; `None` if that is empty.
    pub fn mean(&self, from: u64, to: u64) -> Option<f64> {
        self.mean_over(from, to, Over::All)
    }

    /// As [`StepCurve::mean`], of the time where the value is above 0 only; `None` if there is
    /// none.
    pub fn mean_active(&self, from: u64, to: u64) -> Option<f64> {
        self.mean_over(from, to, Over::Active)
    }

    /// The smallest value that the curve did not exceed for a share `p` (`0.0..=1.0`) of the time
    /// within `[from, to)`; `None` for an empty stretch and for a `p` outside of the range.
    pub fn percentile(&self, p: f64, from: u64, to: u64) -> Option<f64> {
        Durations::of(self, from, to, Over::All).percentile(p)
    }

    /// As [`StepCurve::percentile`], of the time where the value is above 0 only.
    pub fn percentile_active(&self, p: f64, from: u64, to: u64) -> Option<f64> {
        Durations::of(self, from, to, Over::Active).percentile(p)
    }

    /// The largest value within `[from, to)`; `None` if that is empty.
    pub fn max(&self, from: u64, to: u64) -> Option<f64> {
        self.pieces(from, to).map(|(_, value)| value).reduce(f64::max)
    }

    /// Returns all statistics at once.
    pub fn summary(&self, from: u64, to: u64, over: Over) -> Option<CurveSummary> {
        let durations = Durations::of(self, from, to, over);
        Some(CurveSummary {
            nanos: durations.total,
            mean: self.mean_over(from, to, over)?,
            min: durations.percentile(0.0)?,
            max: durations.percentile(1.0)?,
            p50: durations.percentile(0.5)?,
            p90: durations.percentile(0.9)?,
            p95: durations.percentile(0.95)?,
            p99: durations.percentile(0.99)?,
        })
    }

    /// The curve within `[from, to)` as constant pieces: how long, and the value.
    pub fn pieces(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, f64)> + '_ {
        let steps = self.steps();
        let first = steps.partition_point(|(at, _)| *at <= from);
        let inside = steps[first..].iter().take_while(move |(at, _)| *at < to);
        let ends = inside.clone().map(|(at, _)| *at).chain((from < to).then_some(to));
        let values = std::iter::once(self.value_at(from)).chain(inside.map(|(_, value)| *value));
        let mut before = from;
        ends.zip(values).map(move |(end, value)| {
            let length = end - before;
            before = end;
            (length, value)
        })
    }

    fn mean_over(&self, from: u64, to: u64, over: Over) -> Option<f64> {
        let (mut nanos, mut area) = (0u64, Sum::default());
        for (length, value) in self.pieces(from, to) {
            if over == Over::All || value > 0.0 {
                nanos += length;
                area.add(length as f64 * value);
            }
        }
        (nanos > 0).then(|| area.value() / nanos as f64)
    }
}

/// Equal instants are ordered by weight, so that the order in which intervals were added changes no
/// sum.
fn sort(edges: &mut [(u64, f64)]) {
    edges.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
}

/// Merges beginnings and ends in the order of time. At one instant, ends and beginnings cancel out
/// before the value is emitted.
fn sweep(begins: &[(u64, f64)], ends: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let (mut begin, mut end) = (0, 0);
    let mut points: Vec<(u64, f64)> = Vec::new();
    let mut sum = Sum::default();
    while end < ends.len() {
        let at = begins
            .get(begin)
            .map_or(ends[end].0, |next| next.0.min(ends[end].0));
        while ends.get(end).is_some_and(|next| next.0 == at) {
            sum.add(-ends[end].1);
            end += 1;
        }
        while begins.get(begin).is_some_and(|next| next.0 == at) {
            sum.add(begins[begin].1);
            begin += 1;
        }
        if begin == end {
            // Nothing is open: drop the rounding residue.
            sum = Sum::default();
        }
        let value = sum.value();
        if points.last().map_or(0.0, |point| point.1) != value {
            points.push((at, value));
        }
    }
    points
}

/// A sum with the rounding errors carried along (Neumaier's form of Kahan's summation): weights
/// that come and go leave no residue worth speaking of.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, term: f64) {
        let sum = self.sum + term;
        self.lost += if self.sum.abs() >= term.abs() {
            (self.sum - sum) + term
        } else {
            (term - sum) + self.sum
        };
        self.sum = sum;
    }

    fn value(self) -> f64 {
        self.sum + self.lost
    }
}

/// Time spent at each value, by ascending value.
struct Durations {
    pieces: Vec<(f64, u64)>,
    total: u64,
}

impl Durations {
    fn of(curve: &StepCurve, from: u64, to: u64, over: Over) -> Self {
        let mut pieces: Vec<(f64, u64)> = curve
            .pieces(from, to)
            .filter(|(length, value)| *length > 0 && (over == Over::All || *value > 0.0))
            .map(|(length, value)| (value, length))
            .collect();
        pieces.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let total = pieces.iter().map(|(_, length)| length).sum();
        Durations { pieces, total }
    }

    fn percentile(&self, p: f64) -> Option<f64> {
        if !(0.0..=1.0).contains(&p) {
            return None;
        }
        let wanted = p * self.total as f64;
        let mut passed = 0u64;
        let reached = self.pieces.iter().find(|(_, length)| {
            passed += length;
            passed as f64 >= wanted
        });
        reached.or(self.pieces.last()).map(|(value, _)| *value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Two requests: 10 to 40 and 20 to 30.
    fn two() -> StepCurve {
        let mut curve = StepCurve::new();
        curve.add(10, 40, 1.0);
        curve.add(20, 30, 1.0);
        curve
    }

    #[test]
    fn curve_changes_at_interval_bounds() {
        assert_eq!(two().points(), [(10, 1.0), (20, 2.0), (30, 1.0), (40, 0.0)]);
        assert_eq!(
            [9, 10, 20, 29, 39, 40].map(|at| two().value_at(at)),
            [0.0, 1.0, 2.0, 2.0, 1.0, 0.0]
        );
        assert_eq!(StepCurve::new().points(), []);
    }

    #[test]
    fn adjacent_intervals_do_not_change_the_value() {
        let mut curve = StepCurve::new();
        curve.add(0, 10, 1.0);
        curve.add(10, 20, 1.0);
        assert_eq!(curve.points(), [(0, 1.0), (20, 0.0)]);
    }

    #[test]
    fn matches_values_computed_by_hand() {
        let curve = two();
        // 0..50: 20 of 0, 20 of 1, 10 of 2. Mean (20 + 20) / 50.
        assert_eq!(curve.mean(0, 50), Some(0.8));
        assert_eq!(curve.mean_active(0, 50), Some(40.0 / 30.0));
        assert_eq!(curve.max(0, 50), Some(2.0));
        assert_eq!(curve.max(0, 20), Some(1.0));
        // 40 % of the time it is 0, 80 % at most 1.
        let of = |p| curve.percentile(p, 0, 50);
        assert_eq!(
            [of(0.0), of(0.4), of(0.41), of(0.8), of(0.81), of(1.0)],
            [0.0, 0.0, 1.0, 1.0, 2.0, 2.0].map(Some)
        );
        // Of the 30 that it is above 0, two thirds are 1.
        assert_eq!(curve.percentile_active(0.6, 0, 50), Some(1.0));
        assert_eq!(curve.percentile_active(0.7, 0, 50), Some(2.0));
        // A stretch that cuts pieces: 25..35 is 5 of 2 and 5 of 1.
        assert_eq!(curve.mean(25, 35), Some(1.5));
        let summary = curve.summary(0, 50, Over::Active).unwrap();
        assert_eq!(
            (summary.nanos, summary.min, summary.max, summary.p90),
            (30, 1.0, 2.0, 2.0)
        );
    }

    #[test]
    fn nothing_comes_from_nothing() {
        let curve = two();
        assert_eq!(
            (curve.mean(5, 5), curve.max(5, 5), curve.percentile(0.5, 5, 5)),
            (None, None, None)
        );
        assert_eq!((curve.mean_active(50, 60), curve.mean(50, 60)), (None, Some(0.0)));
        assert_eq!(curve.percentile(1.5, 0, 50), None);
        let mut odd = StepCurve::new();
        odd.add(7, 7, 1.0);
        odd.add(9, 8, 1.0);
        odd.add(0, 9, f64::NAN);
        assert_eq!(odd.points(), []);
    }

    #[test]
    fn removed_weights_leave_no_residue() {
        let mut curve = StepCurve::new();
        curve.add(0, 30, 0.1);
        curve.add(10, 20, 0.2);
        curve.add(40, 50, 0.3);
        let points = curve.points();
        assert_eq!((points[3], points[5]), ((30, 0.0), (50, 0.0)));
        assert_eq!(points[2], (20, 0.1));
    }

    proptest! {
        /// Against the sum over all intervals at each instant.
        #[test]
        fn sweep_equals_sum_of_intervals(intervals in prop::collection::vec((0u64..40, 0u64..40, 1u32..4), 0..20)) {
            let mut curve = StepCurve::new();
            for (from, to, weight) in &intervals {
                curve.add(*from, *to, f64::from(*weight));
            }
            let value = |at: u64| -> f64 {
                intervals
                    .iter()
                    .filter(|(from, to, _)| (*from..*to).contains(&at))
                    .map(|(_, _, weight)| f64::from(*weight))
                    .sum()
            };
            let naive: Vec<f64> = (0..45).map(value).collect();
            for (at, expected) in naive.iter().enumerate() {
                prop_assert_eq!(curve.value_at(at as u64), *expected);
            }
            let mean = naive.iter().sum::<f64>() / 45.0;
            prop_assert!((curve.mean(0, 45).unwrap() - mean).abs() < 1e-12);
            prop_assert_eq!(curve.max(0, 45), naive.iter().copied().reduce(f64::max));
            // The smallest value that at least half of the instants do not exceed.
            let mut sorted = naive.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            prop_assert_eq!(curve.percentile(0.5, 0, 45), Some(sorted[22]));
        }

        #[test]
        fn curve_does_not_depend_on_insertion_order(
            (intervals, shuffled) in prop::collection::vec((0u64..40, 0u64..40, 0.0..3.0f64), 0..20)
                .prop_flat_map(|intervals| (Just(intervals.clone()), Just(intervals).prop_shuffle()))
        ) {
            let curve = |intervals: Vec<(u64, u64, f64)>| {
                let mut curve = StepCurve::new();
                intervals.into_iter().for_each(|(from, to, weight)| curve.add(from, to, weight));
                let points = curve.points();
                curve.settle();
                assert_eq!(curve.points(), points);
                points
            };
            prop_assert_eq!(curve(intervals), curve(shuffled));
        }
    }
}
