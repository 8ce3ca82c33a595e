//! Metrics and checks: their arguments, valid return values, and misbehavior.

mod judging;
mod observing;
mod readme;

use std::path::Path;
use std::sync::Arc;

use veeksha_lua::{LuaError, LuaEvaluator, LuaLimits, LuaScenario};
use veeksha_model::{
    Better, Chunk, ChunkKind, ErrorClass, Held, Label, Nanos, NodeId, Recorded, RequestId, RequestRecord,
    SessionId, Status, Usage,
};
use veeksha_ports::{
    MetricStats, OpenMetric, PluginFailure, PluginFailureKind, PluginSample, RunResults, SloVerdict,
    WindowStats,
};

use proptest::prelude::*;
use veeksha_scenario::Evaluator;

use crate::common::Folder;

/// Nanoseconds per millisecond.
const MS: Nanos = 1_000_000;

/// Returns a request of session 17: dispatched at 100 ms, chunks at 200, 250 and 450 ms.
fn request(node: u32) -> RequestRecord {
    let chunk = |at: Nanos, kind| Chunk {
        at: at * MS,
        lag: 0,
        bytes: 10,
        kind,
        merged: false,
    };
    RequestRecord {
        session_requests: 3,
        parents: vec![NodeId(1).into(), NodeId(4).into()],
        history_parent: Some(NodeId(1)),
        wait_after_ready: 250 * MS,
        intended: 90 * MS,
        held: Held {
            sessions: 2 * MS,
            in_flight: 3 * MS,
            in_prefill: 0,
        },
        dispatched_at: 100 * MS,
        picked_up_at: Some(101 * MS),
        sent_at: Some(102 * MS),
        first_byte_at: Some(150 * MS),
        completed_at: 460 * MS,
        processed_at: 470 * MS,
        chunks: vec![
            chunk(150, ChunkKind::Role),
            chunk(200, ChunkKind::Reasoning),
            chunk(250, ChunkKind::Content),
            chunk(450, ChunkKind::Tool),
            chunk(455, ChunkKind::Done),
        ],
        chunk_tokens: vec![1, 2, 2],
        target_prompt_tokens: 30,
        prompt_tokens: 31,
        total_prompt_tokens: 64,
        target_output_tokens: Some(6),
        output_tokens: 5,
        usage: Some(Usage {
            prompt: 64,
            completion: 5,
            cached: Some(16),
            reasoning: None,
        }),
        server: 2,
        connect: Some(MS),
        template_tokens: 4,
        recorded: Some(Recorded {
            at: Some(5 * MS),
            latency: None,
            prompt_tokens: Some(60),
            output_tokens: Some(7),
        }),
        ideal_cached_tokens: Some(20),
        body_digest: None,
        response_id: Some("chatcmpl-1".into()),
        trace_id: Some(255),
        labels: vec![
            ("tier".to_owned(), "gold".to_owned()),
            ("turn".to_owned(), "2".to_owned()),
        ],
        ..RequestRecord::answered(RequestId {
            session: SessionId(17),
            node: NodeId(node),
        })
    }
}

fn failed(node: u32, class: ErrorClass) -> RequestRecord {
    RequestRecord {
        status: Status::Failed {
            class,
            message: "no more".to_owned(),
        },
        http_status: None,
        chunks: Vec::new(),
        chunk_tokens: Vec::new(),
        output_tokens: 0,
        usage: None,
        parents: Vec::new(),
        history_parent: None,
        picked_up_at: None,
        recorded: None,
        ..request(node)
    }
}

/// Loads the evaluator of a separate file.
fn plugin(source: &str) -> (Folder, Result<LuaEvaluator, LuaError>) {
    let folder = Folder::new(source);
    let evaluator = folder
        .load()
        .and_then(|loaded| loaded.evaluator("", None, folder.grants(1)));
    (folder, evaluator)
}

fn evaluator(source: &str) -> LuaEvaluator {
    plugin(source).1.unwrap_or_else(|error| panic!("{error}"))
}

fn open(evaluator: &LuaEvaluator) -> OpenMetric {
    evaluator.metric.as_ref().unwrap().open().unwrap()
}

/// Opens a metric `m` whose `observe` has this body.
fn observing(body: &str) -> OpenMetric {
    open(&evaluator(&format!(
        "return {{ metrics = {{ m = {{ observe = function(request) if not request then return end\n{body}\nend }} }} }}"
    )))
}

