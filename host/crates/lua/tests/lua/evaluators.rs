//! Metrics and checks: what they are given, what they may return, and what happens when they misbehave.

use std::path::Path;
use std::sync::Arc;

use veeksha_lua::{LuaError, LuaEvaluator, LuaLimits, LuaScenario};
use veeksha_model::{
    Better, Chunk, ChunkKind, ErrorClass, Held, Label, Nanos, NodeId, Recorded, RequestId, RequestRecord,
    SessionId, Status, Usage,
};
use veeksha_ports::{
    OpenMetric, PluginFailure, PluginFailureKind, PluginSample, RunResults, SloVerdict, Stats, WindowStats,
};

use proptest::prelude::*;
use veeksha_scenario::Evaluator;

use crate::common::Folder;

/// Milliseconds.
const MS: Nanos = 1_000_000;

/// A request of session 17: dispatched at 100 ms, chunks at 200, 250 and 450 ms.
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
        parents: vec![NodeId(1), NodeId(4)],
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

/// The evaluator that a file of its own returns.
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

/// A metric `m` whose `observe` has this body.
fn observing(body: &str) -> OpenMetric {
    open(&evaluator(&format!(
        "return {{ metrics = {{ m = {{ observe = function(request)\n{body}\nend }} }} }}"
    )))
}

fn observe(body: &str, records: &[RequestRecord]) -> Result<Vec<PluginSample>, PluginFailure> {
    observing(body)
        .collector
        .observe(&records.iter().collect::<Vec<_>>())
}

/// Value, weight and request of each sample of request 17/2.
fn samples(body: &str) -> Vec<(f64, f64)> {
    observe(body, &[request(2)])
        .unwrap_or_else(|failure| panic!("{failure}"))
        .iter()
        .map(|sample| (sample.value, sample.weight))
        .collect()
}

fn failure(body: &str) -> PluginFailure {
    observe(body, &[request(2)]).expect_err("the metric should fail")
}

/// Whether an expression of `request` is true.
fn holds(record: &RequestRecord, expression: &str) -> bool {
    let made = observe(
        &format!("return if {expression} then 1 else 0"),
        std::slice::from_ref(record),
    );
    made.unwrap_or_else(|failure| panic!("{expression}: {failure}"))[0].value == 1.0
}

#[test]
fn every_field_of_a_request() {
    let answered = request(2);
    for expression in [
        "request.session == 17 and request.node == 2 and request.session_requests == 3",
        "#request.parents == 2 and request.parents[1] == 1 and request.parents[2] == 4",
        "request.history_parent == 1 and request.wait_after_ready == 0.25",
        "request.intended_at == 0.09 and request.held == 0.005 and request.dispatched_at == 0.1",
        "request.picked_up_at == 0.101 and request.sent_at == 0.102 and request.first_byte_at == 0.15",
        "request.completed_at == 0.46 and request.measured == true",
        "request.status == 'ok' and request.error_class == nil and request.error_message == nil",
        "request.finish_reason == 'stop' and request.http_status == 200",
        "#request.chunk_at == 3 and request.chunk_at[1] == 0.2 and request.chunk_at[3] == 0.45",
        "table.concat(request.chunk_tokens, ' ') == '1 2 2'",
        "table.concat(request.chunk_kinds, ' ') == 'reasoning content tool'",
        "request.target_prompt_tokens == 30 and request.prompt_tokens == 31 and request.total_prompt_tokens == 64",
        "request.template_tokens == 4 and request.target_output_tokens == 6 and request.output_tokens == 5",
        "request.output_tokens_from_usage == true and request.ideal_cached_tokens == 20",
        "request.usage.prompt == 64 and request.usage.completion == 5 and request.usage.cached == 16",
        "request.usage.reasoning == nil",
        "request.connection_reused == true and request.retried == false and request.server == 2",
        "request.resolve == nil and request.connect == 0.001 and request.tls == nil",
        "request.recorded.at == 0.005 and request.recorded.latency == nil",
        "request.recorded.prompt_tokens == 60 and request.recorded.output_tokens == 7",
        "request.labels.tier == 'gold' and request.labels.turn == '2' and request.labels.none == nil",
        // 0.2 - 0.1, 0.45 - 0.1 and (0.45 - 0.2) / 4, each from whole nanoseconds.
        "request.ttfc == 0.1 and request.end_to_end_latency == 0.35 and request.tpot == 0.0625",
    ] {
        assert!(holds(&answered, expression), "{expression}");
    }
}

