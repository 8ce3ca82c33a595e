//! Plugins that measure and judge: everything known of a request reaches them, what they say comes back whole, and one that
//! misbehaves is stopped in bounds, with the request on which it did.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use veeksha_model::{Better, ChunkKind, ErrorClass, Label, Nanos, NodeId, RequestRecord, Status};
use veeksha_ports::{
    MetricCollector, OpenMetric, PluginFailure, PluginFailureKind, PluginSample, RequestCheck, RunResults,
    SloVerdict, Stats, WindowStats,
};
use veeksha_wasm::{Grants, Kinds, Limits};

use crate::records::{batch, chunk, full, plain, requests};
use crate::support::{Kept, engine, grants, load, tight};

fn opening(limits: Limits, behaviour: &str) -> Result<OpenMetric, PluginFailure> {
    let plugin = load(limits, "hostile-measure");
    plugin
        .metric(format!(r#"{{"behaviour": "{behaviour}"}}"#), grants())?
        .open()
}

fn collecting(limits: Limits, behaviour: &str) -> Box<dyn MetricCollector> {
    opening(limits, behaviour).unwrap().collector
}

fn checking(limits: Limits, behaviour: &str) -> Box<dyn RequestCheck> {
    let plugin = load(limits, "hostile-measure");
    let factory = plugin.request_check(format!(r#"{{"behaviour": "{behaviour}"}}"#), grants());
    factory.unwrap().open().unwrap()
}

fn judging(limits: Limits, behaviour: &str) -> Result<Vec<SloVerdict>, PluginFailure> {
    let plugin = load(limits, "hostile-measure");
    let check = plugin.slo_check(format!(r#"{{"behaviour": "{behaviour}"}}"#), grants())?;
    check.check(Arc::new(Run::default()))
}

/// Results that remember what they were asked.
#[derive(Default)]
struct Run {
    asked: Mutex<Vec<String>>,
    /// How long a percentile takes.
    slow: Duration,
}

impl Run {
    fn note(&self, line: String) {
        self.asked.lock().unwrap().push(line);
    }
}

/// Figures that are all different, for one more than `count` samples.
fn figures(count: u64) -> Stats {
    let at = |place: u8| count as f64 + f64::from(place) / 8.0;
    Stats {
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

    fn figure(&self, name: &str) -> Option<f64> {
        (name == "ttfc").then_some(0.5)
    }

    fn stats(&self, metric: &str, filter: &[Label]) -> Stats {
        self.note(format!("stats {metric} {filter:?}"));
        figures(filter.len() as u64)
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
            stats: figures(from),
        };
        vec![window(7), window(1_000_000_007)]
    }
}

#[test]
fn a_component_may_measure_and_judge() {
    let plugin = load(Limits::default(), "measure");
    let kinds = Kinds {
        metric: true,
        request_check: true,
        slo_check: true,
        ..Kinds::default()
    };
    assert_eq!(plugin.kinds(), kinds);
    assert_eq!(plugin.imports(), ["log"], "types and results are no capabilities");
    let config = || r#"{"at_least": "3"}"#.to_owned();
    let metric = plugin.metric(config(), grants()).unwrap();
    let check = plugin.request_check(config(), grants()).unwrap();
    let slo = plugin.slo_check(config(), grants()).unwrap();
    for info in [metric.info(), check.info(), slo.info()] {
        assert_eq!((info.name.as_str(), info.engine), ("measure", "wasm"));
        assert_eq!(info.summary, "says back what it was told");
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
    let codec = load(Limits::default(), "codec");
    assert_eq!(
        refusal(codec.metric("{}".into(), grants()).err()),
        "it is an endpoint codec, which measures no metrics of its own; name a plugin that exports `metric`"
    );
    assert!(
        refusal(codec.request_check("{}".into(), grants()).err()).ends_with("that exports `request-check`")
    );
    assert!(refusal(codec.slo_check("{}".into(), grants()).err()).ends_with("that exports `slo-check`"));
    let measure = load(Limits::default(), "measure");
    assert_eq!(
        refusal(measure.workload("{}".into(), grants()).err()),
        "it is a metric, a request check and an SLO check, which makes no sessions of its own; it measures or judges a run: name \
         it among the `evaluators`"
    );
}

#[test]
fn a_configuration_is_refused_before_the_run() {
    let plugin = load(Limits::default(), "measure");
    let failure = plugin.request_check("{}".into(), grants()).err().unwrap();
    assert_eq!(failure.function, "checker.open");
    assert!(
        matches!(&failure.kind, PluginFailureKind::Refused { code, path: Some(path), .. } if code == "no-number" && path == "/at_least"),
        "{failure}"
    );
}

#[test]
fn definitions_come_with_the_plugins_name() {
    let plugin = load(Limits::default(), "measure");
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
        // More tokens than chunks, and nobody counted them.
        output_tokens: 9,
        parents: vec![NodeId(7)],
        ..plain(2, 0)
    };
    let all = [full(), failed, cancelled, plain(3, 0)];
    let log = Arc::new(Kept::default());
    let grants = Grants {
        log: log.clone(),
        ..grants()
    };
    let plugin = load(Limits::default(), "measure");
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
    // What does not exist is the largest number of its column.
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

/// More requests than one call takes; each sample keeps its request, and the collector what it counted.
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

/// An answer with more events than a call takes is a call by itself.
#[test]
fn a_long_answer_arrives() {
    let long = RequestRecord {
        chunks: (0..200_000).map(|at| chunk(at, ChunkKind::Content)).collect(),
        output_tokens: 200_000,
        ..plain(0, 0)
    };
    let plugin = load(Limits::default(), "measure");
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
    let plugin = load(Limits::default(), "measure");
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
    let plugin = load(Limits::default(), "measure");
    let check = plugin.slo_check("{}".into(), grants()).unwrap();
    let run = Arc::new(Run::default());
    let verdicts = check.check(run.clone()).unwrap();
    let numbers = |count: u64| {
        let Stats {
            count,
            mean,
            std,
            min,
            max,
            p50,
            p90,
            p95,
            p99,
        } = figures(count);
        format!("{count} {mean} {std} {min} {max} {p50} {p90} {p95} {p99}")
    };
    let detail = |figure: &str| {
        format!(
            "figure {figure}; all {}; gold {}; windows 7-1000000007: {}, 1000000007-2000000007: {}",
            numbers(0),
            numbers(1),
            numbers(7),
            numbers(1_000_000_007)
        )
    };
    let verdict = |name: &str, met, observed, figure| SloVerdict {
        name: name.into(),
        met,
        observed,
        threshold: 1.0,
        detail: detail(figure),
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

#[test]
fn a_panic_names_the_authors_line_and_the_request() {
    let mut collector = collecting(tight(), "trap");
    collector.observe(&batch(&requests(3, 9))).unwrap();
    let failure = collector.observe(&batch(&requests(600, 300))).unwrap_err();
    assert_eq!(
        (failure.plugin.as_str(), failure.function.as_str(), &failure.kind),
        ("hostile-measure", "collector.observe", &PluginFailureKind::Trap)
    );
    assert!(failure.message.ends_with("a request was miscounted"), "{failure}");
    assert_eq!(failure.input.as_deref(), Some("request 300/0 (301 of 600)"));
    let source = include_str!("../../../../../tests/guests/hostile-measure/src/lib.rs");
    let line = source
        .lines()
        .position(|line| line.contains("panic!(\"a request was miscounted"))
        .unwrap() as u32
        + 1;
    let innermost = &failure.frames[0];
    assert!(innermost.function.ends_with("miscounted"), "{innermost:?}");
    assert_eq!(innermost.line, Some(line), "{innermost:?}");
    // A metric with a hole is none: it has failed for the rest of the run, and says the same each time.
    assert_eq!(collector.observe(&batch(&requests(1, 9))).unwrap_err(), failure);
    assert_eq!(collector.finish().unwrap_err(), failure);

    let mut check = checking(tight(), "trap");
    let failure = check.judge(&batch(&requests(600, 300))).unwrap_err();
    assert_eq!(
        (failure.function.as_str(), failure.input.as_deref()),
        ("checker.judge", Some("request 300/0 (301 of 600)"))
    );
    assert_eq!(check.judge(&batch(&requests(1, 9))).unwrap_err(), failure);
}

#[test]
fn an_error_of_the_plugin_is_its_own() {
    let refused = |failure: PluginFailure| {
        assert_eq!(failure.message, "it is bad");
        assert!(
            matches!(&failure.kind, PluginFailureKind::Refused { code, .. } if code == "bad"),
            "{failure}"
        );
        failure.input
    };
    let all = requests(64, 63);
    let failure = collecting(tight(), "error").observe(&batch(&all)).unwrap_err();
    assert_eq!(refused(failure).as_deref(), Some("request 63/0 (64 of 64)"));
    let failure = checking(tight(), "error").judge(&batch(&all)).unwrap_err();
    assert_eq!(refused(failure).as_deref(), Some("request 63/0 (64 of 64)"));
    refused(judging(tight(), "error").unwrap_err());
}

/// One that fails only after all that it has seen is not blamed on a request, nor is one that fails on many at once.
#[test]
fn nobody_is_blamed_without_evidence() {
    let mut late = collecting(tight(), "late");
    let all = requests(60, 999);
    late.observe(&batch(&all)).unwrap();
    let failure = late.observe(&batch(&all)).unwrap_err();
    assert!(failure.message.ends_with("a hundred is enough"), "{failure}");
    assert_eq!(
        failure.input.as_deref(),
        Some("60 requests, beginning with request 0/0 (1 of 60)")
    );
    for input in [
        collecting(tight(), "crowd")
            .observe(&batch(&all))
            .unwrap_err()
            .input,
        checking(tight(), "crowd").judge(&batch(&all)).unwrap_err().input,
    ] {
        assert_eq!(
            input.as_deref(),
            Some("60 requests, beginning with request 0/0 (1 of 60)")
        );
    }
}

#[test]
fn samples_that_are_none_are_refused_by_name() {
    let why = |behaviour: &str| {
        let mut collector = collecting(tight(), behaviour);
        let failure = collector.observe(&batch(&requests(300, 280))).unwrap_err();
        assert_eq!(failure.kind, PluginFailureKind::Result, "{behaviour}: {failure}");
        assert_eq!(failure.function, "collector.observe");
        assert_eq!(collector.finish().unwrap_err(), failure);
        (failure.message, failure.input.unwrap())
    };
    let of_the_request = |message: &str| {
        (
            format!("the sample of `one` of request 280/0 (281 of 300) {message}"),
            "request 280/0 (281 of 300)".to_owned(),
        )
    };
    let values = "values are finite, and what does not exist is left out";
    assert_eq!(why("nan"), of_the_request(&format!("is NaN; {values}")));
    assert_eq!(why("infinite"), of_the_request(&format!("is -inf; {values}")));
    let weights = "weights are finite and above 0";
    assert_eq!(
        why("weight-infinite"),
        of_the_request(&format!("has the weight inf; {weights}"))
    );
    assert_eq!(
        why("weight-zero"),
        of_the_request(&format!("has the weight 0; {weights}"))
    );
    assert_eq!(
        why("weight-negative"),
        of_the_request(&format!("has the weight -1; {weights}"))
    );
    // The second call of the batch is shown 44 requests.
    let call = "44 requests, beginning with request 256/0 (257 of 300)".to_owned();
    assert_eq!(
        why("metric"),
        (
            "sample 24 is of metric 2; it defines 2, counted from 0".into(),
            call.clone()
        )
    );
    assert_eq!(
        why("of"),
        (
            "a sample of `one` is of request 44; the batch has 44, counted from 0".into(),
            call
        )
    );
    let last = |behaviour: &str| {
        let failure = collecting(tight(), behaviour).finish().unwrap_err();
        assert_eq!(failure.function, "collector.finish");
        (failure.kind, failure.message)
    };
    assert_eq!(
        last("finish-nan"),
        (
            PluginFailureKind::Result,
            format!("a sample of `two` is NaN; {values}")
        )
    );
    assert_eq!(
        last("finish-of").1,
        "a sample of `two` is of request 0; the batch has 0, counted from 0"
    );
    assert_eq!(last("finish-trap").0, PluginFailureKind::Trap);
}

#[test]
fn definitions_that_cannot_be_are_refused_before_the_run() {
    let why = |behaviour: &str, function: &str| {
        let failure = opening(tight(), behaviour).err().unwrap();
        assert_eq!(failure.function, function, "{failure}");
        failure.message
    };
    let defining = |behaviour| why(behaviour, "collector.definitions");
    assert!(why("open-trap", "collector.open").contains("it does not open"));
    assert!(defining("definitions-trap").ends_with("nothing is defined today"));
    assert_eq!(defining("definitions-none"), "it defines no metrics");
    assert!(defining("definitions-name").starts_with("`Not a name` is no name of a metric"));
    assert_eq!(defining("definitions-twice"), "it defines `one` twice");
    assert_eq!(
        defining("definitions-many"),
        "it defines 300 metrics, at most 256 are taken"
    );
    assert!(defining("definitions-huge").starts_with("it handed over more data"));
}

#[test]
fn as_many_judgements_as_requests() {
    let why = |behaviour: &str| {
        let failure = checking(tight(), behaviour)
            .judge(&batch(&requests(5, 9)))
            .unwrap_err();
        assert_eq!(failure.kind, PluginFailureKind::Result, "{failure}");
        failure.message
    };
    assert_eq!(why("too-few"), "given 5 requests, it judged 4");
    assert_eq!(why("too-many"), "given 5 requests, it judged 6");
    assert_eq!(why("none"), "given 5 requests, it judged 0");
    assert_eq!(
        why("huge"),
        "it handed over more data in one call than is taken (8 MiB)"
    );
}

#[test]
fn verdicts_that_are_none_are_refused() {
    let why = |behaviour: &str| {
        let failure = judging(tight(), behaviour).unwrap_err();
        assert_eq!(failure.kind, PluginFailureKind::Result, "{failure}");
        assert_eq!(failure.function, "checker.check");
        failure.message
    };
    assert_eq!(why("empty"), "it gave no verdict");
    assert_eq!(why("nameless"), "a verdict has no name");
    assert_eq!(why("twice"), "two verdicts are named `a`");
    assert_eq!(why("many"), "it gave 2,000 verdicts, at most 1,000 are taken");
    assert_eq!(
        why("observed"),
        "the observed value of the verdict `a` is NaN; it must be finite"
    );
    assert_eq!(
        why("threshold"),
        "the threshold of the verdict `a` is inf; it must be finite"
    );
    assert_eq!(
        why("huge"),
        "it handed over more data in one call than is taken (8 MiB)"
    );
    let good = |behaviour: &str| judging(tight(), behaviour).unwrap().remove(0);
    let verdict = SloVerdict {
        name: "a".into(),
        met: true,
        observed: Some(1.0),
        threshold: 2.0,
        detail: "a detail".into(),
    };
    assert_eq!(good("good"), verdict);
    assert_eq!(good("unobserved").observed, None);
    assert_eq!(good("keep"), verdict, "a handle that is kept goes with the store");
}

/// A question that cannot be answered ends the check, with the reason.
#[test]
fn questions_that_cannot_be_are_refused() {
    let why = |behaviour: &str| {
        let failure = judging(tight(), behaviour).unwrap_err();
        assert_eq!(failure.kind, PluginFailureKind::Trap, "{failure}");
        failure.message
    };
    assert_eq!(
        why("percent"),
        "results: percentile 101 of `ttfc` asked for; percentiles go from 0 to 100"
    );
    assert!(why("percent-nan").starts_with("results: percentile NaN"));
    assert_eq!(
        why("windows"),
        "results: windows of no length of `ttfc` asked for"
    );
}

/// What is no UTF-8 is no text of the contract: it does not come in.
#[test]
fn bytes_that_are_no_text_are_refused() {
    for failure in [
        judging(tight(), "text").unwrap_err(),
        opening(tight(), "definitions-text").err().unwrap(),
    ] {
        assert!(failure.message.contains("utf-8"), "{failure}");
        assert_eq!(failure.plugin, "hostile-measure");
    }
}

/// The workload's labels are not the plugin's fault: a batch of them is cut so that it fits.
#[test]
fn long_labels_do_not_use_up_the_plugins_memory() {
    let labelled = |session: u64| RequestRecord {
        labels: vec![("user".into(), format!("{session:07}").repeat(1 << 17))],
        ..plain(session, 0)
    };
    let all: Vec<RequestRecord> = (0..100).map(labelled).collect();
    assert_eq!(
        collecting(tight(), "good").observe(&batch(&all)).unwrap().len(),
        100
    );
    assert_eq!(
        checking(tight(), "good").judge(&batch(&all)).unwrap(),
        vec![true; 100]
    );
}

#[test]
fn nobody_waits_for_an_endless_loop() {
    let limits = || Limits {
        call_deadline: Duration::from_millis(500),
        ..tight()
    };
    let stopped = |failure: PluginFailure| {
        assert_eq!(failure.kind, PluginFailureKind::Deadline { allowed_ms: 500 });
        failure.input
    };
    let all = requests(20, 7);
    let failure = collecting(limits(), "loop").observe(&batch(&all)).unwrap_err();
    assert_eq!(stopped(failure).as_deref(), Some("request 7/0 (8 of 20)"));
    let failure = checking(limits(), "loop").judge(&batch(&all)).unwrap_err();
    assert_eq!(stopped(failure).as_deref(), Some("request 7/0 (8 of 20)"));
    stopped(judging(limits(), "loop").unwrap_err());
}

/// `measure` asks for two percentiles. Their time is the host's: it does not use up the plugin's, and has a bound of its own.
#[test]
fn a_check_is_not_blamed_for_slow_answers() {
    let check = |results_deadline| {
        let limits = Limits {
            call_deadline: Duration::from_millis(500),
            results_deadline,
            ..tight()
        };
        let run = Run {
            slow: Duration::from_millis(1000),
            ..Run::default()
        };
        let plugin = load(limits, "measure");
        plugin
            .slo_check("{}".into(), grants())
            .unwrap()
            .check(Arc::new(run))
    };
    assert_eq!(check(Duration::from_secs(60)).unwrap().len(), 2);
    let failure = check(Duration::from_millis(1100)).unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert_eq!(
        failure.message,
        "results: the host took more than 1100 ms to answer what was asked in one call"
    );
}

#[test]
fn nobody_takes_more_than_is_given() {
    let refused = |failure: PluginFailure| {
        assert!(
            matches!(failure.kind, PluginFailureKind::Memory { allowed, .. } if allowed == 64 << 20),
            "{failure}"
        );
    };
    let all = requests(2, 9);
    refused(collecting(tight(), "memory").observe(&batch(&all)).unwrap_err());
    refused(checking(tight(), "memory").judge(&batch(&all)).unwrap_err());
    refused(judging(tight(), "memory").unwrap_err());
    let failure = collecting(tight(), "huge").observe(&batch(&all)).unwrap_err();
    assert_eq!(
        failure.message,
        "it handed over more data in one call than is taken (8 MiB)"
    );
    refused(
        collecting(tight(), "ten-million")
            .observe(&batch(&all))
            .unwrap_err(),
    );
    // A collector may not be replaced, so what it keeps of every batch ends it; a check may be, so it goes on.
    let mut collector = collecting(tight(), "leak");
    let ended = (0..64).find_map(|_| collector.observe(&batch(&all)).err());
    refused(ended.unwrap());
    let swelling = Limits {
        recycle_memory_bytes: 30 << 20,
        ..tight()
    };
    let mut check = checking(swelling, "leak");
    for _ in 0..200 {
        assert_eq!(check.judge(&batch(&all)).unwrap(), [true, true]);
    }
}

/// The three kinds of one component made with the SDK.
#[test]
fn the_sdk_measures_and_judges() {
    let plugin = load(Limits::default(), "sdk-measure");
    let kinds = Kinds {
        metric: true,
        request_check: true,
        slo_check: true,
        ..Kinds::default()
    };
    assert_eq!(plugin.kinds(), kinds);
    assert_eq!(plugin.imports(), ["log"], "only for what a panic says");
    let config = || r#"{"limit": 3}"#.to_owned();
    let longer = RequestRecord {
        output_tokens: 9,
        labels: vec![("tier".into(), "gold".into())],
        ..plain(1, 0)
    };
    let failed = RequestRecord {
        status: Status::Failed {
            class: ErrorClass::Timeout,
            message: String::new(),
        },
        output_tokens: 4,
        ..plain(2, 0)
    };
    let all = [plain(0, 0), longer, failed];
    let mut open = plugin.metric(config(), grants()).unwrap().open().unwrap();
    let names: Vec<&str> = open.definitions.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["excess", "most"]);
    let sample = |metric, value, weight, of| PluginSample {
        metric,
        value,
        weight,
        of,
    };
    assert_eq!(
        open.collector.observe(&batch(&all)).unwrap(),
        [sample(0, 0.0, 1.0, Some(0)), sample(0, 6.0, 2.0, Some(1))]
    );
    assert_eq!(open.collector.finish().unwrap(), [sample(1, 9.0, 1.0, None)]);
    let mut check = plugin.request_check(config(), grants()).unwrap().open().unwrap();
    assert_eq!(check.judge(&batch(&all)).unwrap(), [true, false, false]);

    let run = Arc::new(Run::default());
    let verdicts = plugin
        .slo_check(config(), grants())
        .unwrap()
        .check(run.clone())
        .unwrap();
    let met: Vec<(&str, bool, Option<f64>)> = verdicts
        .iter()
        .map(|verdict| (verdict.name.as_str(), verdict.met, verdict.observed))
        .collect();
    // `Run` has no samples of `mine`, a p99 of 1.0 for `ttfc` unfiltered, and one window of two that holds any.
    assert_eq!(
        met,
        [
            ("half of gold", false, None),
            ("ttfc", true, Some(1.0)),
            ("figure", true, Some(0.5)),
            ("busy seconds", false, Some(2.0)),
        ]
    );
    assert_eq!(verdicts[0].detail, "no more than the limit");
    assert!(
        run.asked
            .lock()
            .unwrap()
            .contains(&r#"percentile mine 50 [("tier", "gold")]"#.to_owned())
    );
}

#[test]
fn the_sdk_names_what_is_wrong() {
    let plugin = load(Limits::default(), "sdk-measure");
    for refused in [
        plugin.metric(r#"{"limit": 0}"#.into(), grants()).err(),
        plugin.request_check(r#"{"limit": 0}"#.into(), grants()).err(),
        plugin.slo_check(r#"{"limit": 0}"#.into(), grants()).err(),
    ] {
        assert!(
            matches!(refused.unwrap().kind, PluginFailureKind::Refused { path: Some(path), .. } if path == "/limit")
        );
    }
    let mut open = plugin
        .metric(r#"{"limit": 3}"#.into(), grants())
        .unwrap()
        .open()
        .unwrap();
    let talkative = RequestRecord {
        output_tokens: 5000,
        ..plain(7, 1)
    };
    let failure = open.collector.observe(&[&plain(0, 0), &talkative]).unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert!(
        failure.message.ends_with("no answer has 5000 tokens"),
        "{failure}"
    );
    assert_eq!(failure.input.as_deref(), Some("request 7/1 (2 of 2)"));
    let frame = &failure.frames[0];
    assert!(
        frame.file.as_deref().unwrap().ends_with("sdk-measure/src/lib.rs"),
        "{failure}"
    );
}

/// The plugin of the repository, on tokens that come 100 ms after dispatch and again 10 s later: etalon's code counts 200 missed
/// deadlines, its documentation one late token.
#[test]
fn the_example_measures_fluidity() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../plugins/dist/fluidity.wasm");
    let plugin = engine(Limits::default())
        .load("fluidity", &std::fs::read(path).unwrap())
        .unwrap();
    assert_eq!(plugin.imports(), ["log"], "only for what a panic says");
    let mut open = plugin.metric("{}".into(), grants()).unwrap().open().unwrap();
    let names: Vec<&str> = open.definitions.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(
        names,
        ["fluidity_index", "fluidity_index_tokens", "fluidity_misses"]
    );
    let stalled = RequestRecord {
        dispatched_at: 0,
        chunks: vec![
            chunk(100_000_000, ChunkKind::Reasoning),
            chunk(10_100_000_000, ChunkKind::Content),
        ],
        output_tokens: 2,
        ..plain(0, 0)
    };
    let samples = open.collector.observe(&[&stalled]).unwrap();
    let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
    assert_eq!(values, [1.0 / 201.0, 0.5, 200.0]);
    let refused = plugin
        .metric(r#"{"decode_deadline": 0}"#.into(), grants())
        .err()
        .unwrap();
    assert!(
        matches!(&refused.kind, PluginFailureKind::Refused { path: Some(path), .. } if path == "/decode_deadline"),
        "{refused}"
    );
}
