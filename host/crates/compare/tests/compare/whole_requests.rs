//! The gaps of one answer depend on one another: requests are drawn and counted, not gaps.

use veeksha_compare::{
    CompareOptions, CompareSide, ComparisonRow, DifferenceVerdict, MetricData, RunData, TimedSamples, compare,
};
use veeksha_model::Better;

use crate::synthetic::{draws, run};

/// Gaps per answer.
const GAPS: u64 = 20;

fn options() -> CompareOptions {
    CompareOptions {
        resamples: 200,
        ..CompareOptions::default()
    }
}

/// Creates a run of requests whose gaps are `centre` times a factor common to all gaps of the
/// request, with a small variation. Requests are sent at intervals of `apart`; keys begin at
/// `first`.
fn answers(label: &str, requests: u64, centre: f64, (first, apart): (u64, u64), seed: u64) -> RunData {
    let mut draws = draws(label, seed);
    let mut samples = TimedSamples::new();
    for request in 0..requests {
        let level = centre * (1.0 + 0.2 * draws.normal());
        for _ in 0..GAPS {
            let gap = level * (1.0 + 0.01 * draws.normal());
            samples.push_keyed(request * apart, gap, 1.0, first + request);
        }
    }
    run(label, vec![MetricData::new("tbc", "s", Better::Less, samples)])
}

fn side(runs: Vec<RunData>) -> CompareSide {
    CompareSide {
        label: runs[0].label.clone(),
        runs,
    }
}

fn mean(a: CompareSide, b: CompareSide) -> ComparisonRow {
    let comparison = compare(&[a, b], &[], &options()).unwrap();
    comparison.candidates[0].rows[0].clone()
}

#[test]
fn gaps_of_one_answer_are_not_enough() {
    let many = || side(vec![answers("A", 200, 1.0, (0, 10_000_000), 1)]);
    let of = |requests| {
        mean(
            many(),
            side(vec![answers("B", requests, 1.3, (0, 10_000_000), 2)]),
        )
    };
    let row = of(1);
    assert_eq!(
        (row.verdict, row.p, row.relative_interval),
        (DifferenceVerdict::NotEnoughData, None, None)
    );
    // The measured values are shown nevertheless.
    assert_eq!(row.candidate.unwrap().samples, GAPS);
    insta::assert_snapshot!(row.remark.unwrap(), @"mean needs samples of 20 requests per run; the 20 of the candidate are of 1 request, and samples of one request depend on each other");
    let row = of(19);
    assert_eq!(row.verdict, DifferenceVerdict::NotEnoughData);
    assert!(
        row.remark
            .unwrap()
            .contains("the 380 of the candidate are of 19 requests")
    );
    assert_eq!(of(20).verdict, DifferenceVerdict::Worse);
}

/// Runs of one request each have little data within a run, but their values show the difference
/// between runs; only if these agree to the last digit is a verdict impossible.
#[test]
fn several_runs_of_one_answer_are_single_values() {
    let several = |label: &str, centre: f64, seeds: [u64; 5]| {
        side(seeds.map(|seed| answers(label, 1, centre, (0, 1), seed)).to_vec())
    };
    let row = mean(
        several("A", 1.0, [1, 2, 3, 4, 5]),
        several("B", 3.0, [6, 7, 8, 9, 10]),
    );
    assert_eq!(row.verdict, DifferenceVerdict::Worse);
    // The same values, with one sample that distinguishes them from copies.
    let agreeing = |label: &str, centre: f64| {
        let mut side = several(label, centre, [1; 5]);
        for (place, run) in side.runs.iter_mut().enumerate() {
            let mut mark = TimedSamples::new();
            mark.push(0, place as f64);
            run.metrics
                .push(MetricData::new("mark", "s", Better::Neither, mark));
        }
        side
    };
    let row = mean(agreeing("A", 1.0), agreeing("B", 3.0));
    assert_eq!(row.verdict, DifferenceVerdict::NotEnoughData, "{row:?}");
}

/// 40 requests whose levels vary by 20 %: 800 gaps without a difference. Of 150 pairs, 5 % have p ≤
/// 5 %, within three binomial errors (5.3 %) and the excess of Student's approximation for a
/// bootstrap of 40. Gaps drawn individually would have errors of a quarter (√20).
#[test]
fn equal_answers_get_false_differences_at_the_requested_rate() {
    let pair = |seed: u64| {
        let a = answers("A", 40, 1.0, (0, 10_000_000), 2 * seed);
        // Different requests: they are not compared one by one.
        let b = answers("B", 40, 1.0, (1000, 10_000_000), 2 * seed + 1);
        mean(side(vec![a]), side(vec![b])).p.unwrap()
    };
    let share = (0..150).filter(|seed| pair(*seed) <= 0.05).count() as f64 / 150.0;
    assert!((0.006..=0.12).contains(&share), "{share}");
}