#[test]
fn a_request_without_an_answer_has_no_latency() {
    let timeout = failed(3, ErrorClass::Timeout);
    for expression in [
        "request.status == 'failed' and request.error_class == 'timeout' and request.error_message == 'no more'",
        "request.finish_reason == nil and request.http_status == nil and request.usage == nil",
        "request.ttfc == nil and request.tpot == nil and request.end_to_end_latency == nil",
        "#request.chunk_at == 0 and #request.chunk_kinds == 0 and #request.parents == 0",
        "request.history_parent == nil and request.picked_up_at == nil and request.recorded == nil",
    ] {
        assert!(holds(&timeout, expression), "{expression}");
    }
    assert!(holds(
        &failed(3, ErrorClass::Cancelled),
        "request.status == 'cancelled'"
    ));

    // What was observed of a broken answer stays, what describes a whole one does not exist.
    let cut = RequestRecord {
        status: Status::Failed {
            class: ErrorClass::Truncated,
            message: String::new(),
        },
        ..request(1)
    };
    assert!(holds(
        &cut,
        "request.ttfc == 0.1 and request.tpot == nil and request.end_to_end_latency == nil and #request.chunk_at == 3"
    ));
    let one_chunk = RequestRecord {
        chunks: request(1).chunks[..2].to_vec(),
        ..request(1)
    };
    assert!(holds(
        &one_chunk,
        "request.tpot == nil and request.end_to_end_latency == 0.1"
    ));
}

#[test]
fn tokens_of_chunks_are_known_or_nil() {
    let one_each = RequestRecord {
        chunk_tokens: Vec::new(),
        output_tokens: 3,
        ..request(1)
    };
    assert!(holds(
        &one_each,
        "table.concat(request.chunk_tokens, ' ') == '1 1 1'"
    ));
    let unknown = RequestRecord {
        chunk_tokens: Vec::new(),
        ..request(1)
    };
    assert!(holds(&unknown, "request.chunk_tokens == nil"));
}

#[test]
fn what_observe_may_return() {
    for (body, expected) in [
        ("", &[][..]),
        ("return nil", &[]),
        ("return {}", &[]),
        ("return 2.5", &[(2.5, 1.0)]),
        ("return { 1, 2 }", &[(1.0, 1.0), (2.0, 1.0)]),
        ("return { value = 3 }", &[(3.0, 1.0)]),
        ("return { value = 3, weight = 0.5 }", &[(3.0, 0.5)]),
        (
            "return { { value = 3, weight = 2 }, 4, { value = -5 } }",
            &[(3.0, 2.0), (4.0, 1.0), (-5.0, 1.0)],
        ),
        // The gaps between chunks: 50 and 200 ms.
        (
            "local gaps = {}\nfor i = 2, #request.chunk_at do\n  gaps[i - 1] = math.round((request.chunk_at[i] - request.chunk_at[i - 1]) * 1000)\nend\nreturn gaps",
            &[(50.0, 1.0), (200.0, 1.0)],
        ),
    ] {
        assert_eq!(samples(body), expected, "{body}");
    }
}

