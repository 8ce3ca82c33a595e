//! Metrics and judgements of plugins.

use crate::sequences::*;
use serde_json::Value;
use veeksha_events::{Event, FailedPlugin, PluginRole};
use veeksha_metrics::{Catalogue, Evaluation, Objectives, Setup, Stated};
use veeksha_model::ChunkKind::Content;
use veeksha_model::{Better, ErrorClass, MetricDefinition, MetricSample, RequestId, SessionId};
use veeksha_ports::{RunResults, SloVerdict};
use veeksha_slo::Objective;

fn definition(name: &str) -> MetricDefinition {
    MetricDefinition {
        name: name.into(),
        unit: "ms".into(),
        better: Better::Less,
        summary: "a metric of the test".into(),
        plugin: "tester".into(),
    }
}

fn sample(metric: &str, value: f64, request: Option<RequestId>) -> Event {
    weighted(metric, value, 1.0, request)
}

fn weighted(metric: &str, value: f64, weight: f64, request: Option<RequestId>) -> Event {
    Event::Sampled(MetricSample {
        metric: metric.into(),
        value,
        weight,
        request,
    })
}

fn judged(plugin: &str, session: u64, good: bool) -> Event {
    Event::Judged {
        plugin: plugin.into(),
        request: id(session, 0),
        good,
    }
}

/// An answer whose first chunk comes `ttfc` after its dispatch.
fn answer(session: u64, ttfc: u64, tier: &str) -> Event {
    let first = session * 1000 + 1 + ttfc;
    let chunks = [(first, Content), (first + 10, Content)];
    let record = with_chunks(answered(session, 0, session * 1000, first + 20), 2, &chunks);
    finished(labelled(record, &[("tier", tier)]))
}

fn setup(slos: &[&str], goodput: &[&str], judges: &[&str]) -> Setup {
    let mut catalogue = Catalogue::built_in();
    catalogue.define(definition("jitter")).unwrap();
    let parsed = |text: &&str| Objective::parse(text).unwrap();
    let conditions = goodput
        .iter()
        .map(|text| Objective::parse_condition(text).unwrap());
    Setup {
        objectives: Objectives::check(
            slos.iter().map(|text| Stated::from(parsed(text))).collect(),
            conditions.collect(),
            judges.iter().map(|judge| (*judge).to_owned()).collect(),
            &catalogue,
        )
        .unwrap(),
        catalogue,
        ..Setup::default()
    }
}

fn count(evaluation: &Evaluation, metric: &str) -> usize {
    evaluation
        .samples
        .summary(metric)
        .map_or(0, |summary| summary.count)
}

#[test]
fn samples_may_come_before_after_and_without_their_request() {
    let events = [
        sample("jitter", 3.0, Some(id(0, 0))),
        Event::MetricDefined(definition("jitter")),
        answer(0, 100, "gold"),
        answer(1, 100, "free"),
        sample("jitter", 5.0, Some(id(1, 0))),
        sample("jitter", 10.0, Some(id(7, 7))),
        sample("jitter", 2.0, None),
        finished(drained(answered(2, 0, 2000, 2100))),
        sample("jitter", 90.0, Some(id(2, 0))),
        finished(failed(answered(3, 0, 3000, 3100), ErrorClass::Timeout, None)),
        sample("jitter", 6.0, Some(id(3, 0))),
    ];
    let seen = evaluate(Vec::new(), events);
    // The drained request's sample is excluded. The failed one's is included, because the plugin
    // reported it.
    assert_eq!(seen.custom.len(), 1);
    let custom = &seen.custom[0];
    assert_eq!(
        (custom.name.as_str(), custom.info.as_ref().unwrap().unit.as_str()),
        ("jitter", "ms")
    );
    assert_eq!((custom.summary.count, custom.summary.max), (5, 10.0));
    close(Some(custom.summary.mean), 26.0 / 5.0);
    let gold = [("tier".to_owned(), "gold".to_owned())];
    assert_eq!(seen.samples.stats("jitter", &gold).count, 1);
    assert_eq!(seen.samples.percentile("jitter", 50.0, &gold), Some(3.0));
    // Windows of two seconds from the first intended instant on, for requests in the record.
    let windows = seen.samples.windows("jitter", &[], ms(2000));
    let counts: Vec<u64> = windows.iter().map(|window| window.stats.count).collect();
    assert_eq!(counts, [2, 1]);
    assert_eq!(seen.summary_stats()["jitter (P50)"], serde_json::json!(5.0));
}

