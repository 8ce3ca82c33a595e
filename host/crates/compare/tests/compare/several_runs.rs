//! Noise between runs.

use proptest::prelude::*;
use veeksha_compare::{
    CompareOptions, CompareSide, DifferenceVerdict, FailIf, FailOutcome, RunData, RunValueData, compare,
};
use veeksha_model::Better;

use crate::synthetic::{draws, metric, run};

fn options() -> CompareOptions {
    CompareOptions {
        resamples: 100,
        ..CompareOptions::default()
    }
}

/// Creates runs whose level varies between runs by `between`, with samples that vary by 10 %.
fn noisy(label: &str, runs: u64, scale: f64, between: f64, purpose: &str, number: u64) -> CompareSide {
    let mut draws = draws(purpose, number);
    let mut next = |place: u64| {
        let level = scale * (1.0 + between * draws.normal());
        let values: Vec<f64> = (0..100).map(|_| level * (1.0 + 0.1 * draws.normal())).collect();
        run(
            &format!("{label}{place}"),
            vec![metric("ttfc", Better::Less, values)],
        )
    };
    CompareSide {
        label: label.into(),
        runs: (0..runs).map(&mut next).collect(),
    }
}

/// Returns the share of pairs without a difference whose means are not called different.
fn quiet(runs_of_a: u64, runs_of_b: u64, between: f64) -> f64 {
    let seeds = 200;
    let count = (0..seeds)
        .filter(|seed| {
            let purpose = format!("noise {runs_of_a} {runs_of_b}");
            let a = noisy("A", runs_of_a, 1.0, between, &purpose, 2 * seed);
            let b = noisy("B", runs_of_b, 1.0, between, &purpose, 2 * seed + 1);
            let comparison = compare(&[a, b], &[], &options()).unwrap();
            let row = &comparison.candidates[0].rows[0];
            row.p.is_some_and(|p| p > 0.05)
        })
        .count();
    count as f64 / seeds as f64
}

/// With 5 % between runs and 1 % within (10 % ÷ √100), one run on each side calls nearly every pair
/// different: the difference is √(5² + 1²) ÷ 1 = 5.1 times the error known from single runs, and is
/// within 1.96 of it with probability 2 Φ(1.96 / 5.1) - 1 = 30 %.
#[test]
fn noise_between_runs_is_not_a_difference() {
    let unknown = quiet(1, 1, 0.05);
    assert!((unknown - 0.30).abs() < 0.1, "{unknown}");
    // 95 % minus three binomial standard errors of 1.5 %.
    for (a, b) in [(4, 4), (5, 1), (1, 5), (2, 2)] {
        let known = quiet(a, b, 0.05);
        assert!(known >= 0.905, "{a} runs and {b}: {known}");
    }
}

/// Without noise between runs, five runs per side detect a difference of 10 %, ten standard errors
/// of one run: t = 0.1 / (0.01 √(2/5)) = 16 with 8 degrees.
#[test]
fn several_quiet_runs_detect_a_difference() {
    for seed in 0..20 {
        let a = noisy("A", 5, 1.0, 0.0, "quiet A", seed);
        let b = noisy("B", 5, 1.1, 0.0, "quiet B", seed);
        let comparison = compare(&[a, b], &[], &options()).unwrap();
        let row = &comparison.candidates[0].rows[0];
        assert_eq!(row.verdict, DifferenceVerdict::Worse, "{row:?}");
        assert_eq!(row.baseline.unwrap().spread.unwrap().runs, 5);
    }
}

/// Returns the verdict on a single value whose logarithm varies between runs by `spread`: B is
/// `factor` times A.
fn verdict_of(runs: (usize, usize), spread: (f64, f64), factor: f64, seed: u64) -> (DifferenceVerdict, f64) {
    let mut draws = draws(&format!("{runs:?} {spread:?} {factor}"), seed);
    let mut side = |label: &str, runs: usize, centre: f64, spread: f64| {
        let values: Vec<f64> = (0..runs)
            .map(|_| centre * (spread * draws.normal()).exp())
            .collect();
        latencies(label, &values)
    };
    let (a, b) = (
        side("A", runs.0, 0.01, spread.0),
        side("B", runs.1, 0.01 * factor, spread.1),
    );
    let comparison = compare(&[a, b], &[], &options()).unwrap();
    let row = &comparison.candidates[0].rows[0];
    (row.verdict, row.p.unwrap())
}

