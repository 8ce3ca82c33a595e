//! Faulty servers, and the messages for the user.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use crate::results::{json, latest, lines};
use crate::server::Sim;
use crate::simulated::path;
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

/// Starts a server that answers every connection with the same bytes and closes it.
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

/// Without a token there is no latency, although every request was answered.
#[test]
fn answers_without_tokens_make_a_run_invalid() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = canned(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
          data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}}]}\n\n\
          data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\
          \"usage\":{\"prompt_tokens\":20,\"completion_tokens\":8,\"total_tokens\":28}}\n\n\
          data: [DONE]\n\n",
    );
    let output = run(folder.path(), &server, &[]);
    assert_code(&output, 6);
    let certificate = json(&latest(folder.path()), "certificate.json");
    assert_eq!(certificate["verdict"], "INVALID");
    let findings = certificate["findings"].to_string();
    assert!(
        findings.contains("none of the 8 answers has generated tokens"),
        "{findings}"
    );
}

#[test]
fn unreachable_server_is_named_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    for (scheme, has_certificate) in [("http", false), ("https", true)] {
        let output = run(folder.path(), &format!("{scheme}://127.0.0.1:1/v1"), &[]);
        assert_code(&output, 5);
        let printed = stderr(&output);
        assert!(printed.contains("127.0.0.1:1"), "{printed}");
        assert!(printed.contains("is the server running"), "{printed}");
        assert_eq!(printed.contains("certificate"), has_certificate, "{printed}");
    }
}

#[test]
fn garbage_is_a_recorded_protocol_failure() {
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
    assert_eq!(rows.len(), 8);
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
fn stream_without_finish_reason_is_truncated() {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
        data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n";
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &canned(answer), &[]);
    assert_code(&output, 5);
    let rows = lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl");
    assert_eq!(rows.len(), 8);
    assert!(
        rows.iter().all(|row| row["error_class"] == "truncated"),
        "{rows:?}"
    );
}

#[test]
fn hanging_server_hits_the_deadline() {
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
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row["error_class"] == "timeout"), "{rows:?}");
}

