//! Effect sizes with their errors.

use crate::student::{reach, two_sided};

/// Exponent beyond which a ratio overflows.
const LARGEST_LOGARITHM: f64 = 700.0;

/// Relative difference that rounding alone explains.
const ROUNDING: f64 = 1e-12;

/// Scale on which two values are compared. Estimate, interval and probability of a row use this one
/// scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ComparisonScale {
    /// Candidate ÷ baseline, by logarithms. For positive values whose changes and noise are
    /// proportional to them.
    Ratio,
    /// Candidate − baseline: for shares (their errors are not proportional, and they can be 0), and
    /// where a value is 0 or negative.
    Difference,
}

impl ComparisonScale {
    /// Returns the scale for these values.
    pub(crate) fn of(is_share: bool, mut values: impl Iterator<Item = f64>) -> ComparisonScale {
        if !is_share && values.all(|value| value > 0.0) {
            ComparisonScale::Ratio
        } else {
            ComparisonScale::Difference
        }
    }

    /// Returns the snake-case name used in files.
    pub fn name(self) -> &'static str {
        match self {
            ComparisonScale::Ratio => "ratio",
            ComparisonScale::Difference => "difference",
        }
    }

    /// Returns the step between two values; values that differ by rounding only are equal.
    pub(crate) fn step(self, from: f64, to: f64) -> f64 {
        if (to - from).abs() <= ROUNDING * from.abs().max(to.abs()) {
            return 0.0;
        }
        match self {
            ComparisonScale::Ratio => (to / from).ln(),
            ComparisonScale::Difference => to - from,
        }
    }

    /// Returns the value that represents the runs of a side: the geometric mean on the ratio scale,
    /// else the arithmetic mean.
    pub(crate) fn centre(self, values: &[f64]) -> f64 {
        let Some(first) = values.first() else {
            return f64::NAN;
        };
        let step = mean(&self.steps(values));
        match self {
            ComparisonScale::Ratio => first * step.exp(),
            ComparisonScale::Difference => first + step,
        }
    }

    /// Returns the steps from the first value to each one, so that equal values give exactly 0.
    fn steps(self, values: &[f64]) -> Vec<f64> {
        let first = values.first().copied().unwrap_or(f64::NAN);
        values.iter().map(|value| self.step(first, *value)).collect()
    }
}

/// Variation of a statistic between the runs of a side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunSpread {
    /// Number of runs that have it.
    pub runs: usize,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Standard deviation between runs (divided by runs - 1).
    pub std: f64,
}

/// Returns the spread between runs; `None` for a single one.
pub(crate) fn spread(values: &[f64]) -> Option<RunSpread> {
    let steps = ComparisonScale::Difference.steps(values);
    Some(RunSpread {
        runs: values.len(),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        std: variance(&steps)?.sqrt(),
    })
}

/// A variance with its degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Variance {
    pub(crate) variance: f64,
    /// Degrees of freedom.
    pub(crate) freedom: f64,
}

impl Variance {
    /// Returns the variance of the sum of two independent variables, with degrees of freedom by
    /// Satterthwaite (1946), which is Welch's formula (1947).
    pub(crate) fn with(self, other: Variance) -> Variance {
        let variance = self.variance + other.variance;
        let squares = self.variance.powi(2) / self.freedom + other.variance.powi(2) / other.freedom;
        Variance {
            variance,
            freedom: if squares > 0.0 {
                variance.powi(2) / squares
            } else {
                f64::INFINITY
            },
        }
    }
}

/// A difference with its error, on one scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Effect {
    pub(crate) scale: ComparisonScale,
    /// B − A, or the logarithm of B ÷ A.
    pub(crate) estimate: f64,
    /// Error of the estimate; `None` if unknown.
    pub(crate) error: Option<Variance>,
    /// Runs of the side with fewer of them, if the error is the noise between runs.
    pub(crate) fewest_runs: Option<usize>,
    /// Error of single runs if their requests were independent, if known.
    pub(crate) singly: Option<Variance>,
}

/// Sources of the error of one side's value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise<'a> {
    /// One value for each run.
    pub(crate) values: &'a [f64],
    /// Error of the side's value, estimated within its runs.
    pub(crate) within: Option<Variance>,
    pub(crate) floor: Floor,
    /// The same error if requests were independent, if known.
    pub(crate) singly: Option<Variance>,
}

/// Use of the error within runs as a lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Floor {
    /// Whenever it exceeds the noise between runs: for shares of requests, which carry no
    /// information beyond their counts.
    Always,
    /// Only where runs do not differ at all. Otherwise the differences between runs are more
    /// informative than the samples: properties that the runs of a side share, above all the same
    /// requests, affect the error within each run but no difference between runs.
    WhereRunsAgree,
}