#[test]
fn what_observe_may_not_return_is_told_with_metric_request_and_line() {
    for (body, message) in [
        (
            "return 0/0",
            "metric `m`: the value is not a number (NaN), as 0/0 is; return nil where there is nothing to measure",
        ),
        (
            "return { 1, -1/0 }",
            "metric `m`[2]: the value is infinite, as 1/0 is; return nil where there is nothing to measure",
        ),
        (
            "return { value = 1, weight = 0 }",
            "metric `m`.weight: 0 is not positive",
        ),
        (
            "return { value = 1, weight = 0/0 }",
            "metric `m`.weight: the value is not a number (NaN)",
        ),
        (
            "return { weight = 2 }",
            "metric `m`: a `weight` without a `value`",
        ),
        (
            "return { value = 1, wieght = 2 }",
            "metric `m`: unknown field `wieght`; did you mean `weight`?",
        ),
        (
            "return { 1, value = 2 }",
            "metric `m`: the table is both a list of samples and a sample with `value`",
        ),
        (
            "return { 1, {} }",
            "metric `m`[2]: an empty table; a sample has a `value`",
        ),
        (
            "return 'fast'",
            "metric `m`: expected a number, found the string \"fast\"",
        ),
        (
            "return true",
            "metric `m`: expected a number, found the boolean true",
        ),
        (
            "return { false }",
            "metric `m`[1]: expected a number, found the boolean false",
        ),
        (
            "return request",
            "metric `m`: expected a number, a sample or a list of them, found a table with a metatable",
        ),
    ] {
        let failure = failure(body);
        assert_eq!(failure.kind, PluginFailureKind::Result, "{body}: {failure}");
        let expected = format!("scenario.lua:1: {message}");
        assert!(failure.message.contains(&expected), "{body}: {}", failure.message);
        assert_eq!(failure.function, "metrics.m.observe");
        assert_eq!(failure.input.as_deref(), Some("request = 17/2"));
        assert_eq!(failure.plugin, "scenario");
    }
}

#[test]
fn errors_have_the_line_that_raised_them() {
    let failure = failure("local x = 1\nreturn request.labels.tier + x");
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert!(failure.message.contains("scenario.lua:3: "), "{failure}");
    assert_eq!(failure.frames[0].line, Some(3));
}

#[test]
fn names_that_no_request_has_are_errors() {
    for (body, message) in [
        (
            "return request.dispatched",
            "request: unknown field `dispatched`; did you mean `dispatched_at`?",
        ),
        (
            "return request.ok",
            "request: unknown field `ok`; write `request.status == \"ok\"`",
        ),
        (
            "return request.error",
            "request: unknown field `error`; there are `error_class` and `error_message`",
        ),
        (
            "return request[1]",
            "request: expected a string, found the number 1",
        ),
        (
            "for k, v in request do return 1 end",
            "request: its fields are read by their names and cannot be walked through",
        ),
    ] {
        let failure = failure(body);
        assert!(failure.message.ends_with(message), "{body}: {}", failure.message);
    }
}

#[test]
fn a_request_cannot_be_changed() {
    for (body, message) in [
        (
            "request.ttfc = 1",
            "request: a finished request cannot be changed",
        ),
        ("request.new = 1", "request: a finished request cannot be changed"),
        ("request.chunk_at[1] = 0", "attempt to modify a readonly table"),
        (
            "local c = request.chunk_at\nrequest.chunk_at = {}",
            "attempt to modify a readonly table",
        ),
        ("rawset(request, 'ttfc', 1)", "attempt to modify a readonly table"),
        (
            "table.insert(request.chunk_at, 1)",
            "attempt to modify a readonly table",
        ),
        ("request.usage.prompt = 0", "attempt to modify a readonly table"),
        ("request.labels.tier = 'x'", "attempt to modify a readonly table"),
        ("setmetatable(request, {})", "cannot change a protected metatable"),
        (
            "getmetatable(request).__index = nil",
            "attempt to index string with '__index'",
        ),
    ] {
        let mut metric = observing(&format!(
            "if request.node == 2 then\n{body}\nend\nreturn request.ttfc"
        ));
        let failure = metric.collector.observe(&[&request(2)]).expect_err(body);
        assert!(failure.message.contains(message), "{body}: {failure}");
        // The next request is none the worse.
        let next = metric.collector.observe(&[&request(5)]).unwrap();
        assert_eq!(next[0].value, 0.1, "{body}");
    }
}

#[test]
fn a_request_that_was_kept_cannot_be_read() {
    let source = "
local kept
return { metrics = { m = {
  observe = function(request)
    if kept then return kept.node end
    kept = request
  end,
  finish = function() return kept.node end,
} } }";
    for batch in [1, 2] {
        let mut metric = open(&evaluator(source));
        let (one, two) = (request(1), request(2));
        let outcome = if batch == 2 {
            metric.collector.observe(&[&one, &two])
        } else {
            metric.collector.observe(&[&one]).unwrap();
            metric.collector.observe(&[&two])
        };
        let failure = outcome.unwrap_err();
        assert!(
            failure.message.ends_with(
                "request: `node`: a request can be read only while the function that it was given to runs; keep the values that you \
                 need, not the request"
            ),
            "{failure}"
        );
        assert!(metric.collector.finish().is_err());
    }
}

