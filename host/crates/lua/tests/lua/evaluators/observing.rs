//! Arguments and valid return values of `observe` and `finish`.

use super::*;

/// Returns value, weight and request of each sample of request 17/2.
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

    // Observations of an incomplete answer remain; fields of a complete one are absent.
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
fn accepts_each_kind_of_result_of_observe() {
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
fn invalid_result_of_observe_names_metric_request_and_line() {
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
        // The next request is not affected.
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

/// The documented example of a metric with state: tokens per session, reported at the end.
#[test]
fn metric_keeps_state_and_reports_it_at_the_end() {
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
    // The result does not depend on batch sizes.
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
  none = { observe = function(request) return nil end },
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
fn checks_results_of_finish() {
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
            "return {{ metrics = {{ m = {{ observe = function(request) if not request then return end\n{body}\nend }} }} }}"
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
    // The host's functions and coroutines run under the same deadline and memory limit.
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
        (
            "return os.time()",
            "os.time is not available; plugins have no clock",
        ),
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