#[test]
fn samples_with_weights() {
    let events = [
        weighted("jitter", 10.0, 1.0, None),
        weighted("jitter", 40.0, 1.0, None),
        weighted("jitter", 20.0, 2.0, None),
    ];
    let summary = *evaluate(Vec::new(), events).samples.summary("jitter").unwrap();
    // (10 + 40 + 2 * 20) / 4; the positions of 10, 20, 40 on a line of 8 are 0, 4 and 8.
    assert_eq!((summary.count, summary.mean, summary.p50), (3, 22.5, 20.0));
    close(Some(summary.p90), 20.0 + 20.0 * (7.2 - 4.0) / 4.0);
}

#[test]
fn excludes_samples_that_are_not_numbers_and_reports_metric_and_reason() {
    let events = [
        Event::MetricDefined(definition("jitter")),
        sample("jitter", f64::NAN, None),
        sample("jitter", f64::INFINITY, None),
        weighted("jitter", 1.0, 0.0, None),
        weighted("jitter", 1.0, f64::NAN, None),
        sample("jitter", -1e300, None),
        weighted("jitter", 1.0, 1e300, None),
        weighted("jitter", 1.0, -2.0, None),
        sample("jitter", 4.0, None),
    ];
    let seen = evaluate(Vec::new(), events);
    assert_eq!((count(&seen, "jitter"), seen.end.refused_samples), (1, 7));
    let told: Vec<String> = seen.refused.iter().map(ToString::to_string).collect();
    let plugin = definition("jitter").plugin;
    let whose = |count: u32| {
        format!(
            "{count} sample{} of `jitter` (plugin {plugin}) left out, because",
            if count == 1 { "" } else { "s" }
        )
    };
    assert_eq!(
        told,
        [
            format!(
                "{} their values are not finite numbers; the first: value NaN, of the whole run",
                whose(2)
            ),
            format!(
                "{} their values are beyond 1e90; the first: value -1e300, of the whole run",
                whose(1)
            ),
            format!(
                "{} their weights are not above 0, or beyond 1e90; the first: value 1e0, weight 0e0, of the whole run",
                whose(4)
            ),
        ]
    );
    assert_eq!(
        seen.summary_stats()["Samples Left Out"][1],
        serde_json::json!({
            "plugin": plugin, "metric": "jitter", "reason": "value_too_large", "count": 1,
            "first": "value -1e300, of the whole run",
        })
    );
    let sound = evaluate(
        Vec::new(),
        [sample("jitter", 1e90, None), sample("jitter", -0.0, None)],
    );
    assert_eq!((count(&sound, "jitter"), sound.refused.len()), (2, 0));
}

#[test]
fn a_built_in_name_is_not_taken_by_a_plugin() {
    let events = [
        Event::MetricDefined(definition("ttfc")),
        answer(0, 100, "gold"),
        sample("ttfc", 99.0, Some(id(0, 0))),
    ];
    let seen = evaluate(Vec::new(), events);
    assert_eq!(seen.end.refused_metrics, 1);
    close(seen.samples.summary("ttfc").map(|summary| summary.max), 0.1);
}

