//! Sides of one workload with different shares of cached prompt tokens: times that contain prefill
//! favor the warmer side.

use veeksha_compare::{CompareOptions, CompareSide, DifferenceVerdict, FailIf, FailOutcome, compare};
use veeksha_model::Better;

use crate::synthetic::{even, metric, run};

/// Creates a side with a TTFC of about `seconds`, a TBC of a tenth of it, and this cached share.
fn cached(label: &str, seconds: f64, share: Option<f64>) -> CompareSide {
    let mut ttfc = metric("ttfc", Better::Less, even(seconds));
    ttfc.contains_prefill = true;
    let mut only = run(
        label,
        vec![ttfc, metric("tbc", Better::Less, even(seconds / 10.0))],
    );
    only.cached_share = share;
    CompareSide {
        label: label.into(),
        runs: vec![only],
    }
}

/// Returns the verdicts on the means of TTFC and TBC, and the outcome of the gate `worse(ttfc)`.
fn judged(a: CompareSide, b: CompareSide) -> (DifferenceVerdict, DifferenceVerdict, FailOutcome) {
    let options = CompareOptions {
        resamples: 200,
        ..CompareOptions::default()
    };
    let comparison = compare(&[a, b], &[], &options).unwrap();
    let rows = &comparison.candidates[0].rows;
    let of = |name: &str| rows.iter().find(|row| row.name == name).unwrap().verdict;
    let decision = FailIf::parse("worse(ttfc)").unwrap().decide(&comparison);
    (of("ttfc"), of("tbc"), decision.candidates[0].outcome)
}

#[test]
fn times_with_prefill_are_undecided_if_they_favor_the_warmer_side() {
    use DifferenceVerdict::{Better, CacheStatesDiffer, NoDifference, Worse};
    let (cold, warm) = (Some(0.445), Some(0.869));
    let a = || cached("A", 1.0, cold);
    for (b, expected) in [
        (
            cached("B", 0.65, warm),
            (CacheStatesDiffer, Better, FailOutcome::Undecided),
        ),
        (
            cached("B", 1.0, warm),
            (CacheStatesDiffer, NoDifference, FailOutcome::Undecided),
        ),
        // Slower in spite of the cache.
        (cached("B", 1.3, warm), (Worse, Worse, FailOutcome::Fails)),
        // Five points are tolerated, and an unknown share is not doubted.
        (
            cached("B", 0.65, Some(0.495)),
            (Better, Better, FailOutcome::Passes),
        ),
        (
            cached("B", 0.65, Some(0.496)),
            (CacheStatesDiffer, Better, FailOutcome::Undecided),
        ),
        (cached("B", 0.65, None), (Better, Better, FailOutcome::Passes)),
    ] {
        assert_eq!(judged(a(), b.clone()), expected, "{:?}", b.runs[0].cached_share);
    }
    // A colder candidate may be slower because of that, and is better in spite of it.
    let warm_first = |b| judged(cached("A", 1.0, warm), b);
    let (slower, _, gate) = warm_first(cached("B", 1.3, cold));
    assert_eq!((slower, gate), (CacheStatesDiffer, FailOutcome::Undecided));
    let (faster, _, gate) = warm_first(cached("B", 0.65, cold));
    assert_eq!((faster, gate), (Better, FailOutcome::Passes));
}

#[test]
fn every_format_names_different_cache_states() {
    let sides = [cached("A", 1.0, Some(0.445)), cached("B", 0.65, Some(0.869))];
    let comparison = compare(&sides, &[], &CompareOptions::default()).unwrap();
    let row = &comparison.json(None).unwrap()["candidates"][0]["rows"][0];
    assert_eq!(row["verdict"], "cache_states_differ");
    let why = "44.5 % of the prompt tokens of the baseline and 86.9 % of those of the candidate were cached";
    let decision = FailIf::parse("worse(ttfc)").unwrap().decide(&comparison);
    let reasons = decision.candidates[0].reasons.join("\n");
    assert!(
        reasons.contains("cache states differ") && reasons.contains(why),
        "{reasons}"
    );
    for text in [comparison.html(None), comparison.annotations(None)] {
        assert!(
            text.contains("4 undecided because the cache states differ"),
            "{text}"
        );
    }
}
