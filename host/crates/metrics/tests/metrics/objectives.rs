//! Objectives: rejections before the run, and results.

mod refused;
mod windows;

use crate::sequences::*;
use veeksha_events::Event;
use veeksha_metrics::{
    Catalogue, ConstantSlo, Metric, ObjectiveError, ObjectiveProblem, Objectives, Setup, Stated,
};
use veeksha_model::ChunkKind::Content;
use veeksha_model::ErrorClass;
use veeksha_slo::{Objective, Quantity};

fn check_in(
    catalogue: &Catalogue,
    slos: &[&str],
    goodput: &[&str],
    judges: &[&str],
) -> Result<Objectives, Vec<ObjectiveError>> {
    let slos = slos
        .iter()
        .map(|text| Stated::from(Objective::parse(text).unwrap()));
    let conditions = goodput
        .iter()
        .map(|text| Objective::parse_condition(text).unwrap());
    let judges = judges.iter().map(|judge| (*judge).to_owned());
    Objectives::check(slos.collect(), conditions.collect(), judges.collect(), catalogue)
}

/// Answers with first chunks after 100, 200, 300, 400 ms, intended at 0, 4, 12 and 16 seconds, with
/// the tiers gold, free, gold, free.
fn four() -> Vec<Event> {
    [
        (0, 0, 100, "gold"),
        (1, 4, 200, "free"),
        (2, 12, 300, "gold"),
        (3, 16, 400, "free"),
    ]
    .into_iter()
    .flat_map(|(session, second, ttfc, tier)| {
        let first = second * 1000 + 1 + ttfc;
        let chunks = [(first, Content), (first + 10, Content), (first + 40, Content)];
        let record = with_chunks(answered(session, 0, second * 1000, first + 50), 3, &chunks);
        both(labelled(record, &[("tier", tier)]))
    })
    .collect()
}

#[track_caller]
fn comes_to(objective: &str, met: bool, observed: Option<f64>, count: Option<u64>) {
    let seen = run_in(asking(&[objective]), four());
    let result = &seen.slos.results[0];
    assert_eq!((result.met, result.sample_count), (met, count), "{objective}");
    match observed {
        Some(expected) => close(result.observed, expected),
        None => assert_eq!(result.observed, None),
    }
    assert_eq!(result.objective, objective);
}

#[test]
fn aggregates_labels_and_run_metrics() {
    comes_to("p50(ttfc) <= 250ms", true, Some(0.25), Some(4));
    comes_to("p50(ttfc) < 250ms", false, Some(0.25), Some(4));
    comes_to("mean(ttfc) >= 250ms", true, Some(0.25), Some(4));
    comes_to("min(ttfc) > 100ms", false, Some(0.1), Some(4));
    comes_to("max(ttfc) <= 399ms", false, Some(0.4), Some(4));
    comes_to("sum(num_output_tokens) >= 12", true, Some(12.0), Some(4));
    comes_to("count(tbc) >= 8", true, Some(8.0), Some(8));
    // Gaps of 10 and 30.
    comes_to("std(tbc) <= 10ms", true, Some(0.010), Some(8));
    comes_to("sum(tbc) < 1s", true, Some(0.160), Some(8));
    comes_to("max(ttfc{tier=\"gold\"}) <= 300ms", true, Some(0.3), Some(2));
    comes_to("p50(tbc{tier=\"free\"}) <= 20ms", true, Some(0.020), Some(4));
    comes_to("p99(ttfc{tier=\"silver\"}) <= 1s", false, None, Some(0));
    comes_to("count(ttfc{tier=\"silver\"}) <= 0", true, Some(0.0), Some(0));
    comes_to("error_rate <= 0", true, Some(0.0), None);
    comes_to("requests_per_second > 0.2", true, Some(4.0 / 16.451), None);
    comes_to(
        "p99(normalized_end_to_end_latency) < 150ms",
        true,
        Some((0.4 + 0.04 - 0.03 * 0.1) / 3.0),
        Some(4),
    );
}