#[test]
fn refused_key_is_named_without_its_value() {
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
fn valid_key_is_accepted() {
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
fn run_without_requests_reports_it() {
    let folder = tempfile::tempdir().expect("a folder");
    // The ramp makes its first step at 10 s / 4; the run ends before.
    let more = [
        "--traffic_scheduler.rampup_seconds",
        "10",
        "--runtime.benchmark_timeout",
        "1",
    ];
    let output = run(folder.path(), "sim://fast", &more);
    assert_code(&output, 6);
    assert!(
        stderr(&output).contains("nothing was measured")
            && stderr(&output).contains("set traffic_scheduler.rampup_seconds=0"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_self_test_without_answers_states_why_it_was_not_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(
        folder.path(),
        &canned(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"),
        &["--self-test"],
    );
    assert_code(&output, 5);
    assert!(
        stderr(&output).contains("note: no self-test was made: no request was answered"),
        "{}",
        stderr(&output)
    );
    let certificate = json(&latest(folder.path()), "certificate.json");
    let findings = certificate["findings"].to_string();
    assert!(
        findings.contains("self-test: not made, because no request was answered"),
        "{findings}"
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
fn output_folder_is_created_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a-file");
    std::fs::write(&file, "").expect("a file");
    let blocked = file.join("below").to_str().expect("UTF-8").to_owned();
    let sweep = ["--set", "seed=!expand [1, 2]"];
    for (command, more) in [("run", &[][..]), ("simulate", &[]), ("simulate", &sweep)] {
        let arguments = [command, "scenarios/quickstart.lua", "--output_dir", &blocked];
        let output = veeksha([&arguments, more].concat());
        assert_code(&output, 1);
        let said = stderr(&output);
        assert!(
            said.contains("a-file") && said.contains("hint: --set output_dir=FOLDER"),
            "{said}"
        );
    }
}

/// A file size limit sends a signal that would terminate the program by default; it must be handled
/// like a full disk.
#[cfg(unix)]
#[test]
fn file_size_limit_is_reported_like_a_full_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 8; exec \"$@\"", "sh"])
        .arg(crate::support::program().get_program())
        .args([
            "simulate",
            "scenarios/agent.lua",
            "--output_dir",
            folder.path().to_str().expect("UTF-8"),
        ])
        .current_dir(crate::support::root())
        .output()
        .expect("it runs");
    assert_code(&output, 1);
    assert!(
        stderr(&output).contains("the results are incomplete"),
        "{}",
        stderr(&output)
    );
}

/// The warning promises nothing that a full disk prevents, and the evaluation reports what is
/// missing.
#[cfg(unix)]
#[test]
fn a_record_that_the_disk_refuses_is_reported_as_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let output_dir = folder.path().to_str().expect("UTF-8");
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 8; exec \"$@\"", "sh"])
        .arg(crate::support::program().get_program())
        .args(["run", "scenarios/agent.lua", "--output_dir", output_dir])
        .current_dir(crate::support::root())
        .output()
        .expect("it runs");
    assert_code(&output, 1);
    let said = stderr(&output);
    assert!(said.contains("the results are incomplete"), "{said}");
    assert!(
        said.contains("is lost if it cannot be written by the end of the run"),
        "{said}"
    );
    let evaluated = veeksha(["evaluate".as_ref(), latest(folder.path()).as_os_str()]);
    assert!(!evaluated.status.success(), "the evaluation lacks events");
    let said = stderr(&evaluated);
    assert!(
        said.contains("the record ends after")
            || said.contains("the record is incomplete")
            || said.contains("or the disk had no space for it"),
        "{said}"
    );
}

#[cfg(unix)]
#[test]
fn an_evaluation_keeps_the_files_that_fit_on_the_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_code(&run(folder.path(), "sim://fast", &[]), 0);
    let to = folder.path().join("evaluated");
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 64; exec \"$@\"", "sh"])
        .arg(crate::support::program().get_program())
        .arg("evaluate")
        .arg(latest(folder.path()))
        .arg("--to")
        .arg(&to)
        .output()
        .expect("it runs");
    assert_code(&output, 1);
    assert!(
        stderr(&output).contains("the results are incomplete"),
        "{}",
        stderr(&output)
    );
    assert!(to.join("metrics/summary_stats.json").is_file());
}

/// Every fault of the built-in simulator, with its error class in a run. `None`: it is harmless.
#[test]
fn every_fault_is_classified_and_counted() {
    let wire = |fault: &str| format!("stall_ms: 60000, wire: [{{ fault: {fault}, every: 1 }}]");
    for (fault, class) in [
        (wire("drip"), None),
        (wire("huge_event"), None),
        (wire("missing_done"), None),
        (wire("data_after_done"), None),
        (wire("endless"), None),
        (wire("trailers"), None),
        (wire("upper_case_chunks"), None),
        (wire("chunk_extensions"), None),
        (wire("close_delimited"), None),
        (wire("interim"), None),
        (wire("gzip"), Some("protocol")),
        (wire("redirect"), Some("status")),
        (wire("half_close"), Some("truncated")),
        (wire("reset"), Some("truncated")),
        (wire("stall_head"), Some("timeout")),
        (wire("stall_middle"), Some("timeout")),
        ("drop_connection_probability: 1".to_owned(), Some("truncated")),
        ("truncate_probability: 1".to_owned(), Some("truncated")),
        ("midstream_error_probability: 1".to_owned(), Some("in_stream")),
        ("status_503_probability: 1".to_owned(), Some("status")),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let profile = scenario(
            folder.path(),
            "profile.yml",
            &format!("prefill_base_ms: 1\ndecode_base_ms: 1\nfaults: {{ {fault} }}\n"),
        );
        let output = run(folder.path(), &format!("sim://{profile}"), &[]);
        let rows = lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl");
        assert_eq!(rows.len(), 8, "{fault}");
        let summary = json(&latest(folder.path()), "metrics/summary_stats.json");
        match class {
            None => {
                assert_code(&output, 0);
                assert!(rows.iter().all(|row| row["success"] == true), "{fault}: {rows:?}");
                assert!(
                    rows.iter().all(|row| row["num_output_tokens"] == 8),
                    "{fault}: {rows:?}"
                );
            }
            Some(class) => {
                assert_code(&output, 5);
                for row in &rows {
                    assert_eq!(row["error_class"], class, "{fault}: {row}");
                }
                assert!(
                    stderr(&output).contains(&format!("8 requests failed ({class})")),
                    "{fault}: {}",
                    stderr(&output)
                );
                assert_eq!(summary["Number of Errored Requests"], 8, "{fault}");
            }
        }
    }
}

