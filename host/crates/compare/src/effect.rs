//! Two sides against one another.

use crate::bootstrap::Estimate;
use crate::paired::Within;
use crate::student::{reach, two_sided};

/// How a statistic varies from run to run of one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Runs that have it.
    pub runs: usize,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// Standard deviation between runs (divided by runs - 1).
    pub std: f64,
}

/// A difference with what is known of its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Effect {
    pub(crate) difference: f64,
    pub(crate) interval: (f64, f64),
    /// B ÷ A - 1, where both are positive.
    pub(crate) relative: Option<f64>,
    pub(crate) relative_interval: Option<(f64, f64)>,
    /// How probable such a difference is where there is none.
    pub(crate) p: f64,
}

/// A part of a variance.
#[derive(Clone, Copy, Debug)]
struct Part {
    variance: f64,
    freedom: f64,
}

/// One side: the mean over its runs.
#[derive(Debug)]
struct Side<'a> {
    runs: &'a [Estimate],
    mean: f64,
    /// Variance between runs beyond what chance within them explains, with its degrees of freedom, if there are several runs.
    between: Option<Part>,
}

impl<'a> Side<'a> {
    /// `apart`: what runs vary by within themselves without having it in common, if they have something in common.
    fn new(runs: &'a [Estimate], apart: Option<f64>) -> Self {
        let count = runs.len() as f64;
        let mean = runs.iter().map(|run| run.value).sum::<f64>() / count;
        let between = (runs.len() > 1).then(|| {
            let squares: f64 = runs.iter().map(|run| (run.value - mean).powi(2)).sum();
            let independent = runs.iter().map(|run| run.variance).sum::<f64>() / count;
            let within = apart.unwrap_or(independent);
            Part {
                variance: (squares / (count - 1.0) - within).max(0.0),
                freedom: count - 1.0,
            }
        });
        Side { runs, mean, between }
    }

    fn within(&self) -> impl Iterator<Item = Part> {
        let squared = (self.runs.len() as f64).powi(2);
        self.runs.iter().map(move |run| Part {
            variance: run.variance / squared,
            freedom: run.freedom,
        })
    }
}

/// The spread between runs; `None` for a single one.
pub(crate) fn spread(runs: &[Estimate]) -> Option<Spread> {
    if runs.len() < 2 {
        return None;
    }
    let values = || runs.iter().map(|run| run.value);
    let mean = values().sum::<f64>() / runs.len() as f64;
    let squares: f64 = values().map(|value| (value - mean).powi(2)).sum();
    Some(Spread {
        runs: runs.len(),
        min: values().fold(f64::INFINITY, f64::min),
        max: values().fold(f64::NEG_INFINITY, f64::max),
        std: (squares / (runs.len() as f64 - 1.0)).sqrt(),
    })
}

/// B less A, each the mean over its runs.
///
/// The variance has a part within each run (the bootstrap's) and, where a side has several runs, a part between runs: what the runs' values vary
/// beyond what the first part explains (Davison and Hinkley, "Bootstrap Methods and their Application", 1997, §3.8: resampling both levels as
/// they are would count the first part twice). A side of one run borrows the second part from the other side. Degrees of freedom by
/// Satterthwaite (1946). The interval is Student's, by the bootstrap's standard error; that of the ratio is computed from the
/// logarithms, whose errors are to first order the relative ones, so that A against B is the mirror of B against A.
///
/// `paired`: the first part where both sides' requests are the same, so that what they have in common is not counted.
pub(crate) fn effect(a: &[Estimate], b: &[Estimate], paired: Option<&Within>, confidence: f64) -> Effect {
    let a = Side::new(a, paired.map(|within| within.apart_in_a));
    let b = Side::new(b, paired.map(|within| within.apart_in_b));
    let part = |variance: fn(&Within) -> f64| {
        paired.map(|within| Part {
            variance: variance(within),
            freedom: within.freedom,
        })
    };
    let difference = b.mean - a.mean;
    let (variance, freedom) = error(&a, &b, part(|within| within.difference), 1.0, 1.0);
    let half = half_width(variance, freedom, confidence);
    let p = if variance > 0.0 {
        two_sided(difference / variance.sqrt(), freedom)
    } else {
        f64::from(difference == 0.0)
    };
    let ratio = (a.mean > 0.0 && b.mean > 0.0).then(|| b.mean / a.mean);
    let relative_interval = ratio.map(|ratio| {
        let (variance, freedom) = error(
            &a,
            &b,
            part(|within| within.relative),
            a.mean.powi(-2),
            b.mean.powi(-2),
        );
        let factor = half_width(variance, freedom, confidence).exp();
        (ratio / factor - 1.0, ratio * factor - 1.0)
    });
    Effect {
        difference,
        interval: (difference - half, difference + half),
        relative: ratio.map(|ratio| ratio - 1.0),
        relative_interval: relative_interval.filter(|(_, high)| high.is_finite()),
        p,
    }
}

fn half_width(variance: f64, freedom: f64, confidence: f64) -> f64 {
    if variance > 0.0 {
        variance.sqrt() * reach(confidence, freedom)
    } else {
        0.0
    }
}