#[test]
fn objectives_on_a_plugins_metric_are_like_all_others() {
    let seen = run_in(
        setup(
            &[
                "p50(jitter) <= 4ms",
                "max(jitter{tier=\"gold\"}) < 4ms",
                "sum(jitter) <= 10ms",
                "count(jitter{tier=\"silver\"}) >= 1",
            ],
            &[],
            &[],
        ),
        [
            answer(0, 100, "gold"),
            answer(1, 100, "free"),
            sample("jitter", 3.0, Some(id(0, 0))),
            sample("jitter", 5.0, Some(id(1, 0))),
            Event::RunEnded { at: ms(9000) },
        ],
    );
    let results = &seen.slos.results;
    assert_eq!(
        results
            .iter()
            .map(|result| (result.met, result.observed))
            .collect::<Vec<_>>(),
        [
            (true, Some(4.0)),
            (true, Some(3.0)),
            (true, Some(8.0)),
            (false, Some(0.0))
        ]
    );
    assert_eq!((results[0].unit.as_str(), results[0].threshold), ("ms", 4.0));
    // They bound requests too: the second request's 5 ms exceed the first bound. A maximum over
    // gold does not affect free.
    close(seen.slos.goodput, 0.5);
}

#[test]
fn goodput_takes_a_plugins_samples_request_by_request() {
    let events = || {
        [
            answer(0, 100, "gold"),
            answer(1, 100, "free"),
            answer(2, 300, "free"),
            sample("jitter", 3.0, Some(id(0, 0))),
            sample("jitter", 9.0, Some(id(0, 0))),
            sample("jitter", 5.0, Some(id(1, 0))),
            Event::RunEnded { at: ms(9000) },
        ]
    };
    let goodput = |conditions: &[&str]| run_in(setup(&[], conditions, &[]), events()).slos.goodput;
    // A request without samples meets the condition.
    close(goodput(&["jitter <= 5ms"]), 2.0 / 3.0);
    close(goodput(&["mean(jitter) <= 6ms"]), 1.0);
    close(goodput(&["jitter <= 5ms", "ttfc <= 200ms"]), 1.0 / 3.0);
    close(goodput(&["ttfc{tier=\"gold\"} <= 50ms"]), 2.0 / 3.0);
    close(goodput(&["tbc < 10ms"]), 0.0);
    close(goodput(&["count(jitter) >= 2"]), 1.0 / 3.0);
}

#[test]
fn request_is_good_if_every_judge_accepts_it() {
    let events = || {
        [
            answer(0, 100, "gold"),
            answer(1, 100, "free"),
            answer(2, 100, "free"),
        ]
    };
    let goodput = |judges: &[&str], said: &[Event]| {
        let all = events().into_iter().chain(said.iter().cloned());
        run_in(setup(&[], &[], judges), all).slos.goodput
    };
    let first = [
        judged("strict", 0, true),
        judged("strict", 1, false),
        judged("strict", 2, true),
    ];
    close(goodput(&["strict"], &first), 2.0 / 3.0);
    // A plugin that judged counts even if it was not announced: the record identifies its judges.
    close(goodput(&[], &first), 2.0 / 3.0);
    // A plugin that did not judge all requests was not called for them, or its results are lost: a
    // missing judgement is neither good nor bad.
    assert_eq!(goodput(&["strict"], &first[..1]), None);
    assert_eq!(goodput(&["strict", "silent"], &first), None);
    assert_eq!(goodput(&[], &[]), None);
}