/// A thousand concurrent streams that are cut at one instant: each is a separate failure, and the
/// run continues with the others.
#[test]
fn a_thousand_streams_cut_at_once_are_a_thousand_failures() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = scenario(
        folder.path(),
        "profile.yml",
        "prefill_base_ms: 1\nprefill_ms_per_token: 0\ndecode_base_ms: 50\ndecode_ms_per_sequence: 0\nmax_batch: 4096\n\
         noise_cv: 0\nfaults: { cut_at_ms: 3000 }\n",
    );
    let more = [
        "--traffic_scheduler.target_concurrent_sessions",
        "1000",
        "--runtime.max_sessions",
        "1000",
        "--set",
        "session_generator.output_spec.text.output_length_generator={type: fixed, value: 400}",
        "--client.request_timeout",
        "60",
    ];
    let output = run(folder.path(), &format!("sim://{profile}"), &more);
    assert_code(&output, 5);
    let rows = lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl");
    assert_eq!(rows.len(), 1000);
    assert!(
        rows.iter()
            .all(|row| row["error_class"] == "truncated" || row["error_class"] == "connect"),
        "{:?}",
        rows.iter().find(|row| row["error_class"] != "truncated")
    );
    let ids: std::collections::HashSet<&str> =
        rows.iter().filter_map(|row| row["request_id"].as_str()).collect();
    assert_eq!(ids.len(), 1000);
}

/// Fewer open files than streams: the message has the limit and the fix, and the results of the
/// answered requests are kept.
#[test]
fn open_file_limit_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let sim = Sim::start(&["--profile", "slow"]);
    let file = scenario(folder.path(), "small.yml", SMALL);
    let program = env!("CARGO_BIN_EXE_veeksha-host");
    let command = format!(
        "ulimit -n 60; exec {program} run {file} --output_dir {} --client.api_base {} --traffic_scheduler.target_concurrent_sessions 200 \
         --runtime.max_sessions 200 --client.request_timeout 20",
        folder.path().display(),
        sim.api_base
    );
    let output = std::process::Command::new("sh")
        .args(["-c", &command])
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("a shell");
    // More than half of the requests failed.
    assert_code(&output, 6);
    let messages = stderr(&output);
    let fix = "no file descriptor is left (the limit is 60); raise it with `ulimit -n`";
    assert!(messages.contains(fix), "{messages}");
    let rows = lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl");
    assert_eq!(rows.len(), 200, "every request has its row");
    let (answered, refused): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row["error_class"].is_null());
    assert!(
        !answered.is_empty() && refused.len() > 100,
        "{} refused",
        refused.len()
    );
    for row in refused {
        assert_eq!(row["error_class"], "connect");
        let message = row["error_message"].as_str().expect("a message");
        assert!(message.contains(fix), "{message}");
    }
    sim.stop();
}

