//! Sides with different losses: metrics of answered requests describe the survivors only.

use veeksha_compare::{
    CompareOptions, CompareSide, ComparedSide, DifferenceVerdict, FailIf, FailOutcome, RequestShare,
    RunValueData, Statistic, TimedSamples, ValueParts, compare,
};
use veeksha_model::Better;
use veeksha_slo::Aggregate;

use crate::synthetic::{even, side};

fn options() -> CompareOptions {
    CompareOptions {
        resamples: 200,
        ..CompareOptions::default()
    }
}

/// Creates a side with 1000 answers of about `seconds` each, out of `asked` requests.
fn answering(label: &str, seconds: f64, asked: u64) -> CompareSide {
    let mut side = side(label, even(seconds));
    side.runs[0].answered = Some(RequestShare {
        part: 1000,
        whole: asked,
    });
    side
}

fn against(baseline: CompareSide, candidate: CompareSide) -> ComparedSide {
    let sides = [baseline, candidate];
    let comparison = compare(&sides, &[], &options()).unwrap();
    comparison.candidates.into_iter().next().unwrap()
}

fn verdicts(candidate: &ComparedSide) -> Vec<DifferenceVerdict> {
    candidate.rows.iter().map(|row| row.verdict).collect()
}

fn outcome(expression: &str, baseline: CompareSide, candidate: CompareSide) -> FailOutcome {
    let fail_if = FailIf::parse(expression).unwrap();
    let comparison = compare(&[baseline, candidate], &fail_if.statistics(), &options()).unwrap();
    fail_if.decide(&comparison).candidates[0].outcome
}

/// Half of the requests failed, and the others were answered faster: perhaps because the slow ones
/// failed.
#[test]
fn survivors_of_many_losses_are_not_better() {
    let (whole, half) = (|| answering("A", 1.0, 1000), || answering("B", 0.7, 2000));
    let candidate = against(whole(), half());
    assert_eq!(verdicts(&candidate), [DifferenceVerdict::SurvivorsOnly; 4]);
    // The measured values are present nevertheless.
    let mean = &candidate.rows[0];
    assert!(mean.relative_interval.unwrap().1 < -0.29, "{mean:?}");
    insta::assert_snapshot!(candidate.remark_texts()[0], @"A answered 1000 of 1000 due requests (100 %) and B answered 1000 of 2000 due requests (50 %): latencies and other metrics of answered requests cover the survivors only, and the slowest requests may be among the lost ones, so B is not called better by them");
    for gate in [
        "worse(ttfc)",
        "worse(p50(ttfc))",
        "worse(any)",
        "mean(ttfc) > +5%",
    ] {
        assert_eq!(outcome(gate, whole(), half()), FailOutcome::Undecided, "{gate}");
    }
    let comparison = compare(&[whole(), half()], &[], &options()).unwrap();
    let decision = FailIf::parse("worse(ttfc)").unwrap().decide(&comparison);
    insta::assert_snapshot!(decision.candidates[0].reasons.join("\n"), @"ttfc mean, ttfc p50, ttfc p90, ttfc p99: survivors only (the baseline answered 100 % of its requests and the candidate 50 %; the slowest may be among the others)");
    // A bound on the candidate's own answers is decided by them.
    assert_eq!(outcome("mean(ttfc) > 1s", whole(), half()), FailOutcome::Passes);

    // A baseline that lost its slow requests does not make the candidate worse, and the gate does
    // not pass either.
    let back = against(half(), whole());
    assert_eq!(verdicts(&back), [DifferenceVerdict::SurvivorsOnly; 4]);
    assert!(back.remark_texts()[0].ends_with("so B is not called better by them"));
    assert_eq!(outcome("worse(ttfc)", half(), whole()), FailOutcome::Undecided);
}

/// The lost requests of a side rank behind its slowest answer: a side that is slower without them
/// is also slower with them.
#[test]
fn survivors_that_are_slower_are_worse() {
    let (whole, half) = (|| answering("A", 1.0, 1000), || answering("B", 1.3, 2000));
    assert_eq!(verdicts(&against(whole(), half())), [DifferenceVerdict::Worse; 4]);
    assert_eq!(
        verdicts(&against(half(), whole())),
        [DifferenceVerdict::Better; 4]
    );
    assert_eq!(outcome("worse(ttfc)", whole(), half()), FailOutcome::Fails);
    assert_eq!(outcome("worse(ttfc)", half(), whole()), FailOutcome::Passes);
}