/// A request that was not judged is neither good nor bad, and an objective on it is neither met nor
/// missed. The evaluation continues regardless.
#[test]
#[expect(clippy::too_many_lines, reason = "one table of failures")]
fn goodput_is_not_known_where_what_it_rests_on_failed() {
    let failed = |part| {
        Event::PluginFailed(FailedPlugin {
            plugin: match part {
                PluginRole::Metric => definition("jitter").plugin,
                _ => "strict".into(),
            },
            part,
            message: "in `it`: no".into(),
            session: None,
            at: None,
        })
    };
    let answers = [answer(0, 100, "gold"), answer(1, 100, "gold")];
    let ended = Event::RunEnded { at: ms(9000) };
    let run = |setup, more: &[Event]| run_in(setup, answers.iter().chain(more).chain([&ended]).cloned());
    let said = [judged("strict", 0, true), failed(PluginRole::RequestCheck)];
    let seen = run(
        setup(&["goodput > 0.4", "p50(ttfc) < 1s"], &[], &["strict"]),
        &said,
    );
    assert_eq!(
        (seen.slos.goodput, seen.slos.good_requests_per_second),
        (None, None)
    );
    assert_eq!(
        seen.slos.remarks,
        ["goodput is not known: the plugin `strict` failed while it judged requests"]
    );
    let results = seen.slo_results();
    assert_eq!(results["all_slos_met"], Value::Null);
    assert_eq!(results["results"][0]["met"], Value::Null);
    assert_eq!(
        results["results"][0]["detail"],
        "the plugin `strict` failed while it judged requests"
    );
    assert_eq!(results["results"][1]["met"], true);
    assert!(!seen.slos.all_met(), "an unknown result is not a success");

    // A condition on a plugin metric; unrelated results are unaffected.
    let condition = |slos: &[&str], goodput: &[&str], part| run(setup(slos, goodput, &[]), &[failed(part)]);
    let seen = condition(&["max(jitter) < 1ms"], &["jitter < 1ms"], PluginRole::Metric);
    assert_eq!(seen.slos.goodput, None);
    assert_eq!(
        seen.slos.results[0].unknown.as_deref(),
        Some("the plugin `tester` failed while it measured")
    );
    let seen = condition(&["p50(ttfc) < 50ms"], &["ttfc < 1s"], PluginRole::Metric);
    assert_eq!(seen.slos.goodput, Some(1.0));
    // An objective that is known to be missed remains missed.
    let seen = condition(
        &["p50(ttfc) < 50ms", "max(jitter) < 1ms"],
        &["ttfc < 1s"],
        PluginRole::Metric,
    );
    assert_eq!(seen.slo_results()["all_slos_met"], false);

    // Samples before the failure are shown. They decide an objective only if no further sample can
    // change the result: a maximum that exceeds its bound.
    let sample = weighted("jitter", 0.5, 1.0, Some(id(0, 0)));
    let until_failure = |slo: &str| {
        run(
            setup(&[slo], &[], &[]),
            &[sample.clone(), failed(PluginRole::Metric)],
        )
    };
    for undecided in ["max(jitter) < 1ms", "mean(jitter) < 0.1ms", "count(jitter) >= 2"] {
        let seen = until_failure(undecided);
        let result = &seen.slos.results[0];
        assert!(!result.met && result.observed.is_some(), "{undecided}");
        assert_eq!(
            result.unknown.as_deref(),
            Some("the plugin `tester` failed while it measured"),
            "{undecided}"
        );
        assert_eq!(
            result.detail.as_deref(),
            Some(
                "the plugin `tester` failed while it measured: the observed value is that of the samples until then"
            )
        );
        assert_eq!(seen.slo_results()["all_slos_met"], Value::Null, "{undecided}");
        assert!(!seen.slos.all_met(), "{undecided}");
    }
    for missed in ["max(jitter) < 0.1ms", "min(jitter) > 1ms", "count(jitter) < 1"] {
        let seen = until_failure(missed);
        assert_eq!(seen.slos.results[0].unknown, None, "{missed}");
        assert_eq!(seen.slo_results()["all_slos_met"], false, "{missed}");
    }

    // A record that was cut before everything was judged or measured. Samples that are measured
    // again are complete.
    let seen = run(setup(&[], &[], &["strict"]), &said[..1]);
    assert_eq!(seen.slos.goodput, None);
    assert_eq!(
        seen.slos.remarks,
        ["goodput is not known: the plugin `strict` judged 1 of 2 answers"]
    );
    let cut = |setup: Setup| run_in(setup, answers.iter().cloned()).slos;
    let conditioned = || setup(&[], &["jitter < 1ms"], &[]);
    let seen = cut(conditioned());
    assert_eq!(seen.goodput, None);
    assert!(
        seen.remarks[0].contains("the plugin `tester` may have more samples of `jitter`"),
        "{:?}",
        seen.remarks
    );
    let seen = cut(Setup {
        repeated_metrics: ["jitter".to_owned()].into(),
        ..conditioned()
    });
    assert_eq!(seen.goodput, Some(1.0));
}

