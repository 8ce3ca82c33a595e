//! The language of `--fail-if`.

use proptest::prelude::*;
use veeksha_compare::{
    CompareOptions, CompareSide, Comparison, Decision, FailIf, FailOutcome, Invalid, KnownKind, KnownName,
    RunValueData, Statistic, Trust, Validity, compare,
};
use veeksha_model::Better;
use veeksha_slo::{Aggregate, ParseError, Range};

use crate::synthetic::{even, metric, run, side};

fn known() -> Vec<KnownName> {
    let of = |name: &str, aliases: &[&str], unit: &str, kind| KnownName {
        name: name.into(),
        aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
        unit: unit.into(),
        kind,
        range: match unit {
            "1" => Range::Share,
            _ => Range::NotNegative,
        },
    };
    vec![
        of("ttfc", &[], "s", KnownKind::Metric),
        of("tbc", &[], "s", KnownKind::Metric),
        of("end_to_end_latency", &["e2e"], "s", KnownKind::Metric),
        of("output_throughput", &[], "tokens/s", KnownKind::Metric),
        of("error_rate", &[], "1", KnownKind::RunMetric),
        of("goodput", &[], "1", KnownKind::RunMetric),
    ]
}

fn read(text: &str) -> Result<FailIf, ParseError> {
    let mut expression = FailIf::parse(text)?;
    expression.check(&known())?;
    Ok(expression)
}

/// Returns a comparison: A has a ttfc of 1 s, B of 1.1 s; tbc and e2e are equal, errors rise from 1
/// % to 3 %; B has too few samples of output_throughput.
fn comparison(expression: &FailIf, change: impl FnOnce(&mut CompareSide)) -> Comparison {
    let options = CompareOptions {
        resamples: 100,
        ..CompareOptions::default()
    };
    comparison_by(expression, &options, change)
}

fn comparison_by(
    expression: &FailIf,
    options: &CompareOptions,
    change: impl FnOnce(&mut CompareSide),
) -> Comparison {
    let of = |label: &str, ttfc: f64, errors: f64| {
        let metrics = vec![
            metric("ttfc", Better::Less, even(ttfc)),
            metric("tbc", Better::Less, even(0.01)),
            metric("end_to_end_latency", Better::Less, even(2.0)),
            metric("output_throughput", Better::Higher, even(50.0).take(10)),
        ];
        let mut run = run(label, metrics);
        let run_metric = |name: &str, value| RunValueData::new(name, "1", Better::Less, value);
        run.run_metrics = vec![run_metric("error_rate", errors), run_metric("goodput", 0.0)];
        CompareSide {
            label: label.into(),
            runs: vec![run],
        }
    };
    let mut b = of("B", 1.1, 0.03);
    change(&mut b);
    compare(&[of("A", 1.0, 0.01), b], &expression.statistics(), options).unwrap()
}

fn decide(text: &str, change: impl FnOnce(&mut CompareSide)) -> Decision {
    let expression = read(text).unwrap();
    expression.decide(&comparison(&expression, change))
}

fn outcome(text: &str) -> FailOutcome {
    decide(text, |_| {}).candidates[0].outcome
}