/// The documented example of a metric with a memory: tokens of each session, told at the end.
#[test]
fn a_metric_keeps_what_it_likes_and_tells_it_at_the_end() {
    let source = "
local tokens, order = {}, {}
return { name = 'sessions', metrics = { session_tokens = {
  unit = 'tokens', better = 'higher', summary = 'output tokens of a session',
  observe = function(request)
    if not tokens[request.session] then table.insert(order, request.session) end
    tokens[request.session] = (tokens[request.session] or 0) + request.output_tokens
  end,
  finish = function()
    local found = {}
    for i, session in order do found[i] = { value = tokens[session], weight = 1 } end
    return found
  end,
} } }";
    let records: Vec<RequestRecord> = [(1, 5), (2, 7), (1, 6), (3, 1)]
        .iter()
        .map(|(session, tokens)| RequestRecord {
            id: RequestId {
                session: SessionId(*session),
                node: NodeId(1),
            },
            output_tokens: *tokens,
            ..request(1)
        })
        .collect();
    // However the requests are cut into batches.
    for size in 1..=4 {
        let mut metric = open(&evaluator(source));
        let definition = &metric.definitions[0];
        assert_eq!(
            (
                definition.name.as_str(),
                definition.unit.as_str(),
                definition.better,
                definition.plugin.as_str()
            ),
            ("session_tokens", "tokens", Better::Higher, "sessions")
        );
        assert_eq!(definition.summary, "output tokens of a session");
        for batch in records.chunks(size) {
            assert_eq!(
                metric.collector.observe(&batch.iter().collect::<Vec<_>>()),
                Ok(Vec::new())
            );
        }
        let end = metric.collector.finish().unwrap();
        assert_eq!(
            end.iter().map(|sample| sample.value).collect::<Vec<_>>(),
            [11.0, 7.0, 1.0]
        );
        assert!(end.iter().all(|sample| sample.of.is_none() && sample.metric == 0));
    }
}

#[test]
fn several_metrics_of_several_requests() {
    let source = "
return { metrics = {
  first = { observe = function(request) return request.node end },
  none = { observe = function(request) end },
  second = { observe = function(request) return { request.node * 10, request.node * 100 } end },
} }";
    let mut metric = open(&evaluator(source));
    let names: Vec<&str> = metric
        .definitions
        .iter()
        .map(|definition| definition.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["first", "none", "second"],
        "in the order in which they are written"
    );
    let made = metric.collector.observe(&[&request(1), &request(2)]).unwrap();
    let seen: Vec<(u32, f64, Option<u32>)> = made
        .iter()
        .map(|sample| (sample.metric, sample.value, sample.of))
        .collect();
    assert_eq!(
        seen,
        [
            (0, 1.0, Some(0)),
            (2, 10.0, Some(0)),
            (2, 100.0, Some(0)),
            (0, 2.0, Some(1)),
            (2, 20.0, Some(1)),
            (2, 200.0, Some(1)),
        ]
    );
    assert_eq!(metric.collector.finish(), Ok(Vec::new()));
}

#[test]
fn what_finish_returns_is_checked_too() {
    let source = "return { metrics = { m = { observe = function() end,\n finish = function() return { 1, 0/0 } end } } }";
    let failure = open(&evaluator(source)).collector.finish().unwrap_err();
    assert_eq!(failure.function, "metrics.m.finish");
    assert!(
        failure
            .message
            .contains("scenario.lua:2: metric `m`[2]: the value is not a number (NaN)"),
        "{failure}"
    );
    assert_eq!(failure.input, None);
}