#[test]
fn bounds_are_brought_to_the_unit_of_what_they_bound() {
    let threshold = |text: &str| {
        let result = run_in(asking(&[text]), []).slos.results.remove(0);
        (result.threshold, result.unit)
    };
    let of = |value: f64, unit: &str| (value, unit.to_owned());
    assert_eq!(threshold("error_rate < 1%"), of(0.01, "1"));
    assert_eq!(threshold("p10(fluidity) > 90%").0, 0.9);
    assert_eq!(threshold("p99(ttfc) < 500ms"), of(0.5, "s"));
    assert_eq!(threshold("p99(ttfc) < 0.5s"), of(0.5, "s"));
    assert_eq!(
        threshold("p99(normalized_end_to_end_latency) < 150ms"),
        of(0.15, "s/token")
    );
    assert_eq!(threshold("window_seconds >= 1m"), of(60.0, "s"));
    assert_eq!(threshold("count(ttfc) > 5"), of(5.0, "samples"));
}

#[test]
fn distinguishes_unknown_labels_from_missing_samples() {
    let why = |objective: &str, events: Vec<Event>| {
        let seen = run_in(asking(&[objective]), events);
        let file = seen.slo_results();
        let result = seen.slos.results[0].clone();
        assert_eq!(file["results"][0]["detail"].as_str(), result.detail.as_deref());
        result.detail
    };
    let of = |objective: &str| why(objective, four()).unwrap();
    assert_eq!(
        of("p99(ttfc{tier=\"golf\"}) <= 1s"),
        "no request has the label tier=\"golf\"; did you mean tier=\"gold\"?; labels seen: tier=\"free\", tier=\"gold\""
    );
    assert_eq!(
        of("p99(ttfc{teir=\"gold\"}, window = 10s) <= 1s"),
        "no request has the label teir=\"gold\"; did you mean tier=\"gold\"?; labels seen: tier=\"free\", tier=\"gold\""
    );
    // No name is similar, so there is no suggestion. The label error is reported although a count
    // of 0 meets the bound.
    assert_eq!(
        of("count(ttfc{zone=\"eu\"}) <= 9"),
        "no request has the label zone=\"eu\"; labels seen: tier=\"free\", tier=\"gold\""
    );
    // Both labels exist, but on different requests.
    let kinds = [("kind", "chat"), ("tier", "gold")].into_iter().zip(0..);
    let apart = kinds.map(|(label, session)| finished(labelled(answered(session, 0, 0, 9), &[label])));
    assert_eq!(
        why("p99(e2e{kind=\"chat\", tier=\"gold\"}) <= 1s", apart.collect()).unwrap(),
        "no request has kind=\"chat\" and tier=\"gold\" together"
    );
    assert_eq!(
        of("p99(num_reasoning_tokens{tier=\"gold\"}) <= 9"),
        "no answer has a sample of num_reasoning_tokens"
    );
    assert_eq!(
        of("p99(session_tool_time) <= 1s"),
        "no answer has a sample of session_tool_time"
    );
    let unlabelled = finished(answered(0, 0, 0, 9));
    assert_eq!(
        why("p99(e2e{tier=\"gold\"}) <= 1s", vec![unlabelled]).unwrap(),
        "no request has the label tier=\"gold\"; the requests have no labels"
    );
    assert_eq!(
        why("p99(ttfc) <= 1s", Vec::new()).unwrap(),
        "no request was answered"
    );
    assert_eq!(why("p99(ttfc) <= 1s", four()), None);
}

#[test]
fn reports_condition_that_matches_no_request() {
    let remarks = |condition: &str| {
        let catalogue = Catalogue::built_in();
        let setup = Setup {
            objectives: check_in(&catalogue, &[], &[condition], &[]).unwrap(),
            ..Setup::default()
        };
        let seen = run_in(setup, four());
        assert_eq!(
            seen.slo_results()["remarks"],
            serde_json::json!(seen.slos.remarks)
        );
        seen.slos.remarks
    };
    assert_eq!(
        remarks("ttfc{tier=\"golf\"} <= 1s"),
        [
            "goodput does not depend on `ttfc{tier=\"golf\"} <= 1s`: no request has the label tier=\"golf\"; did you mean tier=\"gold\"?; labels seen: tier=\"free\", tier=\"gold\""
        ]
    );
    assert!(remarks("ttfc{tier=\"gold\"} <= 1s").is_empty());
}