#[test]
fn evaluates_expressions() {
    use FailOutcome::{Fails, Passes, Undecided};
    let cases = [
        ("worse(ttfc)", Fails),
        ("worse(p99(ttfc))", Fails),
        ("worse(any)", Fails),
        ("worse(tbc)", Passes),
        ("better(ttfc)", Passes),
        ("differs(any)", Passes),
        ("WORSE(e2e)", Passes),
        // 10 % more, exactly.
        ("p99(ttfc) > +5%", Fails),
        ("p99(ttfc) > +10.5%", Passes),
        ("p99(ttfc) < -5%", Passes),
        ("mean(ttfc) >= +10%", Fails),
        ("mean(ttfc) > +99ms", Fails),
        ("mean(ttfc) > +101ms", Passes),
        ("p95(ttfc) > 1s", Fails),
        ("p95(ttfc) > 2s", Passes),
        ("max(ttfc) > 1100ms", Fails),
        ("count(ttfc) < 1000", Passes),
        ("error_rate > 1%", Fails),
        ("error_rate > 5%", Passes),
        ("error_rate > +100%", Fails),
        ("error_rate > +0.015", Fails),
        ("goodput > +1%", Passes),
        ("not_comparable", Passes),
        ("not worse(ttfc)", Passes),
        ("worse(tbc) or worse(ttfc)", Fails),
        ("worse(tbc) and worse(ttfc)", Passes),
        // `and` binds closer than `or`.
        ("worse(ttfc) or worse(tbc) and worse(tbc)", Fails),
        ("(worse(ttfc) or worse(tbc)) and worse(tbc)", Passes),
        ("not (worse(tbc) or better(tbc))", Fails),
        // Ten samples are too few for a verdict, and a decided part can decide the whole
        // expression.
        ("worse(output_throughput)", Undecided),
        ("worse(error_rate)", Undecided),
        ("worse(output_throughput) or worse(ttfc)", Fails),
        ("worse(output_throughput) and worse(tbc)", Passes),
        ("worse(output_throughput) or worse(tbc)", Undecided),
        ("not worse(output_throughput)", Undecided),
    ];
    for (text, expected) in cases {
        assert_eq!(outcome(text), expected, "{text}");
    }
}