#[test]
fn hostile_metrics_are_stopped() {
    let run = |body: &str| {
        let folder = Folder::new(&format!(
            "return {{ metrics = {{ m = {{ observe = function(request)\n{body}\nend }} }} }}"
        ))
        .hurried();
        let loaded = folder.load().unwrap();
        let metric = loaded.metric("", "hostile", folder.grants(1)).unwrap();
        let mut open = metric.open().unwrap();
        let failure = open.collector.observe(&[&request(2)]).expect_err(body);
        assert_eq!(failure.plugin, "hostile");
        failure
    };
    let endless = run("while true do end");
    assert_eq!(endless.kind, PluginFailureKind::Deadline { allowed_ms: 300 });
    assert!(endless.message.contains("scenario.lua:2: "), "{endless}");
    assert!(matches!(
        run("while true do pcall(function() while true do end end) end").kind,
        PluginFailureKind::Deadline { .. }
    ));
    assert!(matches!(
        run("local t = {} while true do t[#t + 1] = string.rep('x', 1000) end").kind,
        PluginFailureKind::Memory { .. } | PluginFailureKind::Deadline { .. }
    ));
    // What runs in the host's own functions, and in coroutines, is under the same deadline and the same memory.
    for bomb in [
        "return string.find(string.rep('a', 2000), string.rep('a*', 30) .. 'b')",
        "return (string.gsub(string.rep('a', 2000), string.rep('.-', 30) .. 'b', ''))",
        "coroutine.wrap(function() while true do end end)()",
        "local f = coroutine.wrap(function() while true do coroutine.yield() end end) while true do f() end",
        "error(setmetatable({}, { __tostring = function() while true do end end }))",
        "return string.rep('x', 1e9)",
        "return #string.rep(string.rep('x', 1e6), 1e6)",
        "local t = table.create(1e8, 0) return #t",
        "local t = {} for i = 1, 1e9 do t[i] = {} end",
        "local b = {} while true do b[#b + 1] = buffer.create(1e6) end",
        "local s = 'x' while true do s = s .. s end",
        "local all = {} while true do all[#all + 1] = coroutine.create(function() end) end",
    ] {
        let failure = run(bomb);
        assert!(
            matches!(
                failure.kind,
                PluginFailureKind::Memory { .. }
                    | PluginFailureKind::Deadline { .. }
                    | PluginFailureKind::Trap
            ),
            "{bomb}: {failure}"
        );
        assert_eq!(failure.input.as_deref(), Some("request = 17/2"), "{bomb}");
        assert_eq!(failure.function, "metrics.m.observe", "{bomb}");
    }
    let huge = run("return table.create(200000, 1)");
    assert!(
        huge.message.ends_with(
            "metric `m`: 200000 samples; one call may return 100000: give equal ones once, with a `weight`"
        ),
        "{huge}"
    );
    let recursive = run("local function f() return f() + 1 end return f()");
    assert_eq!(recursive.kind, PluginFailureKind::Trap, "{recursive}");
    for (body, message) in [
        ("return math.random()", "math.random is not available"),
        ("return os.time()", "attempt to index nil with 'time'"),
        (
            "return require('x')",
            "`x.lua`: files can be required only while the scenario is loaded",
        ),
        ("x = 1", "attempt to modify a readonly table"),
        ("return coroutine.yield(1)", "attempt to yield"),
        ("return table.clone(request)", "protected metatable"),
        (
            "return error({})",
            "an error was raised with a table as its value",
        ),
    ] {
        let failure = run(body);
        assert!(failure.message.contains(message), "{body}: {failure}");
    }
}

#[test]
fn good_says_true_false_or_nil() {
    let check =
        evaluator("return { good = function(request) return request.ttfc and request.ttfc < 0.15 end }")
            .request_check
            .unwrap();
    let slow = RequestRecord {
        dispatched_at: 10 * MS,
        ..request(2)
    };
    let empty = RequestRecord {
        chunks: Vec::new(),
        chunk_tokens: Vec::new(),
        ..request(3)
    };
    let batch = [&request(1), &slow, &empty, &failed(4, ErrorClass::Connect)];
    assert_eq!(
        check.open().unwrap().judge(&batch),
        Ok(vec![true, false, false, false])
    );
    assert_eq!(check.open().unwrap().judge(&[]), Ok(Vec::new()));
    assert_eq!(check.info().engine, "lua");
}

