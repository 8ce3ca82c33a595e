//! Arguments and valid return values of `good` and `check`.

use super::*;

#[test]
fn good_returns_true_false_or_nil() {
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

/// The engine passes on every request; `veeksha_ports::judge` excludes failures.
#[test]
fn functions_without_return_are_refused_at_their_line() {
    for (functions, expected) in [
        ("good = function(r)\n  local fast = r.ttfc\nend", "2: `good`"),
        ("check = function(results) results:metrics() end", "2: `check`"),
        (
            "metrics = { m = { observe = function(r) local x = r.ttfc end } }",
            "2: `metrics.m.observe`",
        ),
        (
            "metrics = { m = { observe = function(r) return 1 end,\n finish = function() end } }",
            "3: `metrics.m.finish`",
        ),
    ] {
        let (folder, refused) = plugin(&format!("return {{\n{functions} }}"));
        let message = folder.clean(&refused.err().expect("a refusal").to_string());
        let expected =
            format!("scenario.lua:{expected}: the function has no `return`; end it with `return` and ");
        assert!(message.starts_with(&expected), "{message}");
    }
    let fails = "return { good = function(r) local id = r.session\n error(`no {id}`) end }";
    assert!(plugin(fails).1.is_ok(), "a function may always fail");
    // A metric may count, and give its samples at the end.
    let counts = "return { metrics = { m = { observe = function(r) local x = r.ttfc end, finish = function() return 1 end } } }";
    assert!(plugin(counts).1.is_ok());
}

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
fn refuses_invalid_results_of_good() {
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

fn verdicts(body: &str) -> Result<Vec<SloVerdict>, PluginFailure> {
    let check = evaluator(&format!(
        "return {{ check = function(results) if not results then return end\n{body}\nend }}"
    ))
    .slo_check
    .unwrap();
    check.check(Arc::new(Asked))
}

/// Returns true if an expression of `results` is true.
fn judged(expression: &str) -> bool {
    let body = format!("return {{ {{ name = 'x', met = ({expression}), threshold = 1 }} }}");
    verdicts(&body).unwrap_or_else(|failure| panic!("{expression}: {failure}"))[0].met
}

#[test]
fn results_return_metrics_and_statistics() {
    for expression in [
        "table.concat(results:metrics(), ' ') == 'tbc ttfc'",
        "results:aggregate('goodput') == 0.75 and results:aggregate('other') == nil and results:aggregate('broken') == nil",
        "results:stats('ttfc').count == 10 and results:stats('ttfc', { a = 1, b = true }).count == 12",
        "results:stats('ttfc').mean == 1 and results:stats('ttfc').std == 2 and results:stats('ttfc').min == 3",
        "results:stats('ttfc').max == 4 and results:stats('ttfc').p50 == 5 and results:stats('ttfc').p90 == 6",
        "results:stats('ttfc').p95 == 7 and results:stats('ttfc').p99 == 8",
        // Missing measurements are absent, not 0.
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
fn refuses_unknown_queries_of_results() {
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
            "results:aggregate(1)",
            "results:aggregate(name): expected a string, found the number 1",
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
            "verdicts: the list is empty; return at least one verdict",
        ),
        (
            "return { name = 'x', met = true, threshold = 1 }",
            "verdicts: expected a list of verdicts; put a single one into braces",
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
