//! Noise between runs.

use veeksha_compare::{FigureData, Options, RunData, Side, Verdict, compare};
use veeksha_model::Better;

use crate::synthetic::{draws, metric, run};

fn options() -> Options {
    Options {
        resamples: 100,
        ..Options::default()
    }
}

/// Runs whose level varies from run to run by `between`, with samples that vary by 10 %.
fn noisy(label: &str, runs: u64, scale: f64, between: f64, purpose: &str, number: u64) -> Side {
    let mut draws = draws(purpose, number);
    let mut next = |place: u64| {
        let level = scale * (1.0 + between * draws.normal());
        let values: Vec<f64> = (0..100).map(|_| level * (1.0 + 0.1 * draws.normal())).collect();
        run(
            &format!("{label}{place}"),
            vec![metric("ttfc", Better::Less, values)],
        )
    };
    Side {
        label: label.into(),
        runs: (0..runs).map(&mut next).collect(),
    }
}

/// How often the means of the same thing are not said to differ.
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

/// With 5 % between runs and 1 % within (10 % ÷ √100), one run on each side calls nearly every pair different: the difference is
/// √(5² + 1²) ÷ 1 = 5.1 times what single runs know of, and is within 1.96 of that with probability 2 Φ(1.96 / 5.1) - 1 = 30 %.
#[test]
fn noise_between_runs_is_not_taken_for_a_difference() {
    let unknown = quiet(1, 1, 0.05);
    assert!((unknown - 0.30).abs() < 0.1, "{unknown}");
    // 95 % less three binomial standard errors of 1.5 %.
    for (a, b) in [(4, 4), (5, 1), (1, 5), (2, 2)] {
        let known = quiet(a, b, 0.05);
        assert!(known >= 0.905, "{a} runs and {b}: {known}");
    }
}

/// Without noise between runs, several runs cost nothing: a difference of 10 %, ten standard errors of one run, is seen.
#[test]
fn several_quiet_runs_see_what_is_there() {
    for seed in 0..20 {
        let a = noisy("A", 3, 1.0, 0.0, "quiet A", seed);
        let b = noisy("B", 3, 1.1, 0.0, "quiet B", seed);
        let comparison = compare(&[a, b], &[], &options()).unwrap();
        let row = &comparison.candidates[0].rows[0];
        assert_eq!(row.verdict, Verdict::Worse, "{row:?}");
        assert_eq!(row.baseline.unwrap().spread.unwrap().runs, 3);
    }
}

fn with_figure(label: &str, values: &[f64]) -> Side {
    let of = |(place, value): (usize, &f64)| RunData {
        label: format!("{label}{place}"),
        figures: vec![FigureData {
            name: "goodput".into(),
            unit: "1".into(),
            better: Better::Higher,
            value: *value,
        }],
        ..RunData::default()
    };
    Side {
        label: label.into(),
        runs: values.iter().enumerate().map(of).collect(),
    }
}

/// Student's t test of 0.90, 0.91, 0.92 against 0.80: standard deviation 0.01, error 0.01 √(1 + 1/3) = 0.011547 with 2 degrees, of which the
/// 97.5 % is 4.3027 (tables): 0.11 ± 0.04968.
#[test]
fn figures_of_several_runs_are_judged_by_their_spread() {
    let a = with_figure("A", &[0.90, 0.91, 0.92]);
    let comparison = compare(&[a.clone(), with_figure("B", &[0.80])], &[], &options()).unwrap();
    let row = &comparison.candidates[0].rows[0];
    let (low, high) = row.interval.unwrap();
    assert!(
        (low - (-0.11 - 0.04968)).abs() < 1e-5 && (high - (-0.11 + 0.04968)).abs() < 1e-5,
        "{low} … {high}"
    );
    assert_eq!(row.verdict, Verdict::Worse);
    assert!(
        comparison.candidates[0]
            .remarks
            .iter()
            .any(|remark| remark == "the noise between runs is known of A only (3 runs), and taken for B too")
    );

    let alike = compare(&[a, with_figure("B", &[0.90])], &[], &options()).unwrap();
    assert_eq!(alike.candidates[0].rows[0].verdict, Verdict::NoDifference);

    // Two runs that agree exactly do not tell that every run would.
    let exact = compare(
        &[with_figure("A", &[0.0, 0.0]), with_figure("B", &[0.01])],
        &[],
        &options(),
    )
    .unwrap();
    assert_eq!(exact.candidates[0].rows[0].verdict, Verdict::NotEnoughData);
}