/// The engine shows a function what it is given; that nobody is asked about failures is `veeksha_ports::judge`'s part.
#[test]
fn good_is_not_asked_about_failures() {
    let check = evaluator("return { good = function(request) return request.ttfc < 1 end }")
        .request_check
        .unwrap();
    let batch = [&failed(1, ErrorClass::Status), &request(2)];
    assert_eq!(
        veeksha_ports::judge(check.open().unwrap().as_mut(), &batch),
        Ok(vec![false, true])
    );
    let failure = check.open().unwrap().judge(&batch).unwrap_err();
    assert_eq!(failure.input.as_deref(), Some("request = 17/1"));
}

#[test]
fn good_depends_on_the_request_alone() {
    let check = evaluator("local n = 0\nreturn { good = function(request)\n n += 1\n return n < 3 end }")
        .request_check
        .unwrap();
    let failure = check
        .open()
        .unwrap()
        .judge(&[&request(1), &request(2), &request(3)])
        .unwrap_err();
    assert!(
        failure.message.starts_with("")
            && failure
                .message
                .contains("scenario.lua:2: the answer was another one when it was asked again"),
        "{failure}"
    );
    assert_eq!(failure.input.as_deref(), Some("request = 17/1"));
}

#[test]
fn what_good_may_not_return() {
    let check = evaluator("return { good = function(request)\n return 1 end }")
        .request_check
        .unwrap();
    let failure = check.open().unwrap().judge(&[&request(1)]).unwrap_err();
    assert!(
        failure
            .message
            .ends_with("scenario.lua:1: `good`: expected true, false or nil, found the number 1"),
        "{failure}"
    );
    assert_eq!(
        (failure.function.as_str(), failure.kind),
        ("good", PluginFailureKind::Result)
    );
}

/// Results of a run that answer with what they were asked.
struct Asked;

impl RunResults for Asked {
    fn metrics(&self) -> Vec<String> {
        vec!["tbc".to_owned(), "ttfc".to_owned()]
    }

    fn figure(&self, name: &str) -> Option<f64> {
        match name {
            "goodput" => Some(0.75),
            "broken" => Some(f64::NAN),
            _ => None,
        }
    }