/// Of 2000 pairs without a difference, 5 % have p ≤ 5 %, and 0.5 % have p ≤ 0.5 %, as verdicts
/// among ten rows require: three binomial standard errors are 1.5 % and 0.5 %. Welch's
/// approximation adds up to 2 % where the variances of the sides differ greatly. If the noisier
/// side has only two runs, which agree by chance, it adds more to small probabilities; two runs are
/// therefore few.
#[test]
fn false_differences_have_the_requested_rate() {
    for runs in [(2, 2), (3, 3), (5, 5), (2, 5), (5, 2)] {
        for spread in [(0.05, 0.05), (0.02, 0.3)] {
            let seen: Vec<f64> = (0..2000)
                .map(|seed| verdict_of(runs, spread, 1.0, seed).1)
                .collect();
            let share = |bound: f64| seen.iter().filter(|p| **p <= bound).count() as f64 / 2000.0;
            assert!(share(0.05) <= 0.085, "{runs:?} {spread:?}: {}", share(0.05));
            let small = if runs == (5, 2) { 0.05 } else { 0.012 };
            assert!(share(0.005) <= small, "{runs:?} {spread:?}: {}", share(0.005));
        }
    }
    for runs in [(5, 1), (1, 3)] {
        let seen = (0..2000).filter(|seed| verdict_of(runs, (0.1, 0.1), 1.0, *seed).1 <= 0.05);
        let share = seen.count() as f64 / 2000.0;
        assert!((0.035..=0.065).contains(&share), "{runs:?}: {share}");
    }
}

/// The logarithms of A vary by 0.03 and those of B by 0.3, so that nearly all of the error is from
/// B, with one degree less than it has runs.
///
/// * Twice as slow, 5 runs: ln 2 / (0.3 / √5) = 5.2 errors; the bound at 4 degrees is 2.78:
///   detected in about 95 %.
/// * 20 times as slow: ln 20 / 0.3 = 10 √n errors. 3 runs: 17, the bound at 2 degrees is 4.3,
///   missed where the spread seems four times too large: exp(-16) of the cases. 2 runs: 14, and the
///   bound at 1 degree is 12.7: about one half.
///
/// A missed difference is not called "no difference": the remark recommends more runs.
#[test]
fn regressions_are_detected_or_need_more_runs() {
    let counted = |runs: usize, factor: f64| {
        let verdicts: Vec<DifferenceVerdict> = (0..300)
            .map(|seed| verdict_of((runs, runs), (0.03, 0.3), factor, seed).0)
            .collect();
        let share = |verdict: DifferenceVerdict| {
            verdicts.iter().filter(|seen| **seen == verdict).count() as f64 / 300.0
        };
        (
            share(DifferenceVerdict::Worse),
            share(DifferenceVerdict::TooFewRuns),
        )
    };
    let (worse, few) = counted(5, 2.0);
    assert!(worse >= 0.9, "2x, 5 runs: {worse} {few}");
    for (runs, least) in [(2, 0.35), (3, 0.98), (5, 0.999)] {
        let (worse, few) = counted(runs, 20.0);
        assert!(worse >= least, "20x, {runs} runs: {worse} {few}");
        assert!(worse + few >= 0.99, "20x, {runs} runs: {worse} {few}");
    }
    // A change of 2x with 30 % noise is large but not certain: mostly one of the two verdicts
    // applies, and never the opposite one.
    for (runs, asked_for) in [(2, 0.2), (3, 0.05)] {
        let (worse, few) = counted(runs, 2.0);
        assert!(
            worse + few >= 0.55 && few >= asked_for,
            "2x, {runs} runs: {worse} {few}"
        );
    }
}