/// The result of the objective has the reason, and goodput misses nothing by it.
#[test]
fn objective_that_matches_no_request_is_missed_without_a_remark_on_goodput() {
    let seen = run_in(asking(&["p90(ttfc{tier=\"platinum\"}) <= 1s"]), four());
    let [missed] = &seen.slos.results[..] else {
        panic!("one objective");
    };
    let why = missed.detail.as_deref().unwrap_or_default();
    assert!(
        !missed.met && why.starts_with("no request has the label tier=\"platinum\""),
        "{why}"
    );
    assert_eq!(seen.slos.remarks, Vec::<String>::new());
}

#[test]
fn percentile_of_too_few_samples_is_marked() {
    let seen = run_in(
        asking(&[
            "p99(ttfc) < 1s",
            "p50(ttfc) < 1s",
            "max(ttfc) < 1s",
            "p90(tbc, window = 10s) < 1s",
        ]),
        four(),
    );
    let thin: Vec<bool> = seen.slos.results.iter().map(|result| result.thin).collect();
    assert_eq!(thin, [true, false, false, true]);
    assert_eq!(
        seen.slo_results()["results"][0]["too_few_samples"],
        serde_json::json!(true)
    );
}

#[test]
fn results_have_veekshas_keys_whoever_stated_them() {
    let stated = |text: &str| {
        let seen = run_in(asking(&[text]), four());
        let file = seen.slo_results();
        let row = &file["results"][0];
        let of = |key: &str| row[key].clone();
        (
            of("slo_metric_key"),
            of("metric"),
            of("percentile"),
            of("lower_is_better"),
        )
    };
    let value = |text: &str| serde_json::Value::from(text);
    assert_eq!(
        stated("p99.9(e2e) <= 1s"),
        (value("e2e_p99.9"), value("e2e"), 0.999.into(), true.into())
    );
    assert_eq!(
        stated("mean(ttfc{tier=\"gold\"}) > 1s"),
        (
            value("mean(ttfc{tier=\"gold\"})"),
            value("ttfc"),
            serde_json::Value::Null,
            false.into()
        )
    );
    assert_eq!(stated("error_rate < 1%").0, value("error_rate"));
}

#[test]
fn names_are_kept() {
    let mut objective = Objective::parse("p99(ttfc) < 1s").unwrap();
    objective.name = Some("fast".into());
    let catalogue = Catalogue::built_in();
    let setup = Setup {
        objectives: Objectives::check(vec![objective.into()], Vec::new(), Vec::new(), &catalogue).unwrap(),
        ..Setup::default()
    };
    let seen = run_in(setup, four());
    assert_eq!(
        seen.slo_results()["results"][0]["name"],
        serde_json::json!("fast")
    );
}

/// Goodput counts intended requests: four answered, one failed, one never sent.
#[test]
fn goodput_of_explicit_conditions() {
    let goodput = |conditions: &[&str]| {
        let catalogue = Catalogue::built_in();
        let setup = Setup {
            objectives: check_in(&catalogue, &["goodput >= 0.5"], conditions, &[]).unwrap(),
            ..Setup::default()
        };
        let more = [
            finished(failed(answered(7, 0, 0, 90), ErrorClass::Timeout, None)),
            never_sent(8, 0, veeksha_events::NeverSentReason::Held),
        ];
        let seen = run_in(setup, four().into_iter().chain(more));
        assert_eq!(seen.slos.results[0].observed, seen.slos.goodput);
        assert_eq!(seen.slos.results[0].met, seen.slos.goodput >= Some(0.5));
        seen.slos.goodput
    };
    close(goodput(&["ttfc <= 300ms"]), 3.0 / 6.0);
    close(goodput(&["ttfc <= 300ms", "e2e < 300ms"]), 2.0 / 6.0);
    // Tiers: 150 ms for free, 300 for gold.
    close(
        goodput(&["ttfc{tier=\"gold\"} <= 300ms", "ttfc{tier=\"free\"} <= 150ms"]),
        2.0 / 6.0,
    );
    // Every gap, or their mean of 20 ms.
    close(goodput(&["tbc <= 29ms"]), 0.0);
    close(goodput(&["mean(tbc) <= 20ms"]), 4.0 / 6.0);
    close(goodput(&["itl >= 10ms"]), 4.0 / 6.0);
    close(goodput(&["output_throughput >= 10"]), 2.0 / 6.0);
}