    fn stats(&self, metric: &str, filter: &[Label]) -> Stats {
        if metric != "ttfc" {
            return Stats::default();
        }
        Stats {
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

fn verdicts(body: &str) -> Result<Vec<SloVerdict>, PluginFailure> {
    let check = evaluator(&format!("return {{ check = function(results)\n{body}\nend }}"))
        .slo_check
        .unwrap();
    check.check(Arc::new(Asked))
}

/// Whether an expression of `results` is true.
fn judged(expression: &str) -> bool {
    let body = format!("return {{ {{ name = 'x', met = ({expression}), threshold = 1 }} }}");
    verdicts(&body).unwrap_or_else(|failure| panic!("{expression}: {failure}"))[0].met
}

#[test]
fn what_results_say() {
    for expression in [
        "table.concat(results:metrics(), ' ') == 'tbc ttfc'",
        "results:figure('goodput') == 0.75 and results:figure('other') == nil and results:figure('broken') == nil",
        "results:stats('ttfc').count == 10 and results:stats('ttfc', { a = 1, b = true }).count == 12",
        "results:stats('ttfc').mean == 1 and results:stats('ttfc').std == 2 and results:stats('ttfc').min == 3",
        "results:stats('ttfc').max == 4 and results:stats('ttfc').p50 == 5 and results:stats('ttfc').p90 == 6",
        "results:stats('ttfc').p95 == 7 and results:stats('ttfc').p99 == 8",
        // What was not measured is absent, and not 0.
        "results:stats('tbc').count == 0 and results:stats('tbc').p99 == nil and results:stats('tbc').mean == nil",
        "results:percentile('ttfc', 99.9) == 99.9 and results:percentile('tbc', 50) == nil",
        "results:percentile('ttfc', 50, { tier = 'gold', attempt = 2 }) == -50",
        "#results:windows('ttfc', nil, 2.5) == 2",
        "results:windows('ttfc', {}, 2.5)[2].from == 2.5 and results:windows('ttfc', {}, 2.5)[2].to == 5",
        "results:windows('ttfc', { a = 'b' }, 0.1)[1].stats.count == 11",
        "results:windows('ttfc', {}, 1)[2].stats.count == 0 and results:windows('ttfc', {}, 1)[2].stats.p99 == nil",
    ] {
        assert!(judged(expression), "{expression}");
    }
}

#[test]
fn what_results_cannot_be_asked() {
    for (call, message) in [
        (
            "results:stats()",
            "results:stats(metric, filter).metric: expected a string, found nothing (nil)",
        ),
        (
            "results:stats('ttfc', 'gold')",
            "results:stats(metric, filter).filter: expected a table of names and values",
        ),
        (
            "results:percentile('ttfc', 101)",
            "percent: expected a number from 0 to 100, found the number 101",
        ),
        (
            "results:percentile('ttfc', 0/0)",
            "percent: expected a number from 0 to 100, found the number NaN",
        ),
        (
            "results:windows('ttfc', {}, 0.01)",
            "seconds: expected a number of seconds from 0.1 to 1000000000, found the number 0.01",
        ),
        (
            "results:windows('ttfc', {})",
            "seconds: expected a number of seconds from 0.1 to 1000000000, found nothing (nil)",
        ),
        (
            "results:figure(1)",
            "results:figure(name): expected a string, found the number 1",
        ),
    ] {
        let failure = verdicts(&format!("local x = {call}\nreturn {{}}")).unwrap_err();
        assert!(failure.message.contains(message), "{call}: {}", failure.message);
        assert!(
            failure.message.contains("scenario.lua:2: "),
            "{call}: {}",
            failure.message
        );
    }
}

#[test]
fn verdicts_as_they_are_returned() {
    let body = "
local gold = results:percentile('ttfc', 99, { tier = 'gold', attempt = 2 })
return {
  { name = 'gold', met = gold <= 0.5, observed = gold, threshold = 0.5, detail = 'p99 of ttfc' },
  { name = 'silver', met = false, threshold = 2 },
}";
    assert_eq!(
        verdicts(body).unwrap(),
        [
            SloVerdict {
                name: "gold".to_owned(),
                met: true,
                observed: Some(-99.0),
                threshold: 0.5,
                detail: "p99 of ttfc".to_owned(),
            },
            SloVerdict {
                name: "silver".to_owned(),
                met: false,
                observed: None,
                threshold: 2.0,
                detail: String::new(),
            },
        ]
    );
}

#[test]
fn verdicts_that_cannot_be() {
    for (body, message) in [
        (
            "",
            "verdicts: expected a list of verdicts: { { name =, met =, threshold = }, ... }, found nothing (nil)",
        ),
        (
            "return {}",
            "verdicts: the list is empty; a check says something of at least one objective",
        ),
        (
            "return { name = 'x', met = true, threshold = 1 }",
            "verdicts: expected a list of verdicts; put a single one into braces of its own",
        ),
        (
            "return { 5 }",
            "verdicts[1]: expected a verdict: { name =, met =, threshold = }, found the number 5",
        ),
        (
            "return { { met = true, threshold = 1 } }",
            "verdicts[1]: `name` is missing",
        ),
        (
            "return { { name = ' ', met = true, threshold = 1 } }",
            "verdicts[1]: `name` is missing",
        ),
        (
            "return { { name = 'x', threshold = 1 } }",
            "verdicts[1]: `met` is missing",
        ),
        (
            "return { { name = 'x', met = 1, threshold = 1 } }",
            "verdicts[1].met: expected true or false, found the number 1",
        ),
        (
            "return { { name = 'x', met = true } }",
            "verdicts[1]: `threshold` is missing",
        ),
        (
            "return { { name = 'x', met = true, threshold = 0/0 } }",
            "verdicts[1].threshold: the value is not a number (NaN)",
        ),
        (
            "return { { name = 'x', met = true, threshold = 1, observed = 1/0 } }",
            "verdicts[1].observed: the value is infinite",
        ),
        (
            "return { { name = 'x', met = true, threshold = 1, treshold = 2 } }",
            "verdicts[1]: unknown field `treshold`; did you mean `threshold`?",
        ),
        (
            "local v = { name = 'x', met = true, threshold = 1 } return { v, v }",
            "verdicts[2]: a second verdict of the name `x`",
        ),
        (
            "return { { name = 'two words', met = true, threshold = 1 }, { name = ' two\\nwords', met = true, threshold = 1 } }",
            "verdicts[2]: a second verdict of the name `two words`",
        ),
        (
            "local all = {} for i = 1, 1001 do all[i] = { name = `v{i}`, met = true, threshold = 1 } end return all",
            "verdicts: 1001 verdicts; there may be 1000",
        ),
    ] {
        let failure = verdicts(body).expect_err(body);
        assert!(
            failure.message.contains(&format!("scenario.lua:1: {message}")),
            "{body}: {}",
            failure.message
        );
        assert_eq!(
            (failure.function.as_str(), failure.kind),
            ("check", PluginFailureKind::Result)
        );
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
            "scenario.lua:2: `metrics.m.better`: expected `higher`, `less` or `neither`, got the text `lower`",
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

/// The example of the SDK: gaps between chunks above 200 ms, of this request one of 200 ms and none above.
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
    // The results of this test know no such metric.
    assert_eq!((verdicts[0].met, verdicts[0].observed), (true, None));
}

/// What the scenario's check says of an evaluator is where its functions are found.
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

/// An expression of Lua, of any shape.
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

    /// Whatever functions return is taken or refused, and what is taken is finite.
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

/// The code block of the README that holds these words.
fn of_the_readme(words: &str) -> String {
    let readme = include_str!("../../../../../sdk/lua/README.md");
    let block = readme
        .split("```")
        .find(|block| block.starts_with("lua\n") && block.contains(words));
    block.unwrap().trim_start_matches("lua\n").to_owned()
}

#[test]
fn the_evaluator_of_the_readme_works() {
    let evaluators = of_the_readme("name = \"tiers\"");
    let folder = Folder::new(&format!(
        "return {{ session_generator = {{ type = 'lua', agent = function(session) end }},\n{evaluators} }}"
    ));
    let loaded = folder.load().unwrap();
    let document = loaded.documents.clone().single().unwrap();
    document.check(&Default::default()).unwrap();
    let tiers = loaded.evaluator("evaluators.0", None, folder.grants(1)).unwrap();
    // Chunks at 200, 250 and 450 ms, the first 100 ms after the dispatch.
    let made = open(&tiers).collector.observe(&[&request(1)]).unwrap();
    assert_eq!(made.len(), 1);
    assert!((made[0].value - 0.2).abs() < 1e-9);
    let late = |dispatched: Nanos, tier: &str| RequestRecord {
        dispatched_at: dispatched * MS,
        chunks: request(1).chunks[1..].to_vec(),
        labels: vec![("tier".to_owned(), tier.to_owned())],
        intended: 0,
        ..request(2)
    };
    // 190 ms and no more are always good; 500 ms are not good for gold. (The first chunk comes at 200 ms.)
    let slow = |tier: &str| RequestRecord {
        chunks: late(0, tier)
            .chunks
            .iter()
            .map(|chunk| Chunk {
                at: chunk.at + 300 * MS,
                ..*chunk
            })
            .collect(),
        ..late(0, tier)
    };
    let judged = tiers.request_check.unwrap().open().unwrap().judge(&[
        &late(10, "gold"),
        &slow("gold"),
        &slow("silver"),
    ]);
    assert_eq!(judged, Ok(vec![true, false, true]));
    let verdict = &tiers.slo_check.unwrap().check(Arc::new(Asked)).unwrap()[0];
    assert_eq!(
        (verdict.name.as_str(), verdict.met, verdict.threshold),
        ("gold never stalls", true, 0.2)
    );
}

#[test]
fn the_sweep_of_the_readme_is_one() {
    let folder = Folder::new(&of_the_readme("local cells = {}"));
    let cells = folder.load().unwrap().documents.cells().unwrap();
    assert_eq!(cells.len(), 6);
    for cell in cells {
        cell.document.check(&Default::default()).unwrap();
        assert_eq!(cell.settings.len(), 1);
    }
}
