//! Tool runs: they queue for the servers of their class, in virtual and in real time, and are part
//! of the record and of all results.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::page::{data, named};
use crate::results::{json, lines};
use crate::simulated::{ends_with, evaluated, labelled, path, real, simulated};
use crate::support::{assert_code, root, scenario as write_scenario, stderr, stdout, veeksha};

/// Sessions that call the one sandbox twice after a plan, and combine both results. `tools` are the
/// classes.
fn scenario(tools: &str, sessions: u32) -> String {
    format!(
        r#"
local sessions = function(index, rng)
  return {{
    labels = {{ tier = "gold" }},
    requests = {{
      {{ user = synthetic(40), output = {{ tokens = 4, exact = true }} }},
      {{ tool = "sandbox", after = 1, labels = {{ call = "first" }} }},
      {{ tool = "sandbox", after = {{ {{ node = 1, delay = "2ms" }} }}, time = "30ms", result_tokens = 17 }},
      {{ history = 1, after = {{ 2, 3 }}, output = {{ tokens = 4, exact = true }},
        user = {{ "Results:", result_of(2), result_of(3) }} }},
    }},
  }}
end
return {{
  seed = 7,
  session_generator = {{ type = "lua", sessions = sessions }},
  tools = {tools},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 3, rampup_seconds = 0 }},
  client = {{ api_base = "sim://default" }},
  runtime = {{ max_sessions = {sessions} }},
}}
"#
    )
}

const ONE_SERVER: &str = r#"{ sandbox = {
  servers = 1, time = { type = "uniform", min = 0.01, max = 0.04 }, cold_start = 0.05,
  result_tokens = { type = "constant", value = 9 },
} }"#;

fn number(line: &Value, key: &str) -> f64 {
    line[key].as_f64().unwrap_or_else(|| panic!("{key} of {line}"))
}

/// Rounding of the times in result files, in seconds.
const ROUNDING: f64 = 1e-6;

fn tool_runs(run: &Path) -> Vec<Value> {
    let mut runs = lines(run, "traces/trace.jsonl");
    runs.retain(|line| line["event"] == "tool_ran");
    runs
}

/// Checks the tool runs of [`scenario`] with [`ONE_SERVER`], and the requests that wait for them.
fn check(run: &Path, sessions: usize) {
    let mut runs = tool_runs(run);
    assert_eq!(runs.len(), 2 * sessions);
    runs.sort_by(|a, b| number(a, "started_at").total_cmp(&number(b, "started_at")));
    assert_eq!(runs[0]["cold"], true);
    assert!(runs[1..].iter().all(|run| run["cold"] == false));
    for pair in runs.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let expected = number(after, "ready_at").max(number(before, "at"));
        assert!(
            (number(after, "started_at") - expected).abs() < ROUNDING,
            "{before} {after}"
        );
    }
    let mut requests: BTreeMap<(u64, u64), Value> = BTreeMap::new();
    for line in lines(run, "metrics/request_level_metrics.jsonl") {
        let id = |key: &str| line[key].as_u64().expect("an id");
        requests.insert((id("session_id"), id("node_id")), line.clone());
    }
    let mut ends: BTreeMap<u64, f64> = BTreeMap::new();
    for run in &runs {
        let session = run["session_id"].as_u64().expect("an id");
        let plan = &requests[&(session, 1)];
        let after = if run["node_id"] == 3 { 0.002 } else { 0.0 };
        let ready = number(plan, "client_completed_at") + after;
        assert!((number(run, "ready_at") - ready).abs() < ROUNDING, "{run} {plan}");
        assert_eq!(run["result_tokens"], if run["node_id"] == 3 { 17 } else { 9 });
        let served = number(run, "at") - number(run, "started_at");
        let cold = if run["cold"] == true { 0.05 } else { 0.0 };
        let expected = if run["node_id"] == 3 {
            0.03..=0.03
        } else {
            0.01..=0.04
        };
        let served = served - cold;
        assert!(
            served > expected.start() - ROUNDING && served < expected.end() + ROUNDING,
            "{run}"
        );
        let end = ends.entry(session).or_default();
        *end = end.max(number(run, "at"));
    }
    for (session, end) in ends {
        let combine = &requests[&(session, 4)];
        assert!(
            (number(combine, "scheduler_ready_at") - end).abs() < ROUNDING,
            "{combine}"
        );
        // The words and both results.
        let tokens = number(combine, "target_num_delta_prompt_tokens");
        assert!(tokens >= 26.0, "{combine}");
    }
}