fn observe(body: &str, records: &[RequestRecord]) -> Result<Vec<PluginSample>, PluginFailure> {
    observing(body)
        .collector
        .observe(&records.iter().collect::<Vec<_>>())
}

/// Returns true if an expression of `request` is true.
fn holds(record: &RequestRecord, expression: &str) -> bool {
    let made = observe(
        &format!("return if {expression} then 1 else 0"),
        std::slice::from_ref(record),
    );
    made.unwrap_or_else(|failure| panic!("{expression}: {failure}"))[0].value == 1.0
}

/// Results of a run that return the arguments of each query.
struct Asked;

impl RunResults for Asked {
    fn metrics(&self) -> Vec<String> {
        vec!["tbc".to_owned(), "ttfc".to_owned()]
    }

    fn run_metric(&self, name: &str) -> Option<f64> {
        match name {
            "goodput" => Some(0.75),
            "broken" => Some(f64::NAN),
            _ => None,
        }
    }

    fn stats(&self, metric: &str, filter: &[Label]) -> MetricStats {
        if metric != "ttfc" {
            return MetricStats::default();
        }
        MetricStats {
            count: 10 + filter.len() as u64,
            mean: 1.0,
            std: 2.0,
            min: 3.0,
            max: 4.0,
            p50: 5.0,
            p90: 6.0,
            p95: 7.0,
            p99: 8.0,
        }
    }

    fn percentile(&self, metric: &str, percent: f64, filter: &[Label]) -> Option<f64> {
        let of_gold = filter
            == [
                ("attempt".to_owned(), "2".to_owned()),
                ("tier".to_owned(), "gold".to_owned()),
            ];
        (metric == "ttfc").then_some(if of_gold { -percent } else { percent })
    }

    fn windows(&self, metric: &str, filter: &[Label], length: Nanos) -> Vec<WindowStats> {
        (0..2)
            .map(|index| WindowStats {
                from: index * length,
                to: (index + 1) * length,
                stats: self.stats(if index == 0 { metric } else { "none" }, filter),
            })
            .collect()
    }
}

#[test]
fn evaluators_of_a_scenario_are_found_by_their_place() {
    let folder = Folder::new(
        "
return {
  session_generator = { type = 'lua', agent = function(session) end },
  evaluators = {
    { type = 'performance' },
    { type = 'lua', name = 'tiers',
      metrics = { stalls = { observe = function(request) return 1 end } },
      good = function(request) return true end },
    { type = 'lua', check = function(results) return { { name = 'x', met = true, threshold = 1 } } end },
  },
}",
    );
    let loaded = folder.load().unwrap();
    let tiers = loaded.evaluator("evaluators.1", None, folder.grants(1)).unwrap();
    assert_eq!(tiers.name, "tiers");
    assert!(tiers.slo_check.is_none());
    assert_eq!(
        tiers.request_check.unwrap().open().unwrap().judge(&[&request(1)]),
        Ok(vec![true])
    );
    let info = tiers.metric.as_ref().unwrap().info().clone();
    assert_eq!((info.name.as_str(), info.engine), ("tiers", "lua"));
    assert_eq!(info.summary, "`evaluators.1.metrics` of scenario.lua");
    assert_eq!(info.digest, loaded.digest());
    let check = loaded
        .slo_check("evaluators.2", "evaluators[2]", folder.grants(1))
        .unwrap();
    assert_eq!(check.check(Arc::new(Asked)).unwrap().len(), 1);
    assert_eq!(check.info().name, "evaluators[2]");

    let missing = |error: Option<LuaError>| folder.clean(&error.unwrap().to_string());
    assert_eq!(
        missing(loaded.slo_check("evaluators.1", "x", folder.grants(1)).err()),
        "scenario.lua: `evaluators.1.check` is nothing, not a function"
    );
    assert_eq!(
        missing(loaded.metric("evaluators.2", "x", folder.grants(1)).err()),
        "scenario.lua: `evaluators.2.metrics` is nothing, not a function"
    );
}

