//! Secrets are absent from all files of a run folder and from the terminal.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use crate::results::latest;
use crate::simulated::path;
use crate::support::{UNJUDGED, program, scenario};

/// The secret that the tests put in every place where one can be given.
const CANARY: &str = "canary8d1f6b2e";

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.is_symlink() {
            files_below(&path, found);
        } else if !path.is_symlink() {
            found.push(path);
        }
    }
}

fn holds(bytes: &[u8]) -> bool {
    bytes
        .windows(CANARY.len())
        .any(|window| window == CANARY.as_bytes())
}

/// Headers with names of every kind, keys, addresses, parameters of requests and of plugins; in the
/// scenario and on the command line; for a server that answers, one that refuses, and one that is
/// unreachable.
#[test]
fn a_secret_is_in_no_file_and_on_no_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let sim = crate::server::Sim::start(&[]);
    let wrong_path = sim.api_base.replace("/v1", "/nothing");
    for (name, base, code, has_files) in [
        ("good", sim.api_base.as_str(), 0, true),
        ("refused", wrong_path.as_str(), 5, true),
        // Nothing is sent to an unreachable server, and no folder is created.
        ("away", "http://127.0.0.1:9/v1", 5, false),
    ] {
        let text = format!(
            r#"
session_generator:
  type: synthetic
  session_graph: {{ type: single_request }}
  channels: [ {{ type: text, body_length_generator: {{ type: fixed, value: 20 }} }} ]
  output_spec: {{ text: {{ output_length_generator: {{ type: fixed, value: 4 }} }} }}
traffic_scheduler: {{ type: concurrent, target_concurrent_sessions: 2, rampup_seconds: 0 }}
client:
  type: openai_chat_completions
  api_base: "{base}?key={CANARY}0&other={CANARY}1"
  api_key: {CANARY}2
  model: m
  headers:
    bearer: {CANARY}3
    x-jwt: {CANARY}4
    sessionid: {CANARY}5
    x-pass: {CANARY}6
    x-access: {CANARY}7
    Cookie: a={CANARY}8
    X-Plain: {CANARY}9
  additional_sampling_params: {{ access_token: {CANARY}a, nested: {{ headers: {{ x-any: {CANARY}b }} }} }}
runtime: {{ max_sessions: 4, benchmark_timeout: 10 }}
trace_recorder: {{ include_content: true }}
"#
        );
        let file = scenario(folder.path(), &format!("{name}.yml"), &text);
        let out = folder.path().join(name);
        let mut command = program();
        command.args(["run", &file, "--output_dir", path(&out), "--compat", "aiperf"]);
        command.args(["--client.headers.x-typed", &format!("{CANARY}c")]);
        command.args(UNJUDGED);
        let output = command.output().expect("the program runs");
        assert_eq!(
            output.status.code(),
            Some(code),
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        for (stream, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            assert!(
                !holds(bytes),
                "{name}, {stream}: {}",
                String::from_utf8_lossy(bytes)
            );
        }
        assert_eq!(out.exists(), has_files, "{name}");
        if !has_files {
            continue;
        }
        let mut files = Vec::new();
        files_below(&latest(&out), &mut files);
        assert!(files.len() > 5, "{files:?}");
        for file in files {
            let bytes = std::fs::read(&file).expect("a file");
            assert!(!holds(&bytes), "{name}: {}", file.display());
        }
    }
    sim.stop();
}

/// Starts a server that refuses each request with a text made from it, and returns its address.
fn refusing_server(body: impl Fn(&str) -> String + Copy + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let mut request = [0; 65_536];
                let length = stream.read(&mut request).unwrap_or(0);
                let body = body(&String::from_utf8_lossy(&request[..length]));
                let head = "HTTP/1.1 401 Unauthorized\r\ncontent-type: text/plain\r\nconnection: close";
                let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                let _ = stream.write_all(answer.as_bytes());
            });
        }
    });
    address
}

/// Runs a scenario against a server that refuses every request: the secret is in no file and not on
/// the terminal.
fn assert_hidden_from_refusals(client: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        r#"
session_generator:
  type: synthetic
  session_graph: {{ type: single_request }}
  channels: [ {{ type: text, body_length_generator: {{ type: fixed, value: 20 }} }} ]
  output_spec: {{ text: {{ output_length_generator: {{ type: fixed, value: 4 }} }} }}
traffic_scheduler: {{ type: concurrent, target_concurrent_sessions: 2, rampup_seconds: 0 }}
client: {{ {client}, model: m }}
runtime: {{ max_sessions: 2, benchmark_timeout: 10 }}
"#
    );
    let file = scenario(folder.path(), "cut.yml", &text);
    assert_hidden(&file, folder.path());
}

/// Runs a scenario whose server refuses every request, and checks that the secret is in no file and
/// not on the terminal.
fn assert_hidden(file: &str, folder: &Path) {
    let out = folder.join("out");
    let mut command = program();
    command
        .args(["run", file, "--output_dir", path(&out)])
        .args(UNJUDGED);
    let output = command.output().expect("the program runs");
    assert_eq!(output.status.code(), Some(5));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("401"), "{stderr}");
    assert!(!holds(&output.stdout) && !holds(&output.stderr), "{stderr}");
    let mut files = Vec::new();
    files_below(&latest(&out), &mut files);
    assert!(files.len() > 5, "{files:?}");
    for file in files {
        let bytes = std::fs::read(&file).expect("a file");
        assert!(!holds(&bytes), "{}", file.display());
    }
}