#[test]
fn tool_runs_queue_in_virtual_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "tools.lua", &scenario(ONE_SERVER, 6), &[]);
    check(&run, 6);
    let before = tool_runs(&run);
    assert_code(&veeksha(["evaluate", path(&run)]), 0);
    assert_eq!(tool_runs(&run), before, "the record has the tool runs");
}

#[test]
fn tool_runs_queue_in_real_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = real(folder.path(), "tools.lua", &scenario(ONE_SERVER, 6), 0);
    check(&run, 6);
}

/// At most 40 calls at once find 1,000 servers, or any number of them: none waits, although in real
/// time calls are known only after their answers are decoded and the agent has made its step.
#[test]
fn no_tool_run_waits_while_servers_are_free() {
    let text = |servers: &str| {
        format!(
            r#"
local function agent(session)
  local last
  for k = 1, 10 do
    last = session:request {{ user = "x", output = 2, after = last }}
    last = session:tool("sandbox", {{}})
  end
end
return {{
  session_generator = {{ type = "lua", agent = agent }},
  tools = {{ sandbox = {{ {servers} time = {{ type = "uniform", min = 0.002, max = 0.01 }} }} }},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 40, rampup_seconds = 0 }},
  client = {{ api_base = "sim://fast" }},
  runtime = {{ max_sessions = 80 }},
}}
"#
        )
    };
    for servers in ["servers = 1000,", ""] {
        let folder = tempfile::tempdir().expect("a folder");
        let run = real(folder.path(), "tools.lua", &text(servers), 0);
        let runs = tool_runs(&run);
        assert_eq!(runs.len(), 800);
        for run in runs {
            assert_eq!(number(&run, "started_at"), number(&run, "ready_at"), "{run}");
        }
    }
}

/// Each shard would have all servers.
#[test]
fn shards_with_tools_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = write_scenario(folder.path(), "tools.lua", &scenario(ONE_SERVER, 2));
    for command in ["run", "simulate"] {
        let output = veeksha([command, &file, "--shard", "1/2"]);
        assert_code(&output, 2);
        let message = stderr(&output);
        assert!(
            message.contains("`--shard` cannot divide a scenario with `tools`"),
            "{message}"
        );
        assert!(message.contains("run it in one process"), "{message}");
    }
}

/// Three sessions call the one server at 0, each for 1 s, and the timeout comes at 0.5 s: all runs
/// are drained, or those that the grace period leaves are named, with their reasons.
#[test]
fn tool_runs_are_drained_or_named() {
    let text = |grace: &str| {
        format!(
            r#"
local sessions = function(index, rng)
  return {{ requests = {{
    {{ tool = "sandbox" }},
    {{ user = synthetic(8), output = {{ tokens = 4, exact = true }} }},
  }} }}
end
return {{
  session_generator = {{ type = "lua", sessions = sessions }},
  tools = {{ sandbox = {{ servers = 1, time = {{ type = "constant", value = 1 }} }} }},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 3, rampup_seconds = 0 }},
  client = {{ api_base = "sim://default" }},
  runtime = {{ max_sessions = 3, benchmark_timeout = 0.5, post_timeout_grace_seconds = {grace} }},
}}
"#
        )
    };
    let folder = tempfile::tempdir().expect("a folder");
    let tools = |grace: &str| {
        let run = simulated(folder.path(), &format!("grace{grace}.lua"), &text(grace), &[]);
        let dropped: Vec<Value> = lines(&run, "traces/trace.jsonl")
            .into_iter()
            .filter(|line| line["event"] == "tool_dropped")
            .collect();
        (
            json(&run, "metrics/summary_stats.json")["tools"]["sandbox"].clone(),
            dropped,
        )
    };
    let (all, dropped) = tools("-1");
    assert_eq!((&all["tool_runs"], dropped.len()), (&json!(3), 0), "{all}");
    let (some, dropped) = tools("1");
    assert_eq!(some["tool_runs"], 1, "{some}");
    assert_eq!(some["dropped"], json!({ "held": 1, "in_service": 1 }));
    let reasons: Vec<&Value> = dropped.iter().map(|line| &line["reason"]).collect();
    assert_eq!(reasons, ["in_service", "held"], "{dropped:?}");
    assert!(
        dropped
            .iter()
            .all(|line| line["at"] == 1.5 && line["ready_at"] == 0.0)
    );
}