#[test]
fn tables_that_are_no_evaluator() {
    for (source, message) in [
        (
            "return {}",
            "scenario.lua: `the table`: functions are missing: `metrics`, `good` or `check`",
        ),
        (
            "return {\n metrcs = {} }",
            "scenario.lua:2: `the table`: unknown field `metrcs`; did you mean `metrics`?",
        ),
        (
            "return { good = 1 }",
            "scenario.lua:1: `good`: expected a function, got the number 1",
        ),
        (
            "return { type = 'wasm', good = print }",
            "scenario.lua:1: `type`: expected `lua`, or nothing at all",
        ),
        (
            "return { name = 5, good = print }",
            "scenario.lua:1: `name`: expected a name, got the number 5",
        ),
        (
            "return { metrics = {} }",
            "scenario.lua:1: `metrics`: the table names no metric",
        ),
        (
            "return { metrics = {\n Stalls = { observe = print } } }",
            "scenario.lua:2: `metrics.Stalls`: `Stalls` cannot be a metric's name, which is made of small letters, digits and `_`, \
             begins with a letter and has at most 64 characters",
        ),
        (
            "return { metrics = { m = print } }",
            "scenario.lua:1: `metrics.m`: expected a table with unit, better, summary, observe, finish, got a function",
        ),
        (
            "return { metrics = { m = { observe = print, summary = 'a\\nb' } } }",
            "scenario.lua:1: `metrics.m.summary`: expected one line of text",
        ),
        (
            "return { metrics = { m = { unit = 's' } } }",
            "scenario.lua:1: `metrics.m`: the function `observe` is missing",
        ),
        (
            "return { metrics = { m = { observe = print,\n better = 'lower' } } }",
            "scenario.lua:2: `metrics.m.better`: expected `higher`, `less` or `neither`, got the text `lower`; did you mean `less`?",
        ),
        (
            "return { metrics = { m = { observe = print, units = 's' } } }",
            "scenario.lua:1: `metrics.m`: unknown field `units`; did you mean `unit`?",
        ),
    ] {
        let (folder, made) = plugin(source);
        let error = folder.clean(&made.err().expect(source).to_string());
        assert_eq!(error, message, "{source}");
    }
}

#[test]
fn the_name_of_a_file_is_the_evaluators() {
    let source = "return { good = function() return true end }";
    assert_eq!(evaluator(source).name, "scenario");
    let folder = Folder::new(source);
    let given = folder
        .load()
        .unwrap()
        .evaluator("", Some("mine"), folder.grants(1))
        .unwrap();
    assert_eq!(given.name, "mine");
}

#[test]
fn metrics_may_count_tokens_and_require_files() {
    let folder = Folder::new(
        "local words = require('lib/words')\nreturn { metrics = { m = { observe = function(r) return words(r.finish_reason) end } } }",
    )
    .with("lib/words.lua", "return function(text) return tokens.count(text .. ' and more') end");
    let metric = folder.load().unwrap().metric("", "m", folder.grants(1)).unwrap();
    let made = metric.open().unwrap().collector.observe(&[&request(1)]).unwrap();
    assert_eq!(made[0].value, 3.0, "`stop and more` has three words");
}

/// The example of the SDK: gaps between chunks above 200 ms. This request has one of 200 ms and
/// none above.
#[test]
fn the_example_of_the_sdk_measures_stalls() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../sdk/lua/stalls.lua");
    let loaded = LuaScenario::load(&path, LuaLimits::default()).unwrap();
    let grants = Folder::new("").grants(1);
    let stalls = loaded.evaluator("", None, grants).unwrap();
    assert_eq!(stalls.name, "stalls");
    let mut metric = open(&stalls);
    let names: Vec<&str> = metric
        .definitions
        .iter()
        .map(|definition| definition.name.as_str())
        .collect();
    assert_eq!(names, ["stalls", "stall_time", "stalls_of_session"]);

    let at = |node: u32, milliseconds: &[Nanos]| RequestRecord {
        chunks: milliseconds
            .iter()
            .map(|at| Chunk {
                at: at * MS,
                ..request(1).chunks[2]
            })
            .collect(),
        ..request(node)
    };
    // Gaps of 100, 300 and 500 ms; of 10 ms; no chunk at all.
    let records = [
        at(1, &[100, 200, 500, 1000]),
        at(2, &[100, 110]),
        failed(3, ErrorClass::Timeout),
    ];
    let made = metric
        .collector
        .observe(&records.iter().collect::<Vec<_>>())
        .unwrap();
    let seen: Vec<(u32, f64, Option<u32>)> = made
        .iter()
        .map(|sample| (sample.metric, (sample.value * 1e6).round() / 1e6, sample.of))
        .collect();
    assert_eq!(
        seen,
        [
            (0, 2.0, Some(0)),
            (1, 0.3, Some(0)),
            (1, 0.5, Some(0)),
            (0, 0.0, Some(1)),
        ]
    );
    let end = metric.collector.finish().unwrap();
    assert_eq!(end.len(), 1);
    assert_eq!((end[0].metric, end[0].value), (2, 2.0));

    let mut without_chunks = open(&stalls).collector;
    assert_eq!(without_chunks.observe(&[&records[2]]), Ok(Vec::new()));
    assert_eq!(
        without_chunks.finish(),
        Ok(Vec::new()),
        "a session without chunks has no value"
    );

    let mut check = stalls.request_check.as_ref().unwrap().open().unwrap();
    assert_eq!(
        veeksha_ports::judge(check.as_mut(), &records.iter().collect::<Vec<_>>()),
        Ok(vec![false, true, false])
    );
    let verdicts = stalls.slo_check.unwrap().check(Arc::new(Asked)).unwrap();
    assert_eq!(verdicts.len(), 1);
    // The results of this test do not have this metric.
    assert_eq!((verdicts[0].met, verdicts[0].observed), (true, None));
}