#[test]
fn a_judgement_does_not_make_a_failure_good() {
    let broken = finished(failed(answered(0, 0, 0, 90), ErrorClass::Timeout, None));
    let seen = run_in(setup(&[], &[], &["kind"]), [broken, judged("kind", 0, true)]);
    assert_eq!(seen.slos.goodput, Some(0.0));
}

/// A record contains the plugins' earlier verdicts. A plugin that is run again replaces its own
/// verdicts in place, and no others.
#[test]
fn later_plugin_result_replaces_earlier_one() {
    let told = |plugin: &str, name: &str| Event::RunJudged {
        plugin: plugin.into(),
        name: name.into(),
        met: name != "bad",
        observed: None,
        threshold: 0.25,
        detail: "then".into(),
    };
    let then = [told("a", "x"), told("b", "bad"), told("b", "y"), told("c", "z")];
    let mut seen = run_in(setup(&[], &[], &[]), then);
    assert!(!seen.slos.all_met());
    let names = |seen: &Evaluation| {
        let said = seen.slos.verdicts.iter();
        said.map(|said| format!("{} {}", said.plugin, said.verdict.name))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&seen), ["a x", "b bad", "b y", "c z"]);
    let verdict = &seen.slos.verdicts[1].verdict;
    assert_eq!((verdict.threshold, verdict.detail.as_str()), (0.25, "then"));
    let anew = SloVerdict {
        name: "good".into(),
        met: true,
        observed: Some(0.5),
        threshold: 0.25,
        detail: String::new(),
    };
    seen.set_verdicts("b", vec![anew.clone()]);
    seen.set_verdicts("d", vec![anew]);
    assert_eq!(names(&seen), ["a x", "b good", "c z", "d good"]);
    assert!(seen.slos.all_met());
    seen.set_verdicts("a", Vec::new());
    assert_eq!(names(&seen), ["b good", "c z", "d good"]);
}

#[test]
fn failed_judge_makes_goodput_unknown() {
    let met = |part| {
        let failed = Event::PluginFailed(FailedPlugin {
            plugin: "odd".into(),
            part,
            message: "in `check`: no".into(),
            session: None,
            at: None,
        });
        let mut events = vec![answer(0, 100, "gold"), failed];
        events.push(Event::RunEnded { at: ms(1000) });
        let results = evaluate(Vec::new(), events).slo_results();
        (
            results["all_slos_met"].clone(),
            results["failed_plugins"].as_array().map(Vec::len),
        )
    };
    assert_eq!(met(PluginRole::SloCheck), (Value::Null, Some(1)));
    assert_eq!(met(PluginRole::RequestCheck), (Value::Null, Some(1)));
    // The plugin's metrics are not objectives.
    assert_eq!(met(PluginRole::Metric), (true.into(), Some(0)));
}

