//! The accuracy that a run reports, and its consequences.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json as value};

use crate::results::{json, latest, lines};
use crate::server::Sim;
use crate::support::{assert_code, scenario, stderr, stdout, veeksha};
use crate::truth::{contents, request_of};

const STEADY: &str = r#"
session_generator:
  type: synthetic
  session_graph: { type: single_request }
  channels: [ { type: text, body_length_generator: { type: fixed, value: 20 } } ]
  output_spec: { text: { output_length_generator: { type: fixed, value: 8 } } }
traffic_scheduler: { type: rate, interval_generator: { type: fixed, interval: 0.01 } }
client: { api_base: "sim://fast" }
runtime: { max_sessions: 60, benchmark_timeout: 0 }
"#;

fn run(folder: &Path, command: &str, flags: &[&str]) -> std::process::Output {
    let file = scenario(folder, "steady.yml", STEADY);
    let output_dir = folder.to_str().expect("UTF-8");
    let mut arguments = vec![command, &file, "--output_dir", output_dir];
    arguments.extend(flags);
    veeksha(arguments)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a number, not {value}"))
}

#[test]
fn every_run_states_the_error_of_each_metric() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), "run", &[]);
    assert_code(&output, 0);
    let certificate = json(&latest(folder.path()), "certificate.json");
    assert_eq!(certificate["verdict"], "VALID", "{certificate}");
    assert_eq!(certificate["basis"], "record");
    for metric in ["ttfc", "ttfc_from_intended", "tbc", "end_to_end_latency"] {
        let bound = &certificate["bounds"][metric];
        assert!(number(&bound["count"]) >= 60.0, "{metric}: {bound}");
        assert!(
            number(&bound["mean_error"]) >= 0.0 && number(&bound["p99_error"]) >= 0.0,
            "{bound}"
        );
        assert_eq!(bound["source"], "estimated");
    }
    let table = stdout(&output);
    assert!(
        table.contains("Certificate: VALID") && table.contains("± "),
        "{table}"
    );
    // The busiest threads are sampled during the run.
    let trace = lines(&latest(folder.path()), "traces/trace.jsonl");
    let sampled = |name: &str| {
        let mut samples = trace.iter().filter(|line| line["event"] == "thread_sampled");
        samples.any(|line| {
            line["thread"]
                .as_str()
                .is_some_and(|thread| thread.starts_with(name))
        })
    };
    assert!(sampled("client-") && sampled("dispatcher-"));
}