/// 10 ms in all runs of A; 50, 300 and 120 ms in those of B: mean logarithms 2.30 and 4.80, errors
/// 0.006 and 0.52, so 4.8 errors with 2 degrees (p = 4 %). As the only row it is worse; among 30
/// rows without a difference it is not, and the verdict is not "no difference" either.
#[test]
fn too_few_runs_are_reported_and_fail_a_gate() {
    let of = |label: &str, ttfc: [f64; 3]| {
        let mut side = latencies(label, &ttfc);
        for (place, run) in side.runs.iter_mut().enumerate() {
            for other in 0..30 {
                let mut run_metric = run.run_metrics[0].clone();
                run_metric.name = format!("other_{other}");
                run_metric.value = 1.0 + 0.01 * ((place * 7 + other) % 3) as f64;
                run.run_metrics.push(run_metric);
            }
        }
        side
    };
    let sides = [of("A", [0.01, 0.0101, 0.0099]), of("B", [0.05, 0.3, 0.12])];
    let comparison = compare(&sides, &[], &options()).unwrap();
    let row = &comparison.candidates[0].rows[0];
    assert_eq!(row.verdict, DifferenceVerdict::TooFewRuns, "{row:?}");
    assert!((row.relative.unwrap() - 11.16).abs() < 0.05, "{row:?}");
    assert!((row.freedom.unwrap() - 2.0).abs() < 0.01);
    let remark = row.remark.as_deref().unwrap_or_default();
    assert!(
        remark.contains("runs per side would decide") && remark.contains("Holm"),
        "{remark}"
    );
    let decide = |text: &str| FailIf::parse(text).unwrap().decide(&comparison);
    for text in ["worse(latency)", "worse(any)"] {
        assert_eq!(
            decide(text).candidates[0].outcome,
            FailOutcome::Undecided,
            "{text}"
        );
        assert!(decide(text).fails());
    }
    assert!(!decide("worse(other_1)").fails());

    let alone = |ttfc: [f64; 3]| latencies(if ttfc[0] < 0.02 { "A" } else { "B" }, &ttfc);
    let sides = [alone([0.01, 0.0101, 0.0099]), alone([0.05, 0.3, 0.12])];
    let comparison = compare(&sides, &[], &options()).unwrap();
    assert_eq!(comparison.candidates[0].rows[0].verdict, DifferenceVerdict::Worse);
}

/// Shares can be 0, and are compared by their difference: 0, 0, 0 against 2, 3, 4 % is 3 ± 4.303 ·
/// 1 / √3 = 3 ± 2.484 points (2 degrees).
#[test]
fn shares_that_rise_from_zero_are_judged() {
    let sides = [
        with_run_metric("A", &[0.0, 0.0, 0.0]),
        with_run_metric("B", &[0.02, 0.03, 0.04]),
    ];
    let comparison = compare(&sides, &[], &options()).unwrap();
    let row = &comparison.candidates[0].rows[0];
    let (low, high) = row.interval.unwrap();
    assert!(
        (low - 0.00516).abs() < 1e-5 && (high - 0.05484).abs() < 1e-5,
        "{low} {high}"
    );
    assert_eq!(
        (row.relative_interval, row.verdict),
        (None, DifferenceVerdict::Better)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() })]

    /// An interval that excludes "no change" agrees with the verdict, except for Holm's correction,
    /// which the remark then names.
    #[test]
    fn interval_and_verdict_agree(
        a in prop::collection::vec(0.001..1.0f64, 1..6),
        b in prop::collection::vec(0.001..10.0f64, 1..6),
        shift in -0.5..0.5f64,
        others in 0usize..5,
        confidence in 0.5..0.99f64,
    ) {
        let of = |label: &str, values: &[f64]| {
            let mut side = latencies(label, values);
            for (place, run) in side.runs.iter_mut().enumerate() {
                for other in 0..others {
                    let mut run_metric = run.run_metrics[0].clone();
                    run_metric.name = format!("other_{other}");
                    // Sometimes below 0: then the difference is compared.
                    run_metric.value = values[place] * (1.0 + other as f64) - shift;
                    run.run_metrics.push(run_metric);
                }
                let samples = (0..50).map(|place| values[0] * (1.0 + f64::from(place * 37 % 50) / 50.0));
                run.metrics.push(metric("samples", Better::Less, samples));
            }
            side
        };
        let options = CompareOptions { confidence, ..options() };
        let comparison = compare(&[of("A", &a), of("B", &b)], &[], &options).unwrap();
        for row in &comparison.candidates[0].rows {
            let Some(p) = row.p else { continue };
            prop_assert!(row.interval.is_some() != row.relative_interval.is_some());
            let (low, high) = row.interval.or(row.relative_interval).unwrap();
            let leaves_out = low > 0.0 || high < 0.0;
            // If a bound is 0 to the last digit, either result is correct.
            if low.abs() > 1e-9 && high.abs() > 1e-9 {
                prop_assert_eq!(leaves_out, p <= 1.0 - confidence, "{:?}", row);
            }
            let differs = matches!(row.verdict, DifferenceVerdict::Better | DifferenceVerdict::Worse);
            let holm = row.remark.as_deref().is_some_and(|remark| remark.contains("Holm"));
            prop_assert!(!differs || leaves_out);
            if leaves_out && !differs {
                prop_assert!(holm, "{:?}", row);
            }
        }
    }
}