impl Noise<'_> {
    /// Returns the error of the mean of several runs from their differences; `None` for a single
    /// run.
    fn between(&self, scale: ComparisonScale) -> Option<Variance> {
        let runs = self.values.len() as f64;
        variance(&scale.steps(self.values)).map(|variance| Variance {
            variance: variance / runs,
            freedom: runs - 1.0,
        })
    }

    /// Returns the error between runs, or the one within them where it is the floor.
    fn or_floor(&self, between: Variance) -> Variance {
        let is_floor = |within: &Variance| match self.floor {
            Floor::Always => within.variance > between.variance,
            Floor::WhereRunsAgree => between.variance == 0.0,
        };
        self.within.filter(is_floor).unwrap_or(between)
    }
}

/// Computes the effect of B against A; one value for each run.
///
/// With several runs per side, each run is one value, and the differences within a side are the
/// noise: Welch's test, which assumes neither equal variances nor anything about the samples within
/// a run. A side of one run is assumed to vary like the other one. No variance is below its
/// [`Floor`]. With one run on each side only the error within the runs is known: the sum of both,
/// or `paired` if their requests were compared one by one.
///
/// Rejected alternative: subtracting the variance that the bootstrap explains from the variance
/// between runs would give more degrees of freedom. But with 2 or 3 runs the remainder is often
/// almost 0 by chance, and equal sides would be called different far more often than the confidence
/// permits.
pub(crate) fn effect(
    a: &Noise<'_>,
    b: &Noise<'_>,
    scale: ComparisonScale,
    paired: Option<Variance>,
) -> Effect {
    let (Some(first_a), Some(first_b)) = (a.values.first(), b.values.first()) else {
        return Effect {
            scale,
            estimate: f64::NAN,
            error: None,
            fewest_runs: None,
            singly: None,
        };
    };
    let step = |of: &Noise<'_>| mean(&scale.steps(of.values));
    let estimate = scale.step(*first_a, *first_b) + step(b) - step(a);
    let (error, fewest_runs) = match (a.between(scale), b.between(scale)) {
        (Some(one), Some(other)) => (
            Some(a.or_floor(one).with(b.or_floor(other))),
            Some(a.values.len().min(b.values.len())),
        ),
        (Some(known), None) => (Some(against_one_run(a, known, b)), Some(1)),
        (None, Some(known)) => (Some(against_one_run(b, known, a)), Some(1)),
        (None, None) => {
            let independent = || Some(a.within?.with(b.within?));
            (paired.or_else(independent), None)
        }
    };
    Effect {
        scale,
        estimate,
        error,
        fewest_runs,
        singly: a
            .singly
            .zip(b.singly)
            .map(|(one, other)| one.with(other))
            .filter(|_| fewest_runs.is_none()),
    }
}

/// Returns the error of several runs against a single one, which is assumed to vary like one of
/// them.
fn against_one_run(several: &Noise<'_>, between: Variance, single: &Noise<'_>) -> Variance {
    let runs = several.values.len() as f64;
    let of_one = Variance {
        variance: between.variance * runs,
        ..between
    };
    let (of_mean, borrowed) = (several.or_floor(between), single.or_floor(of_one));
    if of_mean == between && borrowed == of_one {
        // One estimate, used twice.
        return Variance {
            variance: between.variance + of_one.variance,
            ..between
        };
    }
    of_mean.with(borrowed)
}

impl Effect {
    /// Returns the confidence interval on the scale: a difference, or a relative change (candidate
    /// ÷ baseline − 1).
    pub(crate) fn interval(&self, confidence: f64) -> Option<(f64, f64)> {
        let error = self.error?;
        let half = if error.variance > 0.0 {
            error.variance.sqrt() * reach(confidence, error.freedom)
        } else {
            0.0
        };
        let (low, high) = (self.estimate - half, self.estimate + half);
        Some(match self.scale {
            ComparisonScale::Difference => (low, high),
            ComparisonScale::Ratio => (low.exp_m1(), high.min(LARGEST_LOGARITHM).exp_m1()),
        })
    }

    /// Returns the probability of such an estimate without a difference.
    pub(crate) fn p(&self) -> Option<f64> {
        self.error.map(|error| self.p_with(error))
    }

    fn p_with(&self, error: Variance) -> f64 {
        if error.variance > 0.0 {
            two_sided(self.estimate / error.variance.sqrt(), error.freedom)
        } else {
            f64::from(self.estimate == 0.0)
        }
    }

    /// Returns true if only the number of runs prevents a verdict: with their noise known exactly,
    /// the difference would be significant.
    pub(crate) fn lacks_only_runs(&self, chance: f64) -> bool {
        let known = |error| {
            self.p_with(Variance {
                freedom: f64::INFINITY,
                ..error
            })
        };
        self.fewest_runs.is_some() && self.error.is_some_and(|error| known(error) <= chance)
    }

