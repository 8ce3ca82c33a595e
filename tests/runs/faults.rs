//! Servers that misbehave, and what the user is told.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use crate::results::{json, latest, lines};
use crate::server::Sim;
use crate::support::{assert_code, scenario, stderr, stdout, veeksha};

const SMALL: &str = r#"
session_generator:
  type: synthetic
  session_graph: { type: single_request }
  channels: [ { type: text, body_length_generator: { type: fixed, value: 20 } } ]
  output_spec: { text: { output_length_generator: { type: fixed, value: 8 } } }
traffic_scheduler: { type: concurrent, target_concurrent_sessions: 4, rampup_seconds: 0 }
client: { type: openai_chat_completions, api_base: "http://127.0.0.1:1/v1", model: m, request_timeout: 2 }
runtime: { max_sessions: 8, benchmark_timeout: 20 }
"#;

fn run(folder: &Path, api_base: &str, more: &[&str]) -> std::process::Output {
    let file = scenario(folder, "small.yml", SMALL);
    let output_dir = folder.to_str().expect("UTF-8");
    let mut arguments = vec![
        "run",
        &file,
        "--output_dir",
        output_dir,
        "--client.api_base",
        api_base,
    ];
    arguments.extend(more);
    veeksha(arguments)
}

/// A server that answers every connection with the same bytes and closes it.
fn canned(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let mut request = [0; 65_536];
                let _ = stream.read(&mut request);
                let _ = stream.write_all(answer);
            });
        }
    });
    format!("http://{address}/v1")
}

#[test]
fn a_dead_server_is_named_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), "http://127.0.0.1:1/v1", &[]);
    assert_code(&output, 5);
    assert!(stderr(&output).contains("127.0.0.1:1"), "{}", stderr(&output));
}

#[test]
fn garbage_is_a_protocol_failure_with_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &canned(b"SMTP ready\r\n\r\n"), &[]);
    assert_code(&output, 5);
    let rows = lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl");
    assert_eq!(rows.len(), 8);
    assert!(
        rows.iter()
            .all(|row| row["success"] == false && row["ttfc"].is_null()),
        "{rows:?}"
    );
}

#[test]
fn an_error_inside_a_200_is_a_failure() {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
        data: {\"error\":{\"message\":\"EngineCore encountered an issue\",\"type\":\"InternalServerError\",\"code\":500}}\n\n\
        data: [DONE]\n\n";
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &canned(answer), &[]);
    assert_code(&output, 5);
    let rows = lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl");
    assert!(
        rows.iter().all(|row| row["error_class"] == "in_stream"),
        "{rows:?}"
    );
    assert!(
        rows[0]["error_message"]
            .as_str()
            .is_some_and(|text| text.contains("EngineCore"))
    );
}

#[test]
fn a_stream_that_just_ends_is_truncated() {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
        data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n";
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &canned(answer), &[]);
    assert_code(&output, 5);
    let rows = lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl");
    assert!(
        rows.iter().all(|row| row["error_class"] == "truncated"),
        "{rows:?}"
    );
}

#[test]
fn a_server_that_hangs_runs_into_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let api_base = format!("http://{}/v1", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        let held: Vec<_> = listener.incoming().collect();
        drop(held);
    });
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(
        folder.path(),
        &api_base,
        &["--client.request_timeout", "1", "--runtime.max_sessions", "4"],
    );
    assert_code(&output, 5);
    let rows = lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl");
    assert!(rows.iter().all(|row| row["error_class"] == "timeout"), "{rows:?}");
}

#[test]
fn a_refused_key_says_which_key_and_never_prints_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = scenario(folder.path(), "profile.yml", "faults: { api_key: right-key }\n");
    let sim = Sim::start(&["--profile", &profile]);
    let output = run(
        folder.path(),
        &sim.api_base,
        &["--client.api_key", "wrong-key-17"],
    );
    assert_code(&output, 5);
    let said = stderr(&output) + &stdout(&output);
    assert!(said.contains("401") && said.contains("OPENAI_API_KEY"), "{said}");
    let run = latest(folder.path());
    for file in [
        "config.yml",
        "metrics/request_level_metrics.jsonl",
        "traces/trace.jsonl",
    ] {
        let text = std::fs::read_to_string(run.join(file)).expect(file);
        assert!(!text.contains("wrong-key-17"), "{file} holds the key");
    }
    assert!(!said.contains("wrong-key-17"));
    sim.stop();
}

#[test]
fn a_right_key_opens() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = scenario(folder.path(), "profile.yml", "faults: { api_key: right-key }\n");
    let sim = Sim::start(&["--profile", &profile]);
    assert_code(
        &run(folder.path(), &sim.api_base, &["--client.api_key", "right-key"]),
        0,
    );
    sim.stop();
}

#[test]
fn a_faulty_server_is_measured_and_its_failures_are_counted_by_class() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), "sim://faulty", &["--runtime.max_sessions", "200"]);
    assert_code(&output, 0);
    let run = latest(folder.path());
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let failed = rows.iter().filter(|row| row["success"] == false).count();
    assert_eq!(rows.len(), 200);
    assert!(failed > 0, "the profile `faulty` fails sometimes");
    let summary = json(&run, "metrics/summary_stats.json");
    assert_eq!(summary["Number of Errored Requests"], failed);
    let by_class: u64 = summary["error_code_freq"]
        .as_object()
        .expect("a map")
        .values()
        .filter_map(|n| n.as_u64())
        .sum();
    assert_eq!(by_class, failed as u64);
}

#[test]
fn a_run_that_measured_nothing_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    // The ramp takes its first step at 10 s / 4; the run is over before.
    let more = [
        "--traffic_scheduler.rampup_seconds",
        "10",
        "--runtime.benchmark_timeout",
        "1",
    ];
    let output = run(folder.path(), "sim://fast", &more);
    assert_code(&output, 6);
    assert!(
        stderr(&output).contains("nothing was measured"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_secret_header_is_written_nowhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(
        folder.path(),
        "sim://fast",
        &["--set", "client.headers={x-api-key: hidden-17}"],
    );
    assert_code(&output, 0);
    let config = std::fs::read_to_string(latest(folder.path()).join("config.yml")).expect("config.yml");
    assert!(
        config.contains("x-api-key") && !config.contains("hidden-17"),
        "{config}"
    );
}

#[test]
fn an_output_folder_that_cannot_be_made_is_named_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a-file");
    std::fs::write(&file, "").expect("a file");
    let blocked = file.join("below").to_str().expect("UTF-8").to_owned();
    let output = veeksha(["run", "scenarios/quickstart.lua", "--output_dir", &blocked]);
    assert_code(&output, 2);
    assert!(stderr(&output).contains("a-file"), "{}", stderr(&output));
}
