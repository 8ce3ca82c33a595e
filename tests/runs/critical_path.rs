//! Critical paths of agents' sessions, objectives on them, and their makespans with changed times.

use std::path::Path;

use serde_json::Value;

use crate::edges;
use crate::page::{data, named};
use crate::results::{json, lines};
use crate::simulated::{ends_with, evaluate, evaluated, labelled, real, simulated};
use crate::support::{assert_code, scenario, stderr, stdout};

/// The parts of a critical path, in the order of the files.
const PARTS: [&str; 6] = [
    "client_queueing",
    "prefill",
    "decode",
    "tool_waiting",
    "tool_service",
    "think",
];

/// An agent that plans, asks two subagents at once (one of them starts another request while its
/// answer streams), and combines their answers. A session is over before the next one begins, so
/// that the server's times do not depend on the other sessions.
const AGENT: &str = r#"
local function agent(session)
  local rng = session.rng
  local plan = session:request { user = synthetic(rng:int(50, 900)), output = { tokens = rng:int(5, 40), exact = true } }
  local read = session:request {
    user = synthetic(rng:int(50, 900)), history = plan, output = { tokens = rng:int(5, 60), exact = true }, wait = "80ms",
  }
  local both = { session:parallel(
    { user = synthetic(rng:int(50, 2000)), history = read, output = { tokens = rng:int(5, 60), exact = true } },
    { user = synthetic(rng:int(50, 900)), after = { read }, wait = "300ms", output = { tokens = rng:int(5, 90), exact = true } }
  ) }
  session:request { user = synthetic(200), history = both[1], after = { both[2] }, output = { tokens = 30, exact = true } }
end
return {
  seed = 11,
  session_generator = { type = "lua", agent = agent },
  traffic_scheduler = { type = "rate", interval_generator = { type = "fixed", interval = 30 } },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 60, benchmark_timeout = 4000 },
  evaluators = { { type = "performance", slos = { SLOS } } },
}
"#;

/// A server on which no request affects another one.
fn constant(factor: f64) -> String {
    format!("constant: {{ first_token_ms: {}, gap_ms: 12 }}\n", 400.0 * factor)
}

/// The batch model: a prompt delays the decode of the session's other request by its cost, which
/// the counterfactual keeps as measured.
fn batch(factor: f64) -> String {
    format!(
        "prefill_base_ms: {}\nprefill_ms_per_token: {}\ndecode_ms_per_sequence: 0\ndecode_base_ms: 12\n\
         noise_cv: 0\nprefix_cache: false\n",
        30.0 * factor,
        0.1 * factor
    )
}

fn agents(slos: &str) -> String {
    AGENT.replace("SLOS", slos)
}

/// Asserts that the counterfactual of a run agrees with a simulation of the same seed in which the
/// server needs half of the time to the first chunk: the relative error of each statistic.
#[track_caller]
fn assert_agrees_with_simulation(profile: fn(f64) -> String, statistics: &[&str], tolerance: f64) {
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let run = |place: usize, factor: f64| {
        let folder: &Path = folders[place].path();
        let server = scenario(folder, "server.yml", &profile(factor));
        simulated(folder, "agents.lua", &agents(""), &["--profile", &server])
    };
    let (measured, halved) = (run(0, 1.0), run(1, 0.5));
    let output = evaluate(&measured, &["--json", "--what-if", "ttfc=0.5"]);
    assert_code(&output, 0);
    let summary: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let what_if = &summary["what_if"][0];
    let number = |value: &Value| value.as_f64().expect("a number");
    let of_run =
        |run: &Path| json(run, "metrics/session_metrics.json")["metrics"]["session_makespan"].clone();
    let simulated = of_run(&halved);
    assert_eq!(
        (&simulated["count"], &what_if["changed_session_makespan"]["count"]),
        (&60.into(), &60.into())
    );
    for statistic in statistics {
        let [expected, estimated] =
            [&simulated, &what_if["changed_session_makespan"]].map(|summary| number(&summary[*statistic]));
        let error = estimated / expected - 1.0;
        assert!(
            error.abs() < tolerance,
            "{statistic}: {error}, {what_if} and {simulated}"
        );
    }
    let change = number(&what_if["median_change"]);
    let simulated_change = number(&simulated["p50"]) / number(&of_run(&measured)["p50"]) - 1.0;
    assert!(simulated_change < -0.1, "{simulated_change}");
    assert!(
        (change - simulated_change).abs() < tolerance,
        "{change}, {simulated_change}"
    );
}

#[test]
fn counterfactual_agrees_with_a_simulation_of_the_faster_server() {
    assert_agrees_with_simulation(constant, &["mean", "min", "p50", "p90", "p99", "max"], 1e-6);
}

#[test]
fn counterfactual_agrees_with_a_simulation_of_the_faster_engine() {
    assert_agrees_with_simulation(batch, &["mean", "p50", "p90"], 0.02);
}

