//! A real llama.cpp server, with counts from both sides.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::results::{json, latest, lines};
use crate::skip::skip;
use crate::support::{assert_code, root, veeksha};

struct Llama {
    child: Child,
    port: u16,
}

impl Drop for Llama {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a virtual environment with the server's wheel, made once per target folder. `None` if
/// Python or its registry is unavailable.
fn environment() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("llama");
    let ready = folder.join("ready");
    if !ready.exists() {
        let made = Command::new("python3").args(["-m", "venv"]).arg(&folder).status();
        if !made.is_ok_and(|status| status.success()) {
            return None;
        }
        let requirements = root().join("tests/llama/requirements.txt");
        let mut pip = Command::new(folder.join("bin/pip"));
        pip.args(["install", "--quiet", "--only-binary", ":all:", "-r"])
            .arg(requirements);
        if !pip.status().is_ok_and(|status| status.success()) {
            return None;
        }
        std::fs::write(ready, "").ok()?;
    }
    Some(folder)
}

/// The first test makes the environment and the model while the others wait.
static MAKING: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn start() -> Option<Llama> {
    let _making = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let environment = environment()?;
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .ok()?
        .local_addr()
        .ok()?
        .port();
    let mut command = Command::new(environment.join("bin/python"));
    command
        .arg(root().join("tests/llama/server.py"))
        .arg(environment.join("model"))
        .arg(port.to_string());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    let llama = Llama { child, port };
    // The server accepts connections before it has loaded its model, and answers 503 until then.
    for _ in 0..600 {
        if get(port, "/health").is_some_and(|answer| answer.starts_with("HTTP/1.1 200")) {
            return Some(llama);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("llama.cpp does not listen after a minute");
}

fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Returns a counter of the server's `/metrics`.
fn counter(port: u16, name: &str) -> f64 {
    let text = get(port, "/metrics").expect("the server");
    let line = text
        .lines()
        .find(|line| line.starts_with(name))
        .unwrap_or_else(|| panic!("{name} in {text}"));
    line.split_whitespace()
        .nth(1)
        .and_then(|value| value.parse().ok())
        .expect("a number")
}

/// With the model's chat template applied, a prompt of 64 tokens also has 64 tokens on the server,
/// for both endpoints.
#[test]
fn wrapped_prompts_have_the_asked_length_on_llama_cpp() {
    let Some(llama) = start() else {
        skip("llama.cpp", "no Python, or its registry cannot be reached");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let tokenizer = Path::new(env!("CARGO_TARGET_TMPDIR")).join("llama/model/tokenizer.json");
    let text = format!(
        "session_generator:\n  type: synthetic\n  session_graph: {{ type: single_request }}\n  \
         channels: [ {{ type: text, body_length_generator: {{ type: uniform, min: 40, max: 90 }} }} ]\n  \
         output_spec: {{ text: {{ output_length_generator: {{ type: fixed, value: 3 }} }} }}\n\
         traffic_scheduler: {{ type: concurrent, target_concurrent_sessions: 4, rampup_seconds: 0 }}\n\
         client: {{ api_base: 'http://127.0.0.1:{}/v1', tokenizer: {tokenizer:?}, apply_chat_template: true, prompt_length: wrapped }}\n\
         runtime: {{ max_sessions: 40 }}\n",
        llama.port
    );
    let file = crate::support::scenario(folder.path(), "wrapped.yml", &text);
    let output_dir = folder.path().to_str().expect("UTF-8");
    for interface in ["openai_chat_completions", "openai_completions"] {
        let arguments = [
            "run",
            &file,
            "--output_dir",
            output_dir,
            "--client.type",
            interface,
        ];
        assert_code(&veeksha(arguments), 0);
        let rows = lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl");
        assert_eq!(rows.len(), 40);
        for row in &rows {
            let asked = row["target_num_delta_prompt_tokens"].as_u64().expect("a length");
            assert!((40..=90).contains(&asked), "{row}");
            assert!(row["num_template_tokens"].as_u64() > Some(0), "{row}");
            assert_eq!(row["usage_prompt_tokens"], asked, "{interface}: {row}");
            assert_eq!(row["num_total_prompt_tokens"], asked, "{interface}: {row}");
        }
    }
}

#[test]
fn llama_cpp_counts_what_the_host_counts() {
    let Some(llama) = start() else {
        skip("llama.cpp", "no Python, or its registry cannot be reached");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let output_dir = folder.path().to_str().expect("UTF-8");
    let api_base = format!("http://127.0.0.1:{}/v1", llama.port);
    let tokenizer = Path::new(env!("CARGO_TARGET_TMPDIR")).join("llama/model/tokenizer.json");
    let tokenizer = tokenizer.to_str().expect("UTF-8");
    let mut arguments = vec!["run", "scenarios/quickstart.lua", "--output_dir", output_dir];
    arguments.extend(["--client.api_base", &api_base, "--client.tokenizer", tokenizer]);
    // The test compares counts; the speed of the machine is irrelevant.
    arguments.extend(["--set", "evaluators=[{type: performance}]"]);
    assert_code(&veeksha(arguments), 0);

    let run = latest(folder.path());
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let sum = |key: &str| {
        rows.iter()
            .map(|row| row[key].as_f64().expect("a count"))
            .sum::<f64>()
    };
    assert!(rows.iter().all(|row| row["success"] == true));
    assert_eq!(
        json(&run, "metrics/summary_stats.json")["Number of Errored Requests"],
        0
    );
    // The server closes connections silently; no request may be lost or sent twice as a result.
    assert_eq!(
        counter(llama.port, "llamacpp:tokens_predicted_total"),
        sum("num_output_tokens")
    );
    // The server has separate counters for processed and for cached prompt tokens.
    let processed = counter(llama.port, "llamacpp:prompt_tokens_total");
    let cached = counter(llama.port, "llamacpp:prompt_tokens_cached_total");
    assert_eq!(processed + cached, sum("usage_prompt_tokens"));
    for row in &rows {
        assert_eq!(
            row["num_output_tokens"], row["num_requested_output_tokens"],
            "{row}"
        );
        assert!(
            row["usage_prompt_tokens"].as_u64() >= row["num_total_prompt_tokens"].as_u64(),
            "{row}"
        );
    }
}

/// The server accepts definitions of functions, calls with their results, and reasoning in the
/// history.
#[test]
fn llama_cpp_accepts_complete_messages() {
    let Some(llama) = start() else {
        skip("llama.cpp", "no Python, or its registry cannot be reached");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = format!(
        r#"
return {{
  session_generator = {{ type = "lua", sessions = function(index)
    return {{ requests = {{
      {{ messages = {{
          {{ role = "user", content = "What is the time?" }},
          {{ role = "assistant", reasoning = "A clock is needed.", tool_calls = {{ {{ id = "call00001", name = "now" }} }} }},
          {{ role = "tool", tool_call_id = "call00001", content = "noon" }},
        }}, tools = {{ {{ name = "now", description = "The time.", parameters = {{ type = "object" }} }} }},
        tool_choice = "none", output = 8 }},
      {{ user = "And then?", history = 1, keep_reasoning = true, output = 8 }},
    }} }}
  end }},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 1, rampup_seconds = 0 }},
  client = {{ api_base = "http://127.0.0.1:{}/v1" }},
  runtime = {{ max_sessions = 2 }},
}}
"#,
        llama.port
    );
    let file = crate::support::scenario(folder.path(), "messages.lua", &scenario);
    let output_dir = folder.path().to_str().expect("UTF-8");
    assert_code(&veeksha(["run", &file, "--output_dir", output_dir]), 0);
    let rows = lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl");
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row["success"] == true), "{rows:?}");
}