/// The variance of the difference and its degrees of freedom, each side's parts times a factor. `paired` is in the place of the parts within
/// runs.
fn error(a: &Side<'_>, b: &Side<'_>, paired: Option<Part>, of_a: f64, of_b: f64) -> (f64, f64) {
    let scaled = |part: Part, factor: f64| Part {
        variance: part.variance * factor,
        freedom: part.freedom,
    };
    let mut parts: Vec<Part> = match paired {
        Some(part) => vec![part],
        None => {
            let of_both = a.within().map(|part| scaled(part, of_a));
            of_both.chain(b.within().map(|part| scaled(part, of_b))).collect()
        }
    };
    let (in_a, in_b) = (of_a / a.runs.len() as f64, of_b / b.runs.len() as f64);
    match (a.between, b.between) {
        (None, None) => {}
        (Some(one), None) | (None, Some(one)) => parts.push(scaled(one, in_a + in_b)),
        (Some(first), Some(second)) => parts.extend([scaled(first, in_a), scaled(second, in_b)]),
    }
    let variance: f64 = parts.iter().map(|part| part.variance).sum();
    let squares: f64 = parts
        .iter()
        .map(|part| part.variance.powi(2) / part.freedom)
        .sum();
    (variance, variance.powi(2) / squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(value: f64, variance: f64, freedom: f64) -> Estimate {
        Estimate {
            value,
            variance,
            freedom,
        }
    }

    fn near(seen: f64, expected: f64) {
        assert!(
            (seen - expected).abs() <= 1e-3 * expected.abs(),
            "{seen} is not {expected}"
        );
    }

    #[test]
    fn one_run_each_by_hand() {
        // Variances 3 and 1 with 10 degrees each: 16 / (9/10 + 1/10) = 16 degrees, for which Student's 97.5 % is 2.120 (tables). The standard
        // error is 2.
        let effect = effect(&[run(100.0, 3.0, 10.0)], &[run(110.0, 1.0, 10.0)], None, 0.95);
        assert_eq!(effect.difference, 10.0);
        near(effect.interval.0, 10.0 - 4.240);
        near(effect.interval.1, 10.0 + 4.240);
        near(effect.relative.unwrap(), 0.1);
        // Five standard errors at 16 degrees: 0.00013 (tables).
        assert!(effect.p > 0.0001 && effect.p < 0.0002, "{}", effect.p);
    }

    #[test]
    fn the_spread_between_runs_widens_the_interval() {
        // Runs 9, 10, 11: variance 1 between runs, of which 0.25 is explained within; the single run of B borrows 0.75.
        let a = [run(9.0, 0.25, 1e9), run(10.0, 0.25, 1e9), run(11.0, 0.25, 1e9)];
        let b = [run(12.0, 0.25, 1e9)];
        let effect = effect(&a, &b, None, 0.95);
        let between: f64 = 0.75 * (1.0 / 3.0 + 1.0);
        let variance = between + 0.25 / 3.0 + 0.25;
        let freedom = variance.powi(2) / (between.powi(2) / 2.0);
        near(
            effect.interval.1 - effect.interval.0,
            2.0 * variance.sqrt() * reach(0.95, freedom),
        );
        assert_eq!(spread(&a).unwrap().std, 1.0);
        assert_eq!(spread(&b), None);
    }

    #[test]
    fn runs_that_agree_add_nothing() {
        let a = [run(10.0, 1.0, 50.0), run(10.0, 1.0, 50.0)];
        let b = [run(10.0, 1.0, 50.0), run(10.0, 1.0, 50.0)];
        let effect = effect(&a, &b, None, 0.95);
        // Four parts of 1/4 each: variance 1, 200 degrees.
        near(effect.interval.1, reach(0.95, 200.0));
        assert_eq!(effect.p, 1.0);
    }

    #[test]
    fn swapping_the_sides_mirrors_everything() {
        let (a, b) = ([run(3.0, 0.2, 9.0), run(4.0, 0.3, 9.0)], [run(5.0, 0.5, 20.0)]);
        let (there, back) = (effect(&a, &b, None, 0.95), effect(&b, &a, None, 0.95));
        assert_eq!(there.difference, -back.difference);
        assert_eq!(there.interval, (-back.interval.1, -back.interval.0));
        assert_eq!(there.p, back.p);
        let (low, high) = there.relative_interval.unwrap();
        let mirrored = back.relative_interval.unwrap();
        assert!((1.0 / (1.0 + high) - (1.0 + mirrored.0)).abs() < 1e-12);
        assert!((1.0 / (1.0 + low) - (1.0 + mirrored.1)).abs() < 1e-12);
    }

    #[test]
    fn what_does_not_vary_differs_or_does_not() {
        let constant = |value| [run(value, 0.0, 100.0)];
        assert_eq!(effect(&constant(2.0), &constant(2.0), None, 0.95).p, 1.0);
        let differs = effect(&constant(2.0), &constant(3.0), None, 0.95);
        assert_eq!((differs.p, differs.interval), (0.0, (1.0, 1.0)));
        assert_eq!(effect(&constant(-1.0), &constant(3.0), None, 0.95).relative, None);
    }
}