/// Asserts that every part of the results knows the tool runs of [`scenario`] with [`ONE_SERVER`].
#[track_caller]
fn check_results(run: &Path, sessions: u64) {
    let summary = json(run, "metrics/summary_stats.json");
    let runs = 2 * sessions;
    assert_eq!(summary["Tool Waiting Time (Count)"], runs, "{summary}");
    assert_eq!(
        summary["tools"],
        json!({ "sandbox": { "tool_runs": runs, "tool_failures": 0, "cold_starts": 1, "dropped": {} } })
    );
    assert_eq!(summary["run_metrics"]["tool_runs"], runs as f64);
    let of_files = tool_runs(run);
    let waiting = |line: &Value| number(line, "started_at") - number(line, "ready_at");
    let mean = of_files.iter().map(waiting).sum::<f64>() / runs as f64;
    assert!((number(&summary, "Tool Waiting Time (Mean)") - mean).abs() < ROUNDING);
    let metrics = json(run, "metrics/session_metrics.json");
    let listed = metrics["sessions"].as_array().expect("sessions");
    assert_eq!(listed.len() as u64, sessions);
    for session in listed {
        let of_session = || {
            of_files
                .iter()
                .filter(|line| line["session_id"] == session["session_id"])
        };
        let tool_time: f64 = of_session()
            .map(|line| number(line, "at") - number(line, "ready_at"))
            .sum();
        assert!(
            (number(session, "session_tool_time") - tool_time).abs() < ROUNDING,
            "{session}"
        );
        let service = number(session, "critical_path_tool_service");
        assert!(service > 0.01 && service < tool_time + ROUNDING, "{session}");
    }
    let health = json(run, "health_check_results.json");
    for check in health["checks"].as_array().expect("checks") {
        let is_of_graph = ["Intra-Session Request Arrival", "Request Accounting"]
            .iter()
            .any(|name| check["name"] == *name);
        assert!(!is_of_graph || check["outcome"] == "passed", "{check}");
        if check["name"] == "Intra-Session Request Arrival" {
            assert_eq!(check["values"]["requests"]["value"], sessions as f64, "{check}");
        }
    }
    let page = data(run);
    assert_eq!(
        page["requests"]["tool_runs"].as_array().map(Vec::len),
        Some(of_files.len())
    );
    assert_eq!(
        named(&page["metrics"], "tool_service_time")["summary"]["count"],
        runs
    );
    for session in page["requests"]["sessions"].as_array().expect("sessions") {
        assert!(
            session[5]["steps"]
                .as_array()
                .is_some_and(|steps| steps.len() == 3),
            "{session}"
        );
    }
    let chrome = json(run, "metrics/chrome_trace.json");
    let slices = chrome.as_array().expect("events").iter();
    let service = slices.filter(|slice| slice["name"] == "Service" && slice["pid"] == 5);
    assert_eq!(service.count(), of_files.len());
}

#[test]
fn results_contain_tool_runs_in_virtual_and_real_time() {
    let folder = tempfile::tempdir().expect("a folder");
    check_results(
        &simulated(folder.path(), "tools.lua", &scenario(ONE_SERVER, 6), &[]),
        6,
    );
    let folder = tempfile::tempdir().expect("a folder");
    check_results(&real(folder.path(), "tools.lua", &scenario(ONE_SERVER, 6), 0), 6);
}

#[test]
fn evaluation_of_the_record_repeats_tool_metrics() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "tools.lua", &scenario(ONE_SERVER, 6), &[]);
    let to = evaluated(&run, &folder.path().join("to"), &[], 0);
    for file in [
        "metrics/summary_stats.json",
        "metrics/session_metrics.json",
        "metrics/tool_waiting_time.csv",
        "metrics/chrome_trace.json",
        "health_check_results.json",
    ] {
        let read = |folder: &Path| std::fs::read_to_string(folder.join(file)).expect(file);
        assert_eq!(read(&run), read(&to), "{file}");
    }
}