/// Asserts that the parts of each session's path add up to its makespan, also on the page.
#[track_caller]
fn assert_parts_add_up(run: &Path) {
    let metrics = json(run, "metrics/session_metrics.json");
    let page = data(run);
    let on_page = page["requests"]["sessions"].as_array().expect("sessions");
    let sessions = metrics["sessions"].as_array().expect("sessions");
    assert_eq!((sessions.is_empty(), sessions.len()), (false, on_page.len()));
    for session in sessions {
        let mut shown = on_page.iter();
        let on_page = shown
            .find(|shown| shown[0] == session["session_id"])
            .expect("the session");
        let makespan = session["session_makespan"].as_f64().expect("a makespan");
        let parts = PARTS.map(|part| session[format!("critical_path_{part}")].as_f64().expect("a time"));
        assert!((parts.iter().sum::<f64>() - makespan).abs() < 1e-9, "{session}");
        let path = &on_page[5];
        let steps = path["steps"].as_array().expect("steps");
        assert_eq!(session["critical_path_requests"], steps.len());
        // The last request of the path is the one that ended last.
        assert_eq!(steps[steps.len() - 1][1], 2);
        for ((part, seconds), on_page) in PARTS
            .iter()
            .zip(parts)
            .zip(path["parts"].as_array().expect("parts"))
        {
            assert_eq!(on_page[0], *part);
            assert!(
                (on_page[1].as_f64().expect("a time") / 1e6 - seconds).abs() < 2e-6,
                "{path}"
            );
        }
    }
}

#[test]
fn parts_add_up_to_the_makespan_in_virtual_and_real_time() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_parts_add_up(&simulated(folder.path(), "edges.lua", &edges::scenario(6), &[]));
    let folder = tempfile::tempdir().expect("a folder");
    assert_parts_add_up(&real(folder.path(), "edges.lua", &edges::scenario(6), 0));
}

/// The time for which a limit held requests back is client queueing.
#[test]
fn limits_hold_requests_on_the_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let limit = ["--traffic_scheduler.limits.requests_in_flight", "1"];
    let run = simulated(folder.path(), "s.lua", &labelled(30, "", ""), &limit);
    assert_parts_add_up(&run);
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let queued = rows
        .iter()
        .filter(|row| row["scheduler_dispatched_at"].as_f64() > row["scheduler_ready_at"].as_f64());
    assert!(queued.count() > 20, "{rows:?}");
    let summary = json(&run, "metrics/summary_stats.json");
    let queueing = &summary["Critical Path Client Queueing (P50)"];
    assert!(queueing.as_f64() > Some(0.05), "{queueing}");
}

#[test]
fn paths_are_metrics_with_objectives_groups_and_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    let slos = r#"
{ type = "performance", slos = {
  "p90(session_makespan) < 60s",
  'p50(critical_path_think{tier="gold"}) >= 20ms',
  "max(critical_path_requests) > 2" } }"#;
    let text = labelled(30, slos, "");
    let (output, run) = ends_with(folder.path(), "s.lua", &text, &[], 3);
    let table = stdout(&output);
    assert!(table.contains("Sessions by critical path"), "{table}");
    assert!(
        stderr(&output).contains("max(critical_path_requests)"),
        "{}",
        stderr(&output)
    );
    let results = json(&run, "metrics/slo_results.json");
    let met = results["results"].as_array().expect("results").iter();
    let met: Vec<&Value> = met.map(|result| &result["met"]).collect();
    assert_eq!(met, [true, true, false]);
    let summary = json(&run, "metrics/summary_stats.json");
    assert_eq!(summary["Critical Path Requests (Max)"], 2.0);
    let gold = &summary["groups"][0]["groups"][1];
    assert_eq!(
        (&gold["value"], &gold["metrics"]["critical_path_decode"]["count"]),
        (&"gold".into(), &10.into())
    );
    let page = data(&run);
    let decode = named(&page["metrics"], "critical_path_decode");
    assert_eq!(decode["summary"]["count"], 30);
}

#[test]
fn evaluate_prints_and_writes_what_would_have_been() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(30, "", ""), &[]);
    let output = evaluate(
        &run,
        &["--what-if", "prefill=0.5,think=0", "--what-if", "decode=2"],
    );
    assert_code(&output, 0);
    let table = stdout(&output);
    for text in [
        "with prefill=0.5,think=0",
        "the median session is",
        "shorter",
        "with decode=2",
        "longer",
    ] {
        assert!(table.contains(text), "{text}: {table}");
    }
    let to = evaluated(&run, &folder.path().join("to"), &["--what-if", "decode=1"], 0);
    let what_if = &json(&to, "metrics/summary_stats.json")["what_if"][0];
    assert_eq!(what_if["session_makespan"], what_if["changed_session_makespan"]);
    assert_eq!(what_if["median_change"], 0.0);
    assert_eq!(json(&run, "metrics/summary_stats.json").get("what_if"), None);
    let output = evaluate(&run, &["--what-if", "decod=2"]);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains("did you mean \"decode\"?"),
        "{}",
        stderr(&output)
    );
}