#[test]
fn reasons_contain_the_observed_values() {
    let reasons = |text: &str| decide(text, |_| {}).candidates[0].reasons.join("\n");
    insta::assert_snapshot!(reasons("worse(ttfc) or error_rate > 1%"), @r"
    mean(ttfc) is worse (+10 %)
    p50(ttfc) is worse (+10 %)
    p90(ttfc) is worse (+10 %)
    p99(ttfc) is worse (+10 %)
    error_rate is 3 % (error_rate > 1%)
    ");
    insta::assert_snapshot!(reasons("p99(ttfc) > +5% and mean(ttfc) > +20ms"), @r"
    p99(ttfc) changed by +10 % (p99(ttfc) > +5%)
    mean(ttfc) changed by +100 ms (mean(ttfc) > +20ms)
    ");
    insta::assert_snapshot!(reasons("worse(output_throughput)"), @"not enough data to judge output_throughput");
    insta::assert_snapshot!(reasons("not worse(tbc)"), @"`not worse(tbc)` holds");
}

#[test]
fn sides_that_are_not_comparable_do_not_pass() {
    let other_work = |side: &mut CompareSide| side.runs[0].workload = Some(vec![(2, "x".into())]);
    let of = |text: &str| decide(text, other_work);
    assert_eq!(of("not_comparable").candidates[0].outcome, FailOutcome::Fails);
    let undecided = of("worse(ttfc)");
    assert_eq!(undecided.candidates[0].outcome, FailOutcome::Undecided);
    assert!(undecided.fails());
    assert_eq!(
        of("p99(ttfc) > +5%").candidates[0].outcome,
        FailOutcome::Undecided
    );
    // A bound on the candidate alone needs no comparison.
    assert!(!of("p99(ttfc) > 2s").fails());
    insta::assert_snapshot!(undecided.candidates[0].reasons.join("\n"), @"not comparable: the workloads of A and B differ within the first 2 sessions");
}

/// The metrics of a damaged record describe its remaining part: a bound on them is undecided, met
/// or not, and so is its negation.
#[test]
fn bound_on_an_invalid_run_is_undecided() {
    let invalid = |side: &mut CompareSide| {
        side.runs[0].trust = Trust {
            validity: Validity::Invalid,
            why: vec!["the record is damaged".into()],
        };
    };
    for text in [
        "error_rate > 5%",
        "error_rate > 1%",
        "p99(ttfc) > 100s",
        "not error_rate <= 5%",
        "not error_rate <= 1%",
        "not (p99(ttfc) > 100s)",
        "worse(any) or p99(ttfc) > 100s",
    ] {
        assert_eq!(
            decide(text, invalid).candidates[0].outcome,
            FailOutcome::Undecided,
            "{text}"
        );
    }
    let reasons = decide("error_rate > 5%", invalid).candidates[0]
        .reasons
        .join("\n");
    insta::assert_snapshot!(reasons, @"error_rate is 3 %, which is not reliable: B is INVALID: the record is damaged; --allow-invalid judges it nevertheless");
    // An expression that includes `not_comparable` has the better reason.
    assert_eq!(
        decide("error_rate > 5% or not_comparable", invalid).candidates[0].outcome,
        FailOutcome::Fails
    );
    assert!(!decide("error_rate > 5% and not not_comparable", invalid).fails());
    // With `Invalid::Judged` the bounds are decided.
    let trusting = CompareOptions {
        resamples: 100,
        invalid: Invalid::Judged,
        ..CompareOptions::default()
    };
    for (text, expected) in [
        ("error_rate > 5%", FailOutcome::Passes),
        ("error_rate > 1%", FailOutcome::Fails),
    ] {
        let expression = read(text).unwrap();
        let compared = comparison_by(&expression, &trusting, invalid);
        assert_eq!(
            expression.decide(&compared).candidates[0].outcome,
            expected,
            "{text}"
        );
    }
}

/// A bound on the candidate does not involve the baseline, and an INVALID metric does not affect
/// the others.
#[test]
fn only_invalid_metrics_are_undecided() {
    let of = |name: &'static str| {
        move |side: &mut CompareSide| {
            let metrics = &mut side.runs[0].metrics;
            let metric = metrics.iter_mut().find(|metric| metric.name == name).unwrap();
            metric.trust.validity = Validity::Invalid;
        }
    };
    let outcome = |text: &str| decide(text, of("tbc")).candidates[0].outcome;
    assert_eq!(outcome("p99(tbc) > 1s"), FailOutcome::Undecided);
    assert_eq!(outcome("p99(ttfc) > 2s"), FailOutcome::Passes);
    assert_eq!(outcome("error_rate > 5%"), FailOutcome::Passes);
    let expression = read("error_rate > 5%").unwrap();
    let mut sides = [side("A", even(1.0)), side("B", even(1.0))];
    sides[0].runs[0].trust.validity = Validity::Invalid;
    for side in &mut sides {
        side.runs[0].run_metrics = vec![RunValueData::new("error_rate", "1", Better::Less, 0.01)];
    }
    let compared = compare(&sides, &[], &CompareOptions::default()).unwrap();
    assert!(!compared.candidates[0].obstacles.is_empty());
    assert_eq!(
        expression.decide(&compared).candidates[0].outcome,
        FailOutcome::Passes
    );
}

#[test]
fn rise_from_zero_exceeds_every_bound() {
    let set = |value| move |side: &mut CompareSide| side.runs[0].run_metrics[1].value = value;
    assert!(decide("goodput > +1000%", set(0.1)).fails());
    assert!(!decide("goodput > +1000%", set(0.0)).fails());
    assert!(!decide("goodput < -1%", set(0.1)).fails());
}

#[test]
fn every_candidate_is_decided() {
    let expression = read("worse(ttfc)").unwrap();
    let sides = [side("A", even(1.0)), side("B", even(1.0)), side("C", even(1.2))];
    let comparison = compare(&sides, &[], &CompareOptions::default()).unwrap();
    let decision = expression.decide(&comparison);
    let outcomes: Vec<FailOutcome> = decision
        .candidates
        .iter()
        .map(|candidate| candidate.outcome)
        .collect();
    assert_eq!(outcomes, [FailOutcome::Passes, FailOutcome::Fails]);
    assert!(decision.fails());
}

#[test]
fn lists_statistics_beyond_the_default_ones() {
    let expression = read("p95(ttfc) > +5% or worse(p99.9(tbc)) or worse(any) or error_rate > 1%").unwrap();
    assert_eq!(
        expression.statistics(),
        [
            (
                "ttfc".to_owned(),
                Statistic::OfSamples(Aggregate::Percentile(95.0))
            ),
            (
                "tbc".to_owned(),
                Statistic::OfSamples(Aggregate::Percentile(99.9))
            ),
        ]
    );
    // By their canonical names.
    assert_eq!(
        read("p95(e2e) > 1s").unwrap().statistics()[0].0,
        "end_to_end_latency"
    );
}

#[test]
fn errors_have_positions() {
    let texts = [
        "",
        "worse",
        "worse()",
        "worse(ttcf)",
        "worse(ttfc",
        "worse(ttfc) worse(tbc)",
        "worse(ttfc) && worse(tbc)",
        "worse(ttfc) or",
        "or worse(ttfc)",
        "worsen(ttfc)",
        "p99(ttfc)",
        "p99(ttfc) > +",
        "p99(ttfc) > +5 %%",
        "p99(error_rate) > 1",
        "ttfc > +5%",
        "errorrate > 1%",
        "error_rate > 5ms",
        "p99(ttfc) > 5%",
        "p99(ttfc{a=1}) > +5%",
        "worse(p99(ttfc, window = 1s))",
        "worse(error_rate) and (not_comparable",
    ];
    let text = texts.map(|text| match read(text) {
        Err(error) => format!("{error}\n"),
        Ok(expression) => format!("read as {expression:?}\n"),
    });
    insta::assert_snapshot!(text.concat());
}

/// A gate that never or always fails is uninformative, so the bound must be a mistake.
#[test]
fn rejects_uninformative_bounds() {
    for (text, problem) in [
        (
            "error_rate > 5",
            "no value can meet it: `error_rate` is a share, from 0 to 1; did you mean `error_rate > 5%`?",
        ),
        (
            "worse(ttfc) or goodput < -1",
            "no value can meet it: `goodput` is a share and changes by at most 1; a percentage point is 0.01",
        ),
        (
            "goodput < 0%",
            "no value can meet it: `goodput` is a share, from 0 to 1; give a bound above 0%, up to 100%",
        ),
        (
            "not goodput >= 0",
            "every value meets it: `goodput` is a share, from 0 to 1; give a bound above 0%, up to 100%",
        ),
        (
            "p99(ttfc) < 0",
            "no value can meet it: `p99(ttfc)` is never below 0; give a bound above 0",
        ),
        (
            "p95(e2e) >= 0s",
            "every value meets it: `p95(end_to_end_latency)` is never below 0; give a bound above 0",
        ),
        (
            "error_rate > +5",
            "no value can meet it: `error_rate` is a share and changes by at most 1; a percentage point is 0.01",
        ),
        (
            "p99(ttfc) < -150%",
            "no value can meet it: `p99(ttfc)` is never below 0 and falls by at most 100 %; give a bound above -100%",
        ),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
    for text in [
        "error_rate > 99%",
        "error_rate > 0",
        "error_rate <= 0",
        "goodput < 1",
        "error_rate >= +1",
        "error_rate > +500%",
        "p99(ttfc) <= -100%",
        "p99(ttfc) < -5s",
        "p99(ttfc) > 0",
        "count(ttfc) < 1000",
    ] {
        assert!(read(text).is_ok(), "{text}");
    }
    // The range of a plugin's metric is unknown.
    let mut expression = FailIf::parse("mean(score) < -1").unwrap();
    let score = KnownName {
        name: "score".into(),
        aliases: Vec::new(),
        unit: "1".into(),
        kind: KnownKind::Metric,
        range: Range::Any,
    };
    assert_eq!(expression.check(&[score]), Ok(()));
}

#[test]
fn nesting_depth_is_bounded() {
    let nested = |depth: usize| format!("{}not_comparable{}", "(".repeat(depth), ")".repeat(depth));
    assert!(FailIf::parse(&nested(32)).is_ok());
    assert!(FailIf::parse(&nested(33)).is_err());
    assert!(FailIf::parse(&"not ".repeat(1000)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "worse", "(", ")", "any", "ttfc", "p99", " or ", " and ", "not ", ">", "+5%", "-", "1ms", "error_rate", "{", "é", "not_comparable",
            ]),
            0..20,
        ),
        text in ".{0,20}",
    ) {
        for text in [pieces.concat(), text] {
            if let Err(error) = read(&text) {
                prop_assert!(error.column <= text.chars().count() + 1);
            }
        }
    }
}