/// A workload plugin that fails on many sessions has one entry, with the count, the first message
/// and the first sessions. The objectives are not affected.
#[test]
fn failures_of_the_workload_are_summarized() {
    let failed = |session| {
        Event::PluginFailed(FailedPlugin {
            plugin: "agents".into(),
            part: PluginRole::Workload,
            message: format!("in `agent.answered`: boom in {session}"),
            session: Some(SessionId(session)),
            at: Some(ms(session)),
        })
    };
    let mut events = vec![answer(0, 100, "gold")];
    events.extend((7..307).map(failed));
    events.push(Event::RunEnded { at: ms(1000) });
    let seen = evaluate(Vec::new(), events);
    let summary = seen.summary_stats();
    assert_eq!(
        summary["Failed Plugins"],
        serde_json::json!([{
            "plugin": "agents", "part": "workload", "message": "in `agent.answered`: boom in 7", "failures": 300,
            "sessions": (7..27).collect::<Vec<u64>>(),
        }])
    );
    assert_eq!(
        seen.workload_failures[0].to_string(),
        "the plugin `agents` failed 300 times; the first, session 7: in `agent.answered`: boom in 7"
    );
    assert_eq!(seen.slo_results()["all_slos_met"], true);
    assert_eq!(seen.slo_results()["failed_plugins"], summary["Failed Plugins"]);
}

/// The requests that a failed agent would have sent were due, and their number is unknown.
#[test]
fn goodput_is_unknown_if_an_agent_failed_within_the_window() {
    let failed = |session, at| {
        Event::PluginFailed(FailedPlugin {
            plugin: "agents".into(),
            part: PluginRole::Workload,
            message: "in `agent.answered`: boom".into(),
            session: Some(SessionId(session)),
            at: Some(ms(at)),
        })
    };
    let run = |more: Vec<Event>| {
        let events = [answer(0, 100, "gold"), answer(1, 100, "gold")];
        let end = [
            Event::TimeoutReached { at: ms(500) },
            Event::RunEnded { at: ms(900) },
        ];
        let setup = setup(
            &["goodput > 0.4", "good_requests_per_second > 1"],
            &["ttfc < 1s"],
            &[],
        );
        run_in(setup, events.into_iter().chain(more).chain(end))
    };
    let whole = run(Vec::new());
    assert_eq!(whole.slos.goodput, Some(1.0));
    let lost = run(vec![session_started(7, 100), failed(7, 200), failed(8, 200)]);
    // Session 8 never began, so nothing of it was due.
    assert_eq!(lost.counts.failed_agent_sessions, 1);
    assert_eq!(lost.summary_stats()["Sessions with a Failed Agent"], 1);
    assert_eq!(lost.slos.goodput, None);
    let why = "the agents of 1 session failed, so the number of requests that were due is unknown";
    assert_eq!(lost.slos.remarks, [format!("goodput is not known: {why}")]);
    assert_eq!(lost.slos.results[0].unknown.as_deref(), Some(why));
    // The good requests themselves are known.
    assert!(lost.slos.results[1].met && lost.slos.results[1].unknown.is_none());
    assert_eq!(
        lost.slos.good_requests_per_second,
        whole.slos.good_requests_per_second
    );
    // Of sessions that failed after the timeout, nothing is missing in the metrics.
    for drained in [
        vec![session_started(7, 100), failed(7, 600)],
        vec![session_started(7, 600), failed(7, 200)],
    ] {
        assert_eq!(run(drained).slos.goodput, Some(1.0));
    }
}

#[test]
fn verdicts_of_plugins_count() {
    let mut seen = evaluate(Vec::new(), [answer(0, 100, "gold")]);
    assert!(seen.slos.all_met());
    let verdict = |name: &str, met| SloVerdict {
        name: name.into(),
        met,
        observed: Some(0.1),
        threshold: 0.2,
        detail: "by hand".into(),
    };
    seen.set_verdicts("tiers", vec![verdict("gold", true)]);
    assert!(seen.slos.all_met());
    seen.set_verdicts("tiers", vec![verdict("gold", true), verdict("free", false)]);
    assert!(!seen.slos.all_met());
    let file = seen.slo_results();
    assert_eq!(file["all_slos_met"], serde_json::json!(false));
    let row = &file["results"][1];
    assert_eq!(
        (
            &row["plugin"],
            &row["slo_metric_key"],
            &row["met"],
            &row["detail"]
        ),
        (&"tiers".into(), &"free".into(), &false.into(), &"by hand".into())
    );
}
