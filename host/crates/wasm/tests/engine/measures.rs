//! Metrics and checks: plugins receive all data of a request, their results are complete, and one
//! that misbehaves is stopped within limits, with a report of the request.

mod hostile;
mod sdk;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use veeksha_model::{Better, ChunkKind, ErrorClass, Label, Nanos, NodeId, RequestRecord, Status};
use veeksha_ports::{
    MetricCollector, MetricStats, OpenMetric, PluginFailure, PluginFailureKind, PluginSample, RequestCheck,
    RunResults, SloVerdict, WindowStats,
};
use veeksha_wasm::{EngineLimits, Grants, Kinds};

use crate::records::{batch, chunk, full, plain, requests};
use crate::support::{Kept, grants, load, tight};

fn opening(limits: EngineLimits, behaviour: &str) -> Result<OpenMetric, PluginFailure> {
    let plugin = load(limits, "hostile-measure");
    plugin
        .metric(format!(r#"{{"behaviour": "{behaviour}"}}"#), grants())?
        .open()
}

fn collecting(limits: EngineLimits, behaviour: &str) -> Box<dyn MetricCollector> {
    opening(limits, behaviour).unwrap().collector
}

fn checking(limits: EngineLimits, behaviour: &str) -> Box<dyn RequestCheck> {
    let plugin = load(limits, "hostile-measure");
    let factory = plugin.request_check(format!(r#"{{"behaviour": "{behaviour}"}}"#), grants());
    factory.unwrap().open().unwrap()
}

fn judging(limits: EngineLimits, behaviour: &str) -> Result<Vec<SloVerdict>, PluginFailure> {
    let plugin = load(limits, "hostile-measure");
    let check = plugin.slo_check(format!(r#"{{"behaviour": "{behaviour}"}}"#), grants())?;
    check.check(Arc::new(Run::default()))
}

/// Results that record the queries.
#[derive(Default)]
pub(crate) struct Run {
    asked: Mutex<Vec<String>>,
    /// Duration of a percentile query.
    slow: Duration,
}

impl Run {
    fn note(&self, line: String) {
        self.asked.lock().unwrap().push(line);
    }
}

/// Returns statistics with distinct values, for one more than `count` samples.
fn stats(count: u64) -> MetricStats {
    let at = |place: u8| count as f64 + f64::from(place) / 8.0;
    MetricStats {
        count,
        mean: at(1),
        std: at(2),
        min: at(3),
        max: at(4),
        p50: at(5),
        p90: at(6),
        p95: at(7),
        p99: at(8),
    }
}

impl RunResults for Run {
    fn metrics(&self) -> Vec<String> {
        vec!["ttfc".into(), "mine".into()]
    }

    fn run_metric(&self, name: &str) -> Option<f64> {
        ["goodput", "ttfc"].contains(&name).then_some(0.5)
    }

    fn stats(&self, metric: &str, filter: &[Label]) -> MetricStats {
        self.note(format!("stats {metric} {filter:?}"));
        stats(filter.len() as u64)
    }

    fn percentile(&self, metric: &str, percent: f64, filter: &[Label]) -> Option<f64> {
        self.note(format!("percentile {metric} {percent} {filter:?}"));
        std::thread::sleep(self.slow);
        (metric == "ttfc").then_some(0.25)
    }

    fn windows(&self, metric: &str, filter: &[Label], length: Nanos) -> Vec<WindowStats> {
        self.note(format!("windows {metric} {filter:?} {length}"));
        let window = |from| WindowStats {
            from,
            to: from + length,
            stats: stats(from),
        };
        vec![window(7), window(1_000_000_007)]
    }
}

#[test]
fn a_component_may_measure_and_judge() {
    let plugin = load(EngineLimits::default(), "measure");
    let kinds = Kinds {
        metric: true,
        request_check: true,
        slo_check: true,
        ..Kinds::default()
    };
    assert_eq!(plugin.kinds(), kinds);
    assert_eq!(
        plugin.imports(),
        ["log"],
        "types and results are not capabilities"
    );
    let config = || r#"{"at_least": "3"}"#.to_owned();
    let metric = plugin.metric(config(), grants()).unwrap();
    let check = plugin.request_check(config(), grants()).unwrap();
    let slo = plugin.slo_check(config(), grants()).unwrap();
    for info in [metric.info(), check.info(), slo.info()] {
        assert_eq!((info.name.as_str(), info.engine), ("measure", "wasm"));
        assert_eq!(info.summary, "repeats its arguments");
        assert_eq!(info.digest, plugin.digest());
        assert_eq!(info.granted, ["log"]);
    }
}

#[test]
fn a_plugin_of_another_kind_is_refused_by_name() {
    let refusal = |failure: Option<PluginFailure>| {
        let failure = failure.unwrap();
        assert_eq!(
            (failure.function.as_str(), &failure.kind),
            ("load", &PluginFailureKind::Load)
        );
        failure.message
    };
    let codec = load(EngineLimits::default(), "codec");
    assert_eq!(
        refusal(codec.metric("{}".into(), grants()).err()),
        "it is an endpoint codec, which does not measure metrics; name a plugin that exports `metric`"
    );
    assert!(
        refusal(codec.request_check("{}".into(), grants()).err()).ends_with("that exports `request-check`")
    );
    assert!(refusal(codec.slo_check("{}".into(), grants()).err()).ends_with("that exports `slo-check`"));
    let measure = load(EngineLimits::default(), "measure");
    assert_eq!(
        refusal(measure.workload("{}".into(), grants()).err()),
        "it is a metric, a request check and an SLO check, which does not generate sessions; name it \
         among the `evaluators`"
    );
}

#[test]
fn a_configuration_is_refused_before_the_run() {
    let plugin = load(EngineLimits::default(), "measure");
    let failure = plugin.request_check("{}".into(), grants()).err().unwrap();
    assert_eq!(failure.function, "checker.open");
    assert!(
        matches!(&failure.kind, PluginFailureKind::Refused { code, path: Some(path), .. } if code == "no-number" && path == "/at_least"),
        "{failure}"
    );
}

#[test]
fn definitions_come_with_the_plugins_name() {
    let plugin = load(EngineLimits::default(), "measure");
    let open = plugin.metric("{}".into(), grants()).unwrap().open().unwrap();
    let definitions: Vec<_> = open
        .definitions
        .iter()
        .map(|d| (d.name.as_str(), d.unit.as_str(), d.better, d.plugin.as_str()))
        .collect();
    assert_eq!(
        definitions,
        [
            ("mirror", "tokens", Better::Neither, "measure"),
            ("gap", "s", Better::Less, "measure"),
            ("seen", "1", Better::Higher, "measure"),
        ]
    );
}

#[test]
fn everything_known_of_a_request_arrives() {
    let failed = RequestRecord {
        status: Status::Failed {
            class: ErrorClass::InStream,
            message: "tier".into(),
        },
        chunks: Vec::new(),
        output_tokens: 0,
        labels: vec![("tier".into(), "free".into())],
        ..plain(1, 0)
    };
    let cancelled = RequestRecord {
        status: Status::Failed {
            class: ErrorClass::Cancelled,
            message: String::new(),
        },
        // More tokens than chunks, and no count per chunk.
        output_tokens: 9,
        parents: vec![NodeId(7).into()],
        ..plain(2, 0)
    };
    let all = [full(), failed, cancelled, plain(3, 0)];
    let log = Arc::new(Kept::default());
    let grants = Grants {
        log: log.clone(),
        ..grants()
    };
    let plugin = load(EngineLimits::default(), "measure");
    let mut open = plugin.metric("{}".into(), grants).unwrap().open().unwrap();
    let samples = open.collector.observe(&batch(&all)).unwrap();
    let lines: Vec<String> = log.lines().into_iter().map(|(_, _, line)| line).collect();
    let said = |line: usize, words: &[&str]| {
        for word in words {
            assert!(lines[line].contains(word), "{word} in {}", lines[line]);
        }
    };
    said(
        0,
        &[
            "session 139; node 140; session_requests 101; history_parent 104; wait_after_ready 105; ",
            "intended_at 106; held 1230; dispatched_at 107; picked_up_at 108; sent_at 109; first_byte_at 110; ",
            "completed_at 9007199254740990; measured false; status Status::Ok; ",
            "http_status 119; server 131; connection_reused true; retried true; ",
            "chunk_tokens_known true; output_tokens_from_usage true; target_prompt_tokens 120; prompt_tokens 121; total_prompt_tokens 122; ",
            "template_tokens 123; target_output_tokens 124; output_tokens 125; ",
            "usage_prompt 126; usage_completion 127; usage_cached 128; usage_reasoning 129; ideal_cached_tokens 130; ",
            "parents [102, 103]; chunks [113, 115, 116] [5, 0, 6] [0, 1, 2]; ",
            "labels [(\"tier\", \"gold\"), (\"stop\", \"tier\")]; finish \"stop\"; ",
            "connection Some(132) Some(133) Some(134); then Some(135) Some(136) Some(137) Some(138); ",
        ],
    );
    assert!(!lines[0].contains("class"), "{}", lines[0]);
    said(
        1,
        &[
            "measured true; status Status::Failed; ",
            "connection_reused false; retried false; chunk_tokens_known true; output_tokens_from_usage false; ",
            "parents []; chunks [] [] []; labels [(\"tier\", \"free\")]; finish \"\"; class in_stream, message tier; ",
        ],
    );
    said(
        2,
        &[
            "status Status::Cancelled; ",
            "chunk_tokens_known false; ",
            "parents [7]; chunks [4000, 6000, 7000] [0, 0, 0] [1, 1, 1]; labels []; finish \"\"; class cancelled, message ; ",
        ],
    );
    // An absent value is the maximum of its column.
    said(
        3,
        &[
            "history_parent 4294967295; ",
            "picked_up_at 9007199254740991; sent_at 9007199254740991; first_byte_at 9007199254740991; ",
            "http_status 4294967295; ",
            "target_output_tokens 4294967295; output_tokens 3; ",
            "usage_prompt 4294967295; usage_completion 4294967295; usage_cached 4294967295; usage_reasoning 4294967295; \
             ideal_cached_tokens 4294967295; ",
            "parents []; chunks [4000, 6000, 7000] [1, 1, 1] [1, 1, 1]; labels []; finish \"stop\"; ",
        ],
    );
    assert!(
        ["class", "connection ", "then"]
            .iter()
            .all(|word| !lines[3].contains(word)),
        "{}",
        lines[3]
    );
    let sample = |metric, value, weight, of| PluginSample {
        metric,
        value,
        weight,
        of,
    };
    assert_eq!(samples.len(), 4 + 2 + 2 + 2);
    assert_eq!(samples[0], sample(0, 125.0, 1.0, Some(0)));
    assert_eq!(*samples.last().unwrap(), sample(1, 1e-6, 1.0, Some(3)));
    assert_eq!(open.collector.finish().unwrap(), [sample(2, 4.0, 1.0, None)]);
}

/// More requests than one call accepts; each sample keeps its request, and the collector its count.
#[test]
fn a_large_batch_keeps_its_order() {
    let mut collector = collecting(tight(), "good");
    let all = requests(700, 999);
    for round in 0..2 {
        let samples = collector.observe(&batch(&all)).unwrap();
        assert_eq!(samples.len(), 700);
        for (index, sample) in (0..).zip(&samples) {
            assert_eq!(sample.of, Some(index));
            assert_eq!(
                sample.value,
                f64::from(round * 700 + index),
                "a collector keeps its state"
            );
        }
    }
    assert_eq!(collector.observe(&[]).unwrap(), []);
    assert_eq!(collector.finish().unwrap()[0].value, 1400.0);
    let judged = checking(tight(), "good").judge(&batch(&all)).unwrap();
    assert_eq!(judged, vec![true; 700]);
}

/// An answer with more events than one call accepts is a separate call.
#[test]
fn a_long_answer_arrives() {
    let long = RequestRecord {
        chunks: (0..200_000).map(|at| chunk(at, ChunkKind::Content)).collect(),
        output_tokens: 200_000,
        ..plain(0, 0)
    };
    let plugin = load(EngineLimits::default(), "measure");
    let mut open = plugin.metric("{}".into(), grants()).unwrap().open().unwrap();
    let samples = open
        .collector
        .observe(&[&plain(1, 0), &long, &plain(2, 0)])
        .unwrap();
    let gaps = |of| {
        samples
            .iter()
            .filter(|s| s.metric == 1 && s.of == Some(of))
            .count()
    };
    assert_eq!([gaps(0), gaps(1), gaps(2)], [2, 199_999, 2]);
}

#[test]
fn a_request_is_good_or_not() {
    let plugin = load(EngineLimits::default(), "measure");
    let factory = plugin
        .request_check(r#"{"at_least": "3"}"#.into(), grants())
        .unwrap();
    let mut check = factory.open().unwrap();
    let few = RequestRecord {
        output_tokens: 2,
        ..plain(1, 0)
    };
    assert_eq!(
        check.judge(&[&plain(0, 0), &few, &plain(2, 0)]).unwrap(),
        [true, false, true]
    );
    assert!(check.judge(&[]).unwrap().is_empty());
}

#[test]
fn results_are_read_through_calls() {
    let plugin = load(EngineLimits::default(), "measure");
    let check = plugin.slo_check("{}".into(), grants()).unwrap();
    let run = Arc::new(Run::default());
    let verdicts = check.check(run.clone()).unwrap();
    let numbers = |count: u64| {
        let MetricStats {
            count,
            mean,
            std,
            min,
            max,
            p50,
            p90,
            p95,
            p99,
        } = stats(count);
        format!("{count} {mean} {std} {min} {max} {p50} {p90} {p95} {p99}")
    };
    let detail = |aggregate: &str| {
        format!(
            "aggregate {aggregate}; all {}; gold {}; windows 7-1000000007: {}, 1000000007-2000000007: {}",
            numbers(0),
            numbers(1),
            numbers(7),
            numbers(1_000_000_007)
        )
    };
    let verdict = |name: &str, met, observed, aggregate| SloVerdict {
        name: name.into(),
        met,
        observed,
        threshold: 1.0,
        detail: detail(aggregate),
    };
    assert_eq!(
        verdicts,
        [
            verdict("ttfc", true, Some(0.25), "Some(0.5)"),
            verdict("mine", false, None, "None"),
        ]
    );
    let asked = run.asked.lock().unwrap().clone();
    let gold = r#"[("tier", "gold")]"#;
    let expected: Vec<String> = ["ttfc", "mine"]
        .iter()
        .flat_map(|name| {
            [
                format!("percentile {name} 99 {gold}"),
                format!("windows {name} [] 1000000000"),
                format!("stats {name} []"),
                format!("stats {name} {gold}"),
            ]
        })
        .collect();
    assert_eq!(asked, expected);
    assert_eq!(
        Arc::strong_count(&run),
        1,
        "what the guest was handed went with it"
    );
}