/// Creates a side with a run-level value in seconds, where less is better.
fn latencies(label: &str, values: &[f64]) -> CompareSide {
    let mut side = with_run_metric(label, values);
    for run_metric in side.runs.iter_mut().flat_map(|run| &mut run.run_metrics) {
        run_metric.name = "latency".into();
        run_metric.unit = "s".into();
        run_metric.better = Better::Less;
    }
    side
}

fn with_run_metric(label: &str, values: &[f64]) -> CompareSide {
    let of = |(place, value): (usize, &f64)| RunData {
        label: format!("{label}{place}"),
        run_metrics: vec![RunValueData::new("goodput", "1", Better::Higher, *value)],
        ..RunData::default()
    };
    CompareSide {
        label: label.into(),
        runs: values.iter().enumerate().map(of).collect(),
    }
}

/// Student's t test of 0.90, 0.91, 0.92 against 0.80: standard deviation 0.01, error 0.01 √(1 +
/// 1/3) = 0.011547 with 2 degrees, whose 97.5 % quantile is 4.3027 (tables): 0.11 ± 0.04968.
#[test]
fn values_of_several_runs_are_judged_by_their_spread() {
    let a = with_run_metric("A", &[0.90, 0.91, 0.92]);
    let comparison = compare(&[a.clone(), with_run_metric("B", &[0.80])], &[], &options()).unwrap();
    let row = &comparison.candidates[0].rows[0];
    let (low, high) = row.interval.unwrap();
    assert!(
        (low - (-0.11 - 0.04968)).abs() < 1e-5 && (high - (-0.11 + 0.04968)).abs() < 1e-5,
        "{low} … {high}"
    );
    assert_eq!(row.verdict, DifferenceVerdict::Worse);
    assert!(
        comparison.candidates[0]
            .remark_texts()
            .iter()
            .any(|remark| remark == "the noise between runs is known for A only (3 runs) and assumed for B")
    );

    let alike = compare(&[a, with_run_metric("B", &[0.90])], &[], &options()).unwrap();
    assert_eq!(
        alike.candidates[0].rows[0].verdict,
        DifferenceVerdict::NoDifference
    );

    // Two runs that agree exactly do not prove that every run would.
    let exact = compare(
        &[with_run_metric("A", &[0.0, 0.0]), with_run_metric("B", &[0.01])],
        &[],
        &options(),
    )
    .unwrap();
    assert_eq!(
        exact.candidates[0].rows[0].verdict,
        DifferenceVerdict::NotEnoughData
    );
}