#[test]
fn invalid_run_names_the_metric_and_exits_with_6() {
    let folder = tempfile::tempdir().expect("a folder");
    // No client is accurate to a millionth of a millionth.
    let flags = [
        "--certificate.degraded",
        "1e-12",
        "--certificate.invalid",
        "1e-12",
    ];
    let output = run(folder.path(), "run", &flags);
    assert_code(&output, 6);
    let said = stderr(&output);
    assert!(
        said.contains("the measurement is INVALID") && said.contains("TTFC"),
        "{said}"
    );
    let certificate = json(&latest(folder.path()), "certificate.json");
    assert_eq!(certificate["verdict"], "INVALID");
    let finding = certificate["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .find(|finding| finding["metric"] == "ttfc")
        .expect("a finding on the TTFC");
    assert_eq!(finding["verdict"], "INVALID");
    // The results are written nevertheless.
    assert_eq!(
        lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl").len(),
        60
    );
    let degraded = [
        "--certificate.degraded",
        "1e-12",
        "--certificate.invalid",
        "1000000",
    ];
    let output = run(folder.path(), "run", &degraded);
    assert_code(&output, 0);
    assert!(
        stdout(&output).contains("Certificate: DEGRADED"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn interrupted_or_unmet_run_keeps_its_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let slo = "evaluators=[{type: performance, slos: [{metric: ttfc, value: 1e-9}]}]";
    let output = run(folder.path(), "run", &["--set", slo]);
    assert_code(&output, 3);
    // An invalid metric is not a missed objective.
    let flags = [
        "--set",
        slo,
        "--certificate.degraded",
        "1e-12",
        "--certificate.invalid",
        "1e-12",
    ];
    assert_code(&run(folder.path(), "run", &flags), 6);
}

#[test]
fn simulated_time_is_exact() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_code(&run(folder.path(), "simulate", &[]), 0);
    let certificate = json(&latest(folder.path()), "certificate.json");
    assert_eq!(certificate["verdict"], "VALID");
    assert_eq!(certificate["basis"], "simulated");
}

/// A reference server with known times is measured after the run; the client's times are compared
/// with the server's log.
#[test]
fn self_test_measures_the_error_of_each_metric() {
    let folder = tempfile::tempdir().expect("a folder");
    for interface in ["openai_chat_completions", "anthropic_messages"] {
        let flags = [
            "--self-test",
            "--certificate.self_test_seconds",
            "2",
            "--client.type",
            interface,
            "--certificate.degraded",
            "1000000",
            "--certificate.invalid",
            "1000000",
        ];
        let output = run(folder.path(), "run", &flags);
        assert_code(&output, 0);
        let certificate = json(&latest(folder.path()), "certificate.json");
        assert_eq!(certificate["basis"], "self_test", "{certificate}");
        let test = &certificate["self_test"];
        // The rate of the run: one hundred per second.
        let requests = number(&test["requests"]);
        assert!((150.0..=260.0).contains(&requests), "{test}");
        assert_eq!(
            test["matched"], test["requests"],
            "every request is known to the reference server"
        );
        assert_eq!(test["unmatched_truth"], 0);
        assert_eq!(
            test["chunks_differ"], 0,
            "client and reference server count the same chunks"
        );
        for metric in ["ttfc", "tbc", "end_to_end_latency", "dispatch"] {
            let errors = &test[metric];
            assert!(
                number(&errors["p50"]) <= number(&errors["p99"]),
                "{metric}: {errors}"
            );
            assert!(
                number(&errors["p99"]) <= number(&errors["max"]),
                "{metric}: {errors}"
            );
            assert!(number(&errors["mean_abs"]) > 0.0, "{metric}: {errors}");
        }
        // The record contains only the requests of the run itself.
        assert_eq!(
            lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl").len(),
            60
        );
        let table = stdout(&output);
        assert!(stderr(&output).contains("self-test: "), "{}", stderr(&output));
        assert!(table.contains("Certificate"), "{table}");
    }
}

/// Returns the client's part of a run's TTFC and TBC, in seconds, by the log of a separate server
/// that uses the same clock: the time from dispatch to the last byte sent, and from the server's
/// write of the first chunk to its recorded arrival; and the differences of the gaps. The time
/// until the server's thread notices a request is not the client's.
fn true_errors(run: &Path, log: &[Value]) -> [(&'static str, Vec<f64>); 2] {
    let epoch = number(&lines(run, "traces/trace.jsonl")[0]["epoch_monotonic"]);
    let log: HashMap<&str, &Value> = log
        .iter()
        .filter_map(|line| Some((request_of(line)?, line)))
        .collect();
    let (mut first, mut gaps) = (Vec::new(), Vec::new());
    for row in lines(run, "metrics/request_level_metrics.jsonl") {
        let written = contents(log[row["request_id"].as_str().expect("an id")]);
        let dispatched = number(&row["scheduler_dispatched_at"]);
        let received = epoch + dispatched + number(&row["ttfc"]);
        first.push(number(&row["sent_at"]) - dispatched + (received - written[0]).abs());
        let recorded = row["tbc"].as_array().expect("gaps").iter().map(number);
        assert_eq!(recorded.len() + 1, written.len(), "a gap is missing: {row}");
        let truth = written.windows(2).map(|pair| pair[1] - pair[0]);
        gaps.extend(
            recorded
                .zip(truth)
                .map(|(recorded, truth)| (recorded - truth).abs()),
        );
    }
    [("ttfc", first), ("tbc", gaps)]
}

/// The errors of all cells are pooled: a machine that does other work during one of two short runs
/// changes that cell, which proves nothing about the estimate.
#[test]
fn self_test_covers_the_errors_of_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let concurrent = |streams: u32| {
        format!(
            "traffic_scheduler={{type: concurrent, target_concurrent_sessions: {streams}, rampup_seconds: 0}}"
        )
    };
    let rate = |rate: u32| {
        format!(
            "traffic_scheduler={{type: rate, interval_generator: {{type: poisson, arrival_rate: {rate}}}}}"
        )
    };
    let mut pooled = [(0, 0); 2];
    for (place, traffic) in [concurrent(1), concurrent(16), rate(50), rate(200)]
        .into_iter()
        .enumerate()
    {
        let truth = folder.path().join(format!("truth-{place}.jsonl"));
        let sim = Sim::start(&["--profile", "fast", "--truth", truth.to_str().expect("UTF-8")]);
        let flags = [
            "--self-test",
            "--certificate.self_test_seconds",
            "2",
            "--client.api_base",
            &sim.api_base,
            "--client.model",
            "sim",
            "--client.ignore_eos",
            "true",
            "--runtime.max_sessions",
            "300",
            "--set",
            &traffic,
            // The bounds are of interest, not the verdict of a busy machine.
            "--certificate.degraded",
            "1000000",
            "--certificate.invalid",
            "1000000",
        ];
        assert_code(&run(folder.path(), "run", &flags), 0);
        sim.stop();
        let run = latest(folder.path());
        let certificate = json(&run, "certificate.json");
        let log = lines(folder.path(), &format!("truth-{place}.jsonl"));
        for ((metric, errors), (within, all)) in true_errors(&run, &log).into_iter().zip(&mut pooled) {
            let bound = number(&certificate["bounds"][metric]["p99_error"]);
            *within += errors.iter().filter(|error| **error <= bound).count();
            *all += errors.len();
        }
    }
    for (within, all) in pooled {
        let covered = within as f64 / all as f64;
        assert!(
            covered >= 0.985,
            "{within} of {all} errors are within the bounds: {pooled:?}"
        );
    }
}

#[test]
fn thread_settings_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = [
        "--runtime.spin_microseconds",
        "100",
        "--set",
        "runtime.client_cores=[0]",
    ];
    let output = run(folder.path(), "run", &flags);
    assert_code(&output, 0);
    let threads = &json(&latest(folder.path()), "certificate.json")["threads"];
    assert_eq!(number(&threads["spin_microseconds"]), 100.0);
    assert_eq!(threads["client_cores"][0], 0);
    assert!(
        threads["refused"].as_array().is_some_and(Vec::is_empty),
        "{threads}"
    );
    let table = stdout(&output);
    assert!(
        table.contains("Spin before each arrival") && table.contains("Client cores"),
        "{table}"
    );
    let refused = run(
        folder.path(),
        "run",
        &["--set", "runtime.dispatcher_cores=[4000]"],
    );
    assert_code(&refused, 2);
    assert!(stderr(&refused).contains("runtime.dispatcher_cores: this process may not run on core 4000"));
}

/// The default is a real-time priority exactly where it is permitted, and either is stated. The
/// built-in simulator, whose threads would starve, is an exception, and so is 0.
#[test]
fn default_priority_is_real_time_for_servers_where_permitted() {
    let folder = tempfile::tempdir().expect("a folder");
    let threads = || json(&latest(folder.path()), "certificate.json")["threads"].clone();
    let sim = Sim::start(&["--profile", "fast"]);
    let server = ["--client.api_base", &sim.api_base];
    let output = run(folder.path(), "run", &server);
    assert_code(&output, 0);
    let is_permitted = threads()["realtime_not_permitted"] == false;
    assert_eq!(
        threads()["realtime_priority"],
        if is_permitted { value!(10) } else { Value::Null }
    );
    let table = stdout(&output);
    assert!(table.contains("Real-time priority"), "{table}");
    let off = [server[0], server[1], "--runtime.realtime_priority", "0"];
    for flags in [&off[..], &[]] {
        assert_code(&run(folder.path(), "run", flags), 0);
        assert!(threads()["realtime_priority"].is_null(), "{}", threads());
        assert_eq!(threads()["realtime_not_permitted"], false);
    }
    sim.stop();
}

/// A refused request for scheduling differs from one that was not made. Where the system grants it,
/// it takes effect.
#[test]
fn realtime_priority_is_granted_or_reported_as_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), "run", &["--runtime.realtime_priority", "5"]);
    assert_code(&output, 0);
    let threads = &json(&latest(folder.path()), "certificate.json")["threads"];
    assert_eq!(threads["realtime_priority"], 5);
    let refused = threads["refused"].as_array().expect("a list");
    assert_eq!(
        stderr(&output).contains("warning: "),
        !refused.is_empty(),
        "{}",
        stderr(&output)
    );
}