#[test]
fn tool_metrics_have_objectives_groups_and_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    let slos = r#"evaluators = { { type = "performance", group_by = { "tool", "call", "tier" }, slos = {
  'p99(tool_waiting_time{tool="sandbox"}) < 2s',
  'count(tool_service_time{call="first"}) >= 6',
  'max(tool_service_time{tool="sandbix"}) < 1s',
  "tool_failures < 1",
  "p90(critical_path_tool_waiting) < 10s" } } },
  runtime = {"#;
    let text = scenario(ONE_SERVER, 6).replace("runtime = {", slos);
    let (output, run) = ends_with(folder.path(), "tools.lua", &text, &[], 3);
    let results = json(&run, "metrics/slo_results.json");
    let results = results["results"].as_array().expect("results");
    let met: Vec<&Value> = results.iter().map(|result| &result["met"]).collect();
    assert_eq!(met, [true, true, false, true, true]);
    let detail = results[2]["detail"].as_str().expect("a reason");
    assert!(detail.contains("sandbox"), "{detail}");
    let table = stdout(&output);
    for text in [
        "Tool runs",
        "wait P99",
        "  Tool service",
        "By label \"tool\"",
        "By label \"call\"",
    ] {
        assert!(table.contains(text), "{text}: {table}");
    }
    let summary = json(&run, "metrics/summary_stats.json");
    let groups = &summary["groups"];
    let count =
        |label: usize, group: usize| &groups[label]["groups"][group]["metrics"]["tool_service_time"]["count"];
    assert_eq!(
        (count(0, 0), count(1, 0), count(2, 0)),
        (&json!(12), &json!(6), &json!(12))
    );
    let compared = veeksha([
        "compare",
        path(&run),
        path(&run),
        "--metrics",
        "tool_waiting_time",
    ]);
    assert_code(&compared, 0);
    assert!(
        stdout(&compared).contains("tool_waiting_time"),
        "{}",
        stdout(&compared)
    );
}

#[test]
fn objectives_on_tools_need_tools() {
    let folder = tempfile::tempdir().expect("a folder");
    let slo = r#"{ type = "performance", slos = { "p99(tool_waiting_time) < 1s" } }"#;
    let file = write_scenario(folder.path(), "s.lua", &labelled(3, slo, ""));
    let output = veeksha(["check", &file]);
    assert_code(&output, 2);
    let message = stderr(&output);
    assert!(message.contains("the scenario declares no `tools`"), "{message}");
}

/// With twice the service times, other calls wait: the estimate keeps waiting times. Without
/// queueing it agrees with a simulation.
#[test]
fn counterfactual_of_tools_agrees_with_a_simulation() {
    let runs = ["20ms", "40ms"].map(|time| {
        let folder = tempfile::tempdir().expect("a folder");
        let text = scenario("{ sandbox = {} }", 6)
            .replace(
                r#"{ tool = "sandbox", after = 1,"#,
                &format!(r#"{{ tool = "sandbox", after = 1, time = "{time}","#),
            )
            .replace(r#"time = "30ms""#, &format!(r#"time = "{time}""#));
        let server = "constant: { first_token_ms: 50, gap_ms: 5 }\n";
        let server = write_scenario(folder.path(), "server.yml", server);
        let run = simulated(folder.path(), "tools.lua", &text, &["--profile", &server]);
        (folder, run)
    });
    let [(_, slow), (_, slower)] = &runs;
    let to = slow.join("to");
    let what_if = evaluated(slow, &to, &["--what-if", "tool_service=2"], 0);
    let estimate =
        &json(&what_if, "metrics/summary_stats.json")["what_if"][0]["changed_session_makespan"]["p50"];
    let simulated = &json(slower, "metrics/session_metrics.json")["metrics"]["session_makespan"]["p50"];
    let [estimate, simulated] = [estimate, simulated].map(|value| value.as_f64().expect("a number"));
    assert!(
        (estimate / simulated - 1.0).abs() < 0.02,
        "{estimate} {simulated}"
    );
}

/// Sessions that end with a tool run last until its end, and can begin with one.
#[test]
fn sessions_may_begin_and_end_with_tool_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"
return {
  seed = 7,
  session_generator = { type = "lua", sessions = function() return { requests = {
    { tool = "sandbox", time = "1s" },
    { user = synthetic(40), after = 1, output = { tokens = 4, exact = true } },
    { tool = "sandbox", after = 2, time = "2s" },
  } } end },
  tools = { sandbox = {} },
  traffic_scheduler = { type = "rate", interval_generator = { type = "fixed", interval = 1 } },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 4 },
}"#;
    let run = simulated(folder.path(), "tools.lua", text, &[]);
    let summary = json(&run, "metrics/summary_stats.json");
    assert!(number(&summary, "Session Makespan (Min)") > 3.0, "{summary}");
    assert!(
        number(&summary, "Critical Path Tool Service (Min)") == 3.0,
        "{summary}"
    );
    assert_eq!(summary["Critical Path Requests (Max)"], 1.0);
    let health = json(&run, "health_check_results.json");
    assert!(!health.to_string().contains("\"failed\""), "{health}");
}