/// The paths of evaluators in the scenario's check lead to their functions.
#[test]
fn checked_scenarios_name_their_evaluators() {
    let folder = Folder::new(
        "
return {
  session_generator = { type = 'lua', agent = function(session) end },
  evaluators = {
    { type = 'lua', good = function(request) return true end },
    { type = 'lua', name = 'tiers', metrics = { m = { unit = 's', observe = function(request) return 1 end } } },
  },
}",
    );
    let loaded = folder.load().unwrap();
    let document = loaded.documents.clone().single().unwrap();
    let scenario = document.check(&Default::default()).unwrap();
    let mut found = Vec::new();
    for evaluator in &scenario.evaluators {
        if let Evaluator::Lua { name, index, .. } = evaluator {
            let path = format!("evaluators.{index}");
            let made = loaded.evaluator(&path, Some(name), folder.grants(1)).unwrap();
            found.push((made.name, made.metric.is_some(), made.request_check.is_some()));
        }
    }
    assert_eq!(
        found,
        [
            ("evaluators[0]".to_owned(), false, true),
            ("tiers".to_owned(), true, false)
        ]
    );
}

/// Generates a Lua expression of any shape.
fn any_value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("nil".to_owned()),
        Just("true".to_owned()),
        Just("0/0".to_owned()),
        Just("-1/0".to_owned()),
        Just("'3'".to_owned()),
        Just("request".to_owned()),
        Just("print".to_owned()),
        Just("request.chunk_at".to_owned()),
        Just("buffer.create(8)".to_owned()),
        Just("vector.create(1, 2, 3)".to_owned()),
        Just("setmetatable({ 1 }, {})".to_owned()),
        (-5..5i32).prop_map(|number| number.to_string()),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(|number| format!("{number:e}")),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let key = prop_oneof![
            Just(""),
            Just("value = "),
            Just("weight = "),
            Just("other = "),
            Just("[3] = "),
            Just("[1.5] = ")
        ];
        prop::collection::vec((key, inner), 0..4).prop_map(|fields| {
            let fields: Vec<String> = fields
                .into_iter()
                .map(|(key, value)| format!("{key}{value}"))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any return value is accepted or refused, and accepted values are finite.
    #[test]
    fn anything_may_be_returned(value in any_value()) {
        let source = format!(
            "return {{ metrics = {{ m = {{ observe = function(request) return {value} end, finish = function() local request return {value} end }} }},\n\
             good = function(request) return {value} end, check = function(request) return {value} end }}"
        );
        // `finish` has no request: its expression may fail, and nothing else may happen.
        let evaluator = evaluator(&source);
        let mut metric = open(&evaluator);
        let one = request(1);
        let observed = metric.collector.observe(&[&one, &one]);
        for samples in [observed, metric.collector.finish()] {
            match samples {
                Ok(samples) => prop_assert!(
                    samples.iter().all(|sample| sample.value.is_finite() && sample.weight.is_finite() && sample.weight > 0.0)
                ),
                Err(failure) => prop_assert!(failure.message.contains("scenario.lua:1: "), "{}", failure),
            }
        }
        if let Err(failure) = evaluator.request_check.as_ref().unwrap().open().unwrap().judge(&[&one]) {
            prop_assert!(failure.message.contains("scenario.lua:2: "), "{}", failure);
        }
        match evaluator.slo_check.as_ref().unwrap().check(Arc::new(Asked)) {
            Ok(verdicts) => prop_assert!(!verdicts.is_empty()),
            Err(failure) => prop_assert!(failure.message.contains("scenario.lua:2: "), "{}", failure),
        }
    }
}
