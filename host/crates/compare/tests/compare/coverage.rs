//! Error rates of verdicts: real differences are detected, and equal sides are not called
//! different.

use veeksha_compare::{CompareOptions, Comparison, ComparisonRow, DifferenceVerdict, Statistic, compare};
use veeksha_slo::Aggregate;

use crate::synthetic::{autoregressive, draws, side};

fn options() -> CompareOptions {
    CompareOptions {
        resamples: 100,
        ..CompareOptions::default()
    }
}

fn row(comparison: &Comparison, aggregate: Aggregate) -> &ComparisonRow {
    let wanted = Statistic::OfSamples(aggregate);
    let rows = &comparison.candidates[0].rows;
    let place = rows.iter().position(|row| row.statistic == wanted);
    &rows[place.unwrap_or(rows.len())]
}

/// Returns latencies with a long tail and correlated neighbors: the exponential of an AR(1)
/// process.
fn latencies(count: usize, scale: f64, purpose: &str, number: u64) -> Vec<f64> {
    let values = autoregressive(0.5, count, &mut draws(purpose, number));
    values
        .into_iter()
        .map(|value| scale * (0.25 * value).exp())
        .collect()
}

/// The same server twice: none of 4 rows is called better or worse in at least 95 % of the cases
/// (Holm). For 150 binomial cases with 0.95: at least 93 % minus two standard errors of 1.8 %.
#[test]
fn equal_runs_show_no_difference() {
    let seeds = 150;
    let quiet = (0..seeds)
        .filter(|seed| {
            let a = side("A", latencies(600, 1.0, "the same A", *seed));
            let b = side("B", latencies(600, 1.0, "the same B", *seed));
            let comparison = compare(&[a, b], &[], &options()).unwrap();
            comparison.candidates[0]
                .rows
                .iter()
                .all(|row| row.verdict == DifferenceVerdict::NoDifference)
        })
        .count();
    assert!(quiet as f64 / seeds as f64 >= 0.93, "{quiet} of {seeds}");
}

/// 10 % slower at n = 2000. The standard error of the mean's relative difference is about sqrt(2 ·
/// 0.26² · 3 / 2000) = 1.4 %, so 10 % are seven standard errors: practically never missed.
#[test]
fn detects_a_slowdown_of_a_tenth() {
    for seed in 0..30 {
        let a = side("A", latencies(2000, 1.0, "power A", seed));
        let b = side("B", latencies(2000, 1.1, "power B", seed));
        let comparison = compare(&[a, b], &[], &options()).unwrap();
        for aggregate in [Aggregate::Mean, Aggregate::Percentile(50.0)] {
            let row = row(&comparison, aggregate);
            assert_eq!(row.verdict, DifferenceVerdict::Worse, "{seed}: {row:?}");
            let relative = row.relative.unwrap();
            assert!((relative - 0.1).abs() < 0.06, "{relative}");
        }
    }
}

/// Gaps of 40 answers, all due at once: the common level of an answer's gaps is not independent
/// noise of each gap. The levels of answers vary by 20 %, so the mean of 40 of them has an error of
/// 3 %, and the difference of two sides 4.5 %; gap by gap it would seem to be 0.7 %.
#[test]
fn gaps_of_an_answer_are_not_independent_samples() {
    let of = |label: &str, seed: u64| {
        let mut draws = draws(label, seed);
        let mut side = side(label, std::iter::empty());
        for _ in 0..40 {
            let level = 1.0 + 0.2 * draws.normal();
            for _ in 0..100 {
                side.runs[0].metrics[0]
                    .samples
                    .push(0, level * (1.0 + 0.2 * draws.normal()));
            }
        }
        side
    };
    let mut quiet = 0;
    for seed in 0..40 {
        let comparison = compare(&[of("A", seed), of("B", seed)], &[], &options()).unwrap();
        let (low, high) = row(&comparison, Aggregate::Mean).relative_interval.unwrap();
        // 2 · 1.96 · 0.2 · √(2 / 40) = 0.175.
        assert!(high - low > 0.06, "{}", high - low);
        quiet += usize::from(low <= 0.0 && 0.0 <= high);
    }
    // 95 % minus three binomial standard errors of 3.4 %, and minus the loss of coverage with so
    // few answers.
    assert!(quiet >= 33, "{quiet} of 40");
}