/// A server that repeats a rejected key in the part of its answer where the excerpt is cut: neither
/// the key nor its beginning is printed or written.
#[test]
fn a_key_at_the_cut_of_an_excerpt_is_in_no_file_and_on_no_terminal() {
    const KEY: &str = "canary8d1f6b2e-0123456789-abcdefghij-0123456789-klmnopqrst";
    // Excerpts have 200 characters, so the cut is within the key.
    let address = refusing_server(|_| format!("{}{KEY} and more", "x".repeat(170)));
    assert_hidden_from_refusals(&format!("api_base: \"http://{address}/v1\", api_key: {KEY}"));
}

/// A server that repeats the end of the body, where the parameters of the request are.
#[test]
fn a_secret_of_the_body_that_a_server_repeats_is_in_no_file_and_on_no_terminal() {
    let address = refusing_server(|request| {
        let start = request.len().saturating_sub(120);
        format!("bad parameters: {}", &request[start..])
    });
    assert_hidden_from_refusals(&format!(
        "api_base: \"http://{address}/v1\", additional_sampling_params: {{ access_token: {CANARY}d }}"
    ));
}

/// A server that repeats a header of the session.
#[test]
fn a_header_of_the_workload_that_a_server_repeats_is_in_no_file_and_on_no_terminal() {
    let address = refusing_server(|request| {
        let line = request.lines().find(|line| line.starts_with("x-tenant-secret"));
        format!("bad header: {}", line.unwrap_or("none"))
    });
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        r#"
return {{
  session_generator = {{ type = "lua", sessions = function(index)
    return {{
      headers = {{ ["x-tenant-secret"] = "canary" .. "8d1f6b2e" .. index }},
      requests = {{ {{ user = "hello", output = 1 }} }},
    }}
  end }},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 1, rampup_seconds = 0 }},
  client = {{ model = "m", api_base = "http://{address}/v1" }},
  runtime = {{ max_sessions = 2, benchmark_timeout = 10 }},
}}
"#
    );
    let file = scenario(folder.path(), "tenant.lua", &text);
    assert_hidden(&file, folder.path());
}

/// A script composes a header, a flag replaces a key, and another run of the script has its own.
#[test]
fn secrets_of_a_script_are_not_in_its_copy() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        r#"
local token = "{CANARY}-123456"
local function of(key)
  return {{
    session_generator = {{
      type = "synthetic",
      session_graph = {{ type = "single_request" }},
      channels = {{ {{ type = "text", body_length_generator = {{ type = "fixed", value = 20 }} }} }},
      output_spec = {{ text = {{ output_length_generator = {{ type = "fixed", value = 4 }} }} }},
    }},
    client = {{ api_base = "sim://fast", api_key = key, headers = {{ Authorization = "Bearer " .. token }} }},
    runtime = {{ max_sessions = 2 }},
  }}
end
return {{ of("{CANARY}-first"), of("{CANARY}-second") }}
"#
    );
    let file = scenario(folder.path(), "two.lua", &text);
    let out = folder.path().join("out");
    let mut command = program();
    command
        .args([
            "run",
            &file,
            "--output_dir",
            path(&out),
            "--client.api_key",
            "another-key",
        ])
        .args(UNJUDGED);
    let output = command.output().expect("the program runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let mut files = Vec::new();
    files_below(&out, &mut files);
    let copies = files.iter().filter(|file| file.ends_with("scenario/two.lua"));
    assert_eq!(copies.count(), 2, "{files:?}");
    for file in files {
        let bytes = std::fs::read(&file).expect("a file");
        assert!(!holds(&bytes), "{}", file.display());
    }
}

/// An agent that carries a secret on, as if a server had repeated the headers of a request.
#[test]
fn secrets_that_an_agent_carries_on_are_in_no_file_and_on_no_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        r#"
return {{
  session_generator = {{ type = "lua", agent = function(session)
    local answer = session:request {{ user = "Repeat {CANARY}.", output = 2, labels = {{ who = "{CANARY}" }} }}
    log.info("the answer was {CANARY}")
    if session.index == 1 then error("no use for {CANARY}") end
    session:tool("sandbox", {{ labels = {{ key = "{CANARY}" }} }})
  end }},
  tools = {{ sandbox = {{}} }},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 2, rampup_seconds = 0 }},
  client = {{ api_base = "sim://default", api_key = "{CANARY}" }},
  runtime = {{ max_sessions = 3 }},
}}
"#
    );
    let file = scenario(folder.path(), "agent.lua", &text);
    for command in ["run", "simulate"] {
        let output_dir = folder.path().join(command);
        let arguments = [command, &file, "--output_dir", path(&output_dir)];
        let output = crate::support::veeksha(arguments);
        crate::support::assert_code(&output, 4);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("the answer was ***"), "{error}");
        assert!(error.contains("no use for ***"), "{error}");
        assert!(!holds(&output.stderr) && !holds(&output.stdout), "{error}");
        let mut files = Vec::new();
        files_below(&output_dir, &mut files);
        assert!(files.iter().any(|file| file.ends_with("decisions.jsonl")));
        for file in files {
            let bytes = std::fs::read(&file).expect("a file");
            assert!(!holds(&bytes), "{}", file.display());
        }
    }
}