/// The kernel opens connections that a server does not accept; they would wait for their timeout.
#[test]
fn simulator_refuses_connections_beyond_its_open_files() {
    use std::io::{Read, Write};
    let sim = Sim::with_open_files(64, &["--profile", "fast"]);
    let address = sim.api_base.trim_start_matches("http://").trim_end_matches("/v1");
    let connect = |_| {
        let stream = std::net::TcpStream::connect(address).expect("a connection");
        let patience = Some(std::time::Duration::from_secs(20));
        stream.set_read_timeout(patience).expect("a timeout");
        stream
    };
    let mut open: Vec<_> = (0..40).map(connect).collect();
    let status = |stream: &mut std::net::TcpStream| {
        let mut head = [0; 12];
        stream.read_exact(&mut head).expect("an answer");
        String::from_utf8_lossy(&head).into_owned()
    };
    // 32 files are for other purposes.
    for refused in &mut open[32..] {
        assert_eq!(status(refused), "HTTP/1.1 503");
    }
    for served in &mut open[..32] {
        served
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
            .expect("a request");
        assert_eq!(status(served), "HTTP/1.1 200");
    }
    sim.stop();
}

/// Runs a program of a shell with a limit of open files. A run that waits for its deadline would
/// take 300 s.
fn with_open_files(limit: u32, file: &str, output_dir: &std::path::Path, more: &str) -> std::process::Output {
    let program = env!("CARGO_BIN_EXE_veeksha-host");
    let command = format!(
        "ulimit -n {limit}; exec timeout 60 {program} run {file} --output_dir {} {more}",
        output_dir.display()
    );
    std::process::Command::new("sh")
        .args(["-c", &command])
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("a shell")
}

#[test]
fn run_with_too_few_open_files_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), "small.yml", SMALL);
    let flags = "--client.api_base sim://default --traffic_scheduler.target_concurrent_sessions 4";
    let output = with_open_files(20, &file, folder.path(), flags);
    assert_code(&output, 1);
    let printed = stderr(&output);
    assert!(
        printed.contains("too many open files (EMFILE): the limit is 20, and this run needs at least 56"),
        "{printed}"
    );
    assert!(printed.contains("`ulimit -n 1024`"), "{printed}");
    assert!(!folder.path().join("latest").exists(), "nothing was started");
}

/// The simulator has the other ends of the connections, and could not accept all of them.
#[test]
fn run_with_too_few_open_files_for_the_simulator_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), "small.yml", SMALL);
    let flags = "--client.api_base sim://default --traffic_scheduler.target_concurrent_sessions 60";
    let output = with_open_files(100, &file, folder.path(), flags);
    assert_code(&output, 1);
    let printed = stderr(&output);
    assert!(
        printed.contains("the limit is 100, and this run needs at least 168"),
        "{printed}"
    );
}

/// A server that lists its models and goes away: agents fail because their requests do, and the
/// exit code is that of the cause.
#[test]
fn target_that_is_lost_explains_the_failures_of_agents() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("a connection");
        let mut head = [0; 4096];
        let _ = connection.read(&mut head).expect("a request");
        let models = r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#;
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{models}",
            models.len()
        );
        connection.write_all(answer.as_bytes()).expect("an answer");
    });
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        r#"
return {{
  session_generator = {{ type = "lua", agent = function(session)
    local answer = session:request {{ user = "x", output = 2 }}
    if not answer.ok then error("no answer") end
  end }},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 8, rampup_seconds = 0 }},
  client = {{ api_base = "http://{address}/v1" }},
  runtime = {{ max_sessions = 5000 }},
}}
"#
    );
    let file = scenario(folder.path(), "lost.lua", &text);
    let output_dir = folder.path().join("out");
    let output = veeksha(["run", &file, "--output_dir", path(&output_dir)]);
    server.join().expect("the server");
    assert_code(&output, 5);
    let error = stderr(&output);
    assert!(error.contains("no answer"), "{error}");
}