#[test]
fn unknown_tools_are_named_before_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = write_scenario(folder.path(), "tools.lua", &scenario("{ sandbxo = {} }", 2));
    for command in ["check", "simulate"] {
        let output = veeksha([command, &file]);
        assert_code(&output, 4);
        let message = stderr(&output);
        let expected = "runs the tool `sandbox`, which does not exist; did you mean `sandbxo`?";
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn tool_classes_are_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases = [
        (r#"{ sandbox = { servers = 0 } }"#, "tools.sandbox.servers"),
        (r#"{ sandbox = { rate_limit = "20" } }"#, "`20` is not a rate"),
        (r#"{ sandbox = { server = 3 } }"#, "did you mean `servers`?"),
        (
            r#"{ sandbox = { time = { type = "uniform", min = 2, max = 1 } } }"#,
            "`min` is above `max`",
        ),
        (r#"{ sandbox = { time = { type = "normal" } } }"#, "lognormal"),
        (
            r#"{ sandbox = { failure_rate = 2 } }"#,
            "tools.sandbox.failure_rate",
        ),
    ];
    for (tools, expected) in cases {
        let file = write_scenario(folder.path(), "tools.lua", &scenario(tools, 2));
        let output = veeksha(["check", &file]);
        assert_code(&output, 2);
        let message = stderr(&output);
        assert!(message.contains(expected), "{tools}: {message}");
    }
    let text = scenario(ONE_SERVER, 2).replace("runtime = {", "runtime = { num_dispatcher_threads = 2,");
    let output = veeksha(["check", &write_scenario(folder.path(), "threads.lua", &text)]);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains("must be 1 in a scenario with `tools`"),
        "{}",
        stderr(&output)
    );
}

/// A scenario with three sessions of an agent in Lua, which has sent its first request.
fn agent_scenario(body: &str, tools: &str) -> String {
    let agent = format!(
        r#"function(session)
  local plan = session:request {{ user = synthetic(40), output = {{ tokens = 4, exact = true }} }}
  {body}
end"#
    );
    one_by_one(&format!(r#"{{ type = "lua", agent = {agent} }}"#), tools)
}

/// A scenario with three sessions, one after the other.
fn one_by_one(generator: &str, tools: &str) -> String {
    format!(
        r#"
return {{
  seed = 7,
  session_generator = {generator},
  tools = {tools},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 1, rampup_seconds = 0 }},
  client = {{ api_base = "sim://default" }},
  runtime = {{ max_sessions = 3 }},
}}
"#
    )
}

const TWO_AT_ONCE: &str = r#"
  session:sleep("3ms")
  local a, b = session:parallel(
    { tool = "sandbox", time = "30ms" },
    { tool = "sandbox", time = "20ms", result_tokens = 17 })
  assert(a.ok and a.node == 2 and a.tokens == 9 and b.tokens == 17)
  assert(a.waiting_time == 0 and a.service_time == 0.03 and b.service_time == 0.02)
  session:request {
    history = plan, user = { "Results:", result_of(a), result_of(b) },
    output = { tokens = 4, exact = true }, labels = { waited = b.waiting_time },
  }"#;
const CONSTANT: &str = r#"{ sandbox = { servers = 1, result_tokens = { type = "constant", value = 9 } } }"#;

/// Checks that the second call of [`TWO_AT_ONCE`] waits for the first.
fn check_two_at_once(run: &Path) {
    let runs = tool_runs(run);
    assert_eq!(runs.len(), 6);
    let requests = lines(run, "metrics/request_level_metrics.jsonl");
    for session in 0..3 {
        let of = |lines: &[Value], node: u32| -> Value {
            let is_meant = |line: &&Value| line["session_id"] == session && line["node_id"] == node;
            lines.iter().find(is_meant).expect("a node").clone()
        };
        let (plan, last) = (of(&requests, 1), of(&requests, 4));
        let (first, second) = (of(&runs, 2), of(&runs, 3));
        let ready = number(&plan, "client_completed_at") + 0.003;
        for (found, expected) in [
            (number(&first, "ready_at"), ready),
            (number(&first, "started_at"), ready),
            (number(&second, "ready_at"), ready),
            (number(&second, "started_at"), ready + 0.03),
            (number(&last, "scheduler_ready_at"), ready + 0.05),
        ] {
            assert!(
                (found - expected).abs() < ROUNDING,
                "{found} {expected}: {second}"
            );
        }
        assert!(number(&last, "target_num_delta_prompt_tokens") >= 26.0, "{last}");
        let waited = serde_json::json!(["waited", "0.03"]);
        assert!(
            last["labels"].as_array().expect("labels").contains(&waited),
            "{last}"
        );
    }
}

#[test]
fn agents_wait_for_their_tools_in_virtual_and_real_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = agent_scenario(TWO_AT_ONCE, CONSTANT);
    check_two_at_once(&simulated(folder.path(), "agent.lua", &text, &[]));
    let folder = tempfile::tempdir().expect("a folder");
    check_two_at_once(&real(folder.path(), "agent.lua", &text, 0));
}

#[test]
fn agents_in_rust_wait_for_their_tools() {
    let folder = tempfile::tempdir().expect("a folder");
    let component = root().join("tests/guests/dist/sdk-agent.wasm");
    let generator = format!(
        "{{ type = \"wasm\", plugin = \"{}\", config = {{ steps = 1, tools = true }} }}",
        path(&component)
    );
    let text = one_by_one(&generator, CONSTANT);
    check_two_at_once(&simulated(folder.path(), "agent.lua", &text, &[]));
}

#[test]
fn a_failed_tool_is_a_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let body = r#"local r = session:tool("sandbox")
  assert(not r.ok)
  session:request { user = { "It failed:", result_of(r) } }"#;
    let text = agent_scenario(body, "{ sandbox = { failure_rate = 1 } }");
    let run = simulated(folder.path(), "agent.lua", &text, &[]);
    assert_eq!(lines(&run, "metrics/request_level_metrics.jsonl").len(), 6);
    assert!(tool_runs(&run).iter().all(|run| run["success"] == false));
}

/// The first steps of the first four agents are made before the run, so the mistake is in a later
/// session.
#[test]
fn an_unknown_tool_ends_the_session_of_its_agent() {
    let folder = tempfile::tempdir().expect("a folder");
    let body = r#"session:tool(if session.index == 5 then "sandbxo" else "sandbox")
  session:request { user = "Done." }"#;
    let text = agent_scenario(body, "{ sandbox = {} }");
    let sessions = ["--runtime.max_sessions", "7"];
    let (output, run) = ends_with(folder.path(), "agent.lua", &text, &sessions, 4);
    let message = stderr(&output);
    let expected = "session 5: node 2 runs the tool `sandbxo`, which does not exist; did you mean `sandbox`?";
    assert_eq!(message.matches(expected).count(), 1, "{message}");
    assert_eq!(lines(&run, "metrics/request_level_metrics.jsonl").len(), 13);
    assert_eq!(tool_runs(&run).len(), 6);
}

/// In the second step: nothing is sent.
#[test]
fn mistakes_in_the_first_steps_of_agents_are_found_before_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases = [
        (
            r#"session:tool("sandbxo")"#,
            "session 0: node 2 runs the tool `sandbxo`, which does not exist; did you mean `sandbox`?",
        ),
        (
            r#"session:request { user = "x", client = "jugde" }"#,
            "session 0: node 2: the client `jugde` does not exist; declare it in `clients` of the scenario",
        ),
        (
            r#"session:request { user = "x", prompt_log_probabilities = true }"#,
            "session 0: node 2: ",
        ),
    ];
    for (second, expected) in cases {
        let text = agent_scenario(second, "{ sandbox = {} }");
        let file = write_scenario(folder.path(), "agent.lua", &text);
        let output_dir = folder.path().join("out");
        for command in ["check", "run", "simulate"] {
            let output = veeksha([command, &file, "--output_dir", path(&output_dir)]);
            assert_code(&output, 4);
            let message = stderr(&output);
            assert_eq!(message.matches(expected).count(), 1, "{command}: {message}");
        }
        assert!(!output_dir.exists(), "{second}");
    }
}