/// "No difference" is not evidence for a side that lost many requests; the other side is not worse
/// as a result.
#[test]
fn no_difference_among_survivors_passes_for_the_side_that_lost_less() {
    let (whole, half) = (|| answering("A", 1.0, 1000), || answering("B", 1.0, 2000));
    assert_eq!(
        verdicts(&against(whole(), half())),
        [DifferenceVerdict::SurvivorsOnly; 4]
    );
    assert_eq!(outcome("worse(ttfc)", whole(), half()), FailOutcome::Undecided);
    assert_eq!(outcome("worse(ttfc)", half(), whole()), FailOutcome::Passes);
    // 15 of 1015 and 30 of 1030 lost differ by 1.43 points and 2.2 errors of 0.65; 15 and 26 by
    // 1.06 points and 1.7 errors, which may be chance.
    let (few, more) = (answering("A", 1.0, 1015), answering("B", 1.0, 1030));
    assert_eq!(
        verdicts(&against(few.clone(), more)),
        [DifferenceVerdict::SurvivorsOnly; 4]
    );
    let chance = answering("B", 1.0, 1026);
    let candidate = against(few.clone(), chance.clone());
    assert_eq!(verdicts(&candidate), [DifferenceVerdict::NoDifference; 4]);
    assert!(
        candidate.remark_texts()[0].contains("the survivors"),
        "{:?}",
        candidate.remark_texts()
    );
    assert_eq!(outcome("worse(ttfc)", few, chance), FailOutcome::Passes);
}

/// 8 lost requests are less than a point of all, and more than half of the ten beyond the P99.
#[test]
fn few_losses_affect_only_high_percentiles() {
    let candidate = against(answering("A", 1.0, 1000), answering("B", 0.7, 1008));
    let [better, survivors] = [DifferenceVerdict::Better, DifferenceVerdict::SurvivorsOnly];
    assert_eq!(verdicts(&candidate), [better, better, better, survivors]);
    let p99 = Statistic::OfSamples(Aggregate::Percentile(99.0));
    assert_eq!(candidate.rows[3].statistic, p99);
    // Equal losses on both sides, and unknown losses.
    let same = against(answering("A", 1.0, 1008), answering("B", 0.7, 1008));
    let unknown = against(answering("A", 1.0, 1000), side("B", even(0.7)));
    for candidate in [same, unknown] {
        assert_eq!(verdicts(&candidate), [better; 4]);
        assert!(!candidate.remark_texts()[0].contains("survivors"));
    }
}

/// Means over answers also describe the survivors; shares of all requests and values without a
/// better side do not.
#[test]
fn only_metrics_of_answers_are_doubted() {
    let with_run_metrics = |label: &str, cached: f64, failed: u64, asked: u64| {
        let mut side = answering(label, 1.0, asked);
        let samples_of = |count: u64, value: &dyn Fn(u64) -> f64| {
            let mut samples = TimedSamples::new();
            (0..count).for_each(|place| samples.push(place * 10_000_000, value(place)));
            samples
        };
        let spread = |place: u64| cached + 0.01 * (place * 37 % 100) as f64 / 100.0;
        let mut neither = side.runs[0].metrics[0].clone();
        neither.name = "tokens".into();
        neither.better = Better::Neither;
        side.runs[0].metrics = vec![neither];
        side.runs[0].run_metrics = vec![
            RunValueData {
                parts: Some(ValueParts::Mean(samples_of(1000, &spread))),
                ..RunValueData::new("cached", "1", Better::Higher, cached + 0.00495)
            },
            RunValueData {
                parts: Some(ValueParts::Outcomes(samples_of(asked, &|place| {
                    f64::from(u8::from(place * 7919 % asked < failed))
                }))),
                ..RunValueData::new("error_rate", "1", Better::Less, failed as f64 / asked as f64)
            },
        ];
        side
    };
    let candidate = against(
        with_run_metrics("A", 0.2, 0, 1000),
        with_run_metrics("B", 0.4, 1000, 2000),
    );
    let verdict = |name: &str| {
        let row = candidate.rows.iter().find(|row| row.name == name).unwrap();
        row.verdict
    };
    assert_eq!(verdict("tokens"), DifferenceVerdict::NoDifference);
    assert_eq!(verdict("cached"), DifferenceVerdict::SurvivorsOnly);
    assert_eq!(verdict("error_rate"), DifferenceVerdict::Worse);
}

/// Every output has the remark.
#[test]
fn survivors_are_marked_in_every_format() {
    let sides = [answering("A", 1.0, 1000), answering("B", 0.7, 2000)];
    let comparison = compare(&sides, &[], &options()).unwrap();
    let json = comparison.json(None).unwrap();
    let candidate = &json["candidates"][0];
    assert_eq!(candidate["answered"]["candidate"]["part"], 1000);
    assert_eq!(candidate["answered"]["candidate"]["whole"], 2000);
    assert_eq!(candidate["rows"][0]["verdict"], "survivors_only");
    let page = comparison.html(None);
    assert!(page.contains("0 worse, 0 better, 4 known for the survivors only, 0 without"));
    assert!(page.contains("<h3>Differences</h3>") && page.contains("<tr class=\"survivors_only\">"));
    assert!(
        comparison
            .annotations(None)
            .contains("4 known for the survivors only")
    );
    let junit = comparison.junit(None).unwrap();
    assert_eq!(junit.matches("<skipped").count(), 4, "{junit}");
}