    /// Returns true if only the dependence of requests in time prevents a verdict: by the number of
    /// requests the difference would be significant.
    pub(crate) fn hangs_together(&self, chance: f64) -> bool {
        self.singly.is_some_and(|singly| self.p_with(singly) <= chance)
    }

    /// Returns the number of runs per side, at most 30, that would make a difference of this size
    /// and noise significant.
    pub(crate) fn runs_that_would_tell(&self, chance: f64) -> Option<usize> {
        let (error, runs) = (self.error?, self.fewest_runs?);
        (runs + 1..=30).find(|more| {
            let share = runs as f64 / *more as f64;
            // A side of one run takes its noise from the other one.
            let freedom = error.freedom.max(1.0) * (*more as f64 - 1.0) / (runs as f64 - 1.0).max(1.0);
            self.p_with(Variance {
                variance: error.variance * share,
                freedom,
            }) <= chance
        })
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the sample variance; `None` for fewer than two values.
fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| squares / (values.len() as f64 - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(values: &[f64], within: Option<Variance>, floor: Floor) -> Noise<'_> {
        Noise {
            values,
            within,
            floor,
            singly: None,
        }
    }

    /// Computes the effect with the variance known within both sides together.
    fn effect(a: &[f64], b: &[f64], scale: ComparisonScale, paired: Option<Variance>) -> Effect {
        let side = |values| runs(values, None, Floor::WhereRunsAgree);
        super::effect(&side(a), &side(b), scale, paired)
    }

    fn near(seen: f64, expected: f64) {
        assert!(
            (seen - expected).abs() <= 1e-3 * expected.abs(),
            "{seen} is not {expected}"
        );
    }

    #[test]
    fn one_run_each_by_hand() {
        // Variances 3 and 1 with 10 degrees each: 16 / (9/10 + 1/10) = 16 degrees, for which
        // Student's 97.5 % is 2.120 (tables). The standard error is 2.
        let of = |variance| Variance {
            variance,
            freedom: 10.0,
        };
        let within = of(3.0).with(of(1.0));
        near(within.freedom, 16.0);
        let seen = effect(&[100.0], &[110.0], ComparisonScale::Difference, Some(within));
        let (low, high) = seen.interval(0.95).unwrap();
        near(low, 10.0 - 4.240);
        near(high, 10.0 + 4.240);
        // Five standard errors at 16 degrees: 0.00013 (tables).
        let p = seen.p().unwrap();
        assert!(p > 0.0001 && p < 0.0002, "{p}");
    }

    /// Round logarithms: ln A = 1, 2, 3 (variance 1) and ln B = 4, 8 (variance 8). The errors of
    /// the means are 1/3 and 4, together 13/3, whose root is 2.0817. Welch: (13/3)² / ((1/3)²/2 +
    /// 4²/1) = 18.778 / 16.056 = 1.1696 degrees. The estimate is 6 - 2 = 4, which is 1.9215 errors.
    #[test]
    fn welch_by_hand() {
        let a = [1f64, 2.0, 3.0].map(f64::exp);
        let b = [4f64, 8.0].map(f64::exp);
        let seen = effect(&a, &b, ComparisonScale::Ratio, None);
        near(seen.estimate, 4.0);
        let error = seen.error.unwrap();
        near(error.variance, 13.0 / 3.0);
        near(error.freedom, 1.1696);
        assert_eq!(seen.fewest_runs, Some(2));
        near(ComparisonScale::Ratio.centre(&a), 2f64.exp());
        // At 1 degree the probability is 1 - 2/π atan(1.9215) = 0.306, at 2 degrees 1 - t/√(2 + t²)
        // = 0.195 (closed forms).
        let p = seen.p().unwrap();
        assert!(p > 0.195 && p < 0.306, "{p}");
        let (low, high) = seen.interval(0.95).unwrap();
        assert!(low < 0.0 && high > 1000.0);
    }

    /// Student's t test of 9, 10, 11 against a single 14: standard deviation 1, so the single run's
    /// is 1 too: √(1 + 1/3) with 2 degrees.
    #[test]
    fn single_run_is_assumed_to_vary_like_the_others() {
        for (a, b, sign) in [
            (&[9.0, 10.0, 11.0][..], &[14.0][..], 1.0),
            (&[14.0], &[9.0, 10.0, 11.0], -1.0),
        ] {
            let seen = effect(a, b, ComparisonScale::Difference, None);
            near(seen.estimate, sign * 4.0);
            assert_eq!(seen.error.map(|error| error.freedom), Some(2.0));
            near(seen.error.unwrap().variance, 4.0 / 3.0);
        }
        assert_eq!(spread(&[9.0, 10.0, 11.0]).map(|spread| spread.std), Some(1.0));
        assert_eq!(spread(&[9.0]), None);
    }

    /// 0 of 100 in each of three runs against 5, 5, 5: the runs of a side do not differ, so the
    /// error is the one within them. Its variances are 1 and 8 with 10 degrees each: 5 / 3 errors
    /// at 81 / (1/10 + 64/10) = 12.46 degrees.
    #[test]
    fn equal_runs_use_their_internal_errors() {
        let of = |variance| {
            Some(Variance {
                variance,
                freedom: 10.0,
            })
        };
        for floor in [Floor::Always, Floor::WhereRunsAgree] {
            let (a, b) = (runs(&[0.0; 3], of(1.0), floor), runs(&[5.0; 3], of(8.0), floor));
            let seen = super::effect(&a, &b, ComparisonScale::Difference, None);
            near(seen.error.unwrap().variance, 9.0);
            near(seen.error.unwrap().freedom, 12.4615);
            // One run of B: the error is again that within B, because that of A is 0.
            let b = runs(&[5.0], of(8.0), floor);
            let seen = super::effect(&a, &b, ComparisonScale::Difference, None);
            near(seen.error.unwrap().variance, 9.0);
        }
        // -1, 0, 1: the variance of the mean is 1/3, which is less than 1. The floor applies to
        // shares only.
        let seen = |floor| {
            let (a, b) = (
                runs(&[-1.0, 0.0, 1.0], of(1.0), floor),
                runs(&[5.0; 3], of(8.0), floor),
            );
            let seen = super::effect(&a, &b, ComparisonScale::Difference, None);
            seen.error.unwrap().variance
        };
        near(seen(Floor::Always), 9.0);
        near(seen(Floor::WhereRunsAgree), 8.0 + 1.0 / 3.0);
    }

    #[test]
    fn swapping_the_sides_mirrors_everything() {
        for scale in [ComparisonScale::Ratio, ComparisonScale::Difference] {
            let (a, b) = ([3.0, 4.0], [5.0, 7.0, 6.5]);
            let (there, back) = (effect(&a, &b, scale, None), effect(&b, &a, scale, None));
            near(there.estimate, -back.estimate);
            near(there.p().unwrap(), back.p().unwrap());
        }
    }

    #[test]
    fn constant_values_differ_or_are_equal() {
        let none = Variance {
            variance: 0.0,
            freedom: 100.0,
        };
        let seen = |a: f64, b: f64, scale| effect(&[a], &[b], scale, Some(none));
        assert_eq!(seen(0.1, 0.1, ComparisonScale::Ratio).p(), Some(1.0));
        let differs = seen(2.0, 3.0, ComparisonScale::Difference);
        assert_eq!(
            (differs.p(), differs.interval(0.95)),
            (Some(0.0), Some((1.0, 1.0)))
        );
        // A difference from rounding counts as 0, however small the error.
        assert_eq!(
            seen(0.663, 0.663_000_000_000_000_1, ComparisonScale::Difference).p(),
            Some(1.0)
        );
        assert_eq!(
            spread(&[0.663, 0.663_000_000_000_000_1]).map(|spread| spread.std),
            Some(0.0)
        );
        let equal = effect(&[0.1; 3], &[0.1], ComparisonScale::Ratio, None);
        assert_eq!((equal.estimate, equal.p()), (0.0, Some(1.0)));
    }

    #[test]
    fn shares_and_values_that_may_be_zero_are_subtracted() {
        let of = |is_share, values: &[f64]| ComparisonScale::of(is_share, values.iter().copied());
        assert_eq!(of(false, &[0.1, 0.2]), ComparisonScale::Ratio);
        assert_eq!(of(false, &[0.0, 0.2]), ComparisonScale::Difference);
        assert_eq!(of(false, &[-1.0]), ComparisonScale::Difference);
        assert_eq!(of(true, &[0.1, 0.2]), ComparisonScale::Difference);
    }

    /// Four standard errors with one degree are p = 1 - 2/π atan 4 = 0.156, and by the normal
    /// distribution 0.00006.
    #[test]
    fn estimates_the_number_of_runs_needed() {
        let error = Variance {
            variance: 1.0,
            freedom: 1.0,
        };
        let seen = Effect {
            scale: ComparisonScale::Ratio,
            estimate: 4.0,
            error: Some(error),
            fewest_runs: Some(2),
            singly: None,
        };
        near(seen.p().unwrap(), 0.15596);
        assert!(seen.lacks_only_runs(0.05));
        // Three runs per side: 4 √(3/2) = 4.90 errors with 2 degrees, p = 1 - t/√(2 + t²) = 0.0392.
        assert_eq!(seen.runs_that_would_tell(0.05), Some(3));
        assert_eq!(seen.runs_that_would_tell(0.039), Some(4));
        let weak = Effect {
            estimate: 1.5,
            ..seen
        };
        assert!(!weak.lacks_only_runs(0.05));
    }
}
