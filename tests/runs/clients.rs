//! Scenarios with several clients, which requests choose by name.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::recording_server::RecordingServer;
use crate::results::{json as read_json, latest, lines};
use crate::simulated::{path, simulated};
use crate::support::{assert_code, scenario, stderr, stdout, veeksha};

fn event(value: &Value) -> String {
    match value["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {value}\n\n"),
        None => format!("data: {value}\n\n"),
    }
}

fn chat(text: &str) -> String {
    let part = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    format!("{}{}data: [DONE]\n\n", event(&part), event(&end))
}

fn anthropic(text: &str) -> String {
    let delta = json!({"type": "text_delta", "text": text});
    [
        json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 9, "output_tokens": 1}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop"}),
    ]
    .iter()
    .map(event)
    .collect()
}

/// A claim to the default client, a verdict of the judge on it, and an answer of the default client
/// to that.
fn debate(more: &str) -> String {
    format!(
        r#"
return {{
  session_generator = {{ type = "lua", sessions = function(index)
    return {{ requests = {{
      {{ user = "claim", output = 5 }},
      {{ user = "judge", history = 1, client = "judge", output = 5 }},
      {{ user = "reply", history = 2, client = "default", output = 5 }},
    }} }}
  end }},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 1, rampup_seconds = 0 }},
  runtime = {{ max_sessions = 1, benchmark_timeout = 60 }},
  {more}
}}
"#
    )
}

fn run(folder: &Path, file: &str, more: &[&str]) -> std::path::PathBuf {
    let output_dir = folder.join("out");
    let mut arguments = vec!["run", file, "--output_dir", path(&output_dir)];
    arguments.extend(more);
    assert_code(&veeksha(arguments), 0);
    latest(&output_dir)
}

/// The records of a run by node.
fn by_node(run: &Path) -> BTreeMap<u64, Value> {
    lines(run, "metrics/request_level_metrics.jsonl")
        .into_iter()
        .map(|line| (line["node_id"].as_u64().expect("a node"), line))
        .collect()
}

/// Two servers of different APIs, keys, headers and models. The second run repeats the first one
/// from its folder.
#[test]
fn each_request_reaches_the_server_of_its_client() {
    let folder = tempfile::tempdir().expect("a folder");
    let speaker = RecordingServer::start(|number| chat(&format!("speech {number}")));
    let judge = RecordingServer::start(|_| anthropic("verdict"));
    let text = debate(&format!(
        r#"
  client = {{ api_base = "{}", model = "speaker-1", api_key = "key-of-speaker", headers = {{ ["x-team"] = "team-one" }} }},
  clients = {{ judge = {{
    type = "anthropic_messages", api_base = "{}", model = "judge-1", api_key = "key-of-judge",
    headers = {{ ["x-team"] = "team-two" }}, additional_sampling_params = {{ temperature = 0 }},
  }} }},
"#,
        speaker.api_base, judge.api_base
    ));
    let file = scenario(folder.path(), "s.lua", &text);
    let first = run(folder.path(), &file, &[]);
    check_debate(&speaker, &judge, 0);
    let records = by_node(&first);
    for (node, client, server) in [(1, "default", 0), (2, "judge", 1), (3, "default", 0)] {
        let record = &records[&node];
        assert_eq!(record["labels"], json!([["client", client]]), "{record}");
        assert_eq!(record["server"], server, "{record}");
    }
    let config = std::fs::read_to_string(first.join("config.yml")).expect("config.yml");
    assert!(config.contains("\nclients:\n  judge:\n"), "{config}");
    for secret in ["key-of-speaker", "key-of-judge"] {
        assert!(!config.contains(secret), "{config}");
    }
    let summary = read_json(&first, "metrics/summary_stats.json");
    assert_eq!(summary["requests_by_server"]["1"]["completed"], 1, "{summary}");

    let keys = [
        "--client.api_key",
        "key-of-speaker",
        "--clients.judge.api_key",
        "key-of-judge",
        "--client.headers.x-team",
        "team-one",
        "--clients.judge.headers.x-team",
        "team-two",
    ];
    run(folder.path(), path(&first), &keys);
    check_debate(&speaker, &judge, 1);
}

/// Checks the requests of the debate after `before` earlier ones.
fn check_debate(speaker: &RecordingServer, judge: &RecordingServer, before: usize) {
    let (heads, bodies) = (speaker.heads(), speaker.bodies());
    assert_eq!(heads.len(), 2 * (before + 1));
    for (head, body) in heads.iter().zip(&bodies).skip(2 * before) {
        assert_eq!(head[":path"], "/v1/chat/completions");
        assert_eq!(head["authorization"], "Bearer key-of-speaker");
        assert_eq!(head["x-team"], "team-one");
        assert_eq!(body["model"], "speaker-1");
        assert_eq!(body.get("temperature"), None);
    }
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let speech = format!("speech {}", 2 * before + 1);
    assert_eq!(
        bodies[2 * before + 1]["messages"],
        json!([
            said("user", "claim"),
            said("assistant", &speech),
            said("user", "judge"),
            said("assistant", "verdict"),
            said("user", "reply"),
        ])
    );
    let (heads, bodies) = (judge.heads(), judge.bodies());
    assert_eq!(heads.len(), before + 1);
    let (head, body) = (&heads[before], &bodies[before]);
    assert_eq!(head[":path"], "/v1/messages");
    assert_eq!(
        (&*head["x-api-key"], head.get("authorization")),
        ("key-of-judge", None)
    );
    assert_eq!(head["x-team"], "team-two");
    assert_eq!(
        (&body["model"], &body["temperature"]),
        (&json!("judge-1"), &json!(0))
    );
    let roles: Vec<&Value> = body["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|m| &m["role"])
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert!(body["messages"][1].to_string().contains(&speech), "{body}");
}

/// A key of `client` is not sent to the server of another client.
#[test]
fn secrets_of_one_server_do_not_reach_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let speaker = RecordingServer::start(|_| chat("a"));
    let judge = RecordingServer::start(|_| chat("b"));
    let text = debate(&format!(
        r#"
  client = {{ api_base = "{}", model = "m", api_key = "secret-1", headers = {{ ["x-api-key"] = "secret-2", ["x-team"] = "t" }} }},
  clients = {{ judge = {{ api_base = "{}", model = "m" }} }},
"#,
        speaker.api_base, judge.api_base
    ));
    let file = scenario(folder.path(), "s.lua", &text);
    run(folder.path(), &file, &[]);
    let (speaker, judge) = (speaker.heads(), judge.heads());
    assert_eq!((speaker.len(), judge.len()), (2, 1));
    assert_eq!(speaker[0]["authorization"], "Bearer secret-1");
    assert_eq!(speaker[0]["x-api-key"], "secret-2");
    assert_eq!(
        (judge[0].get("authorization"), judge[0].get("x-api-key")),
        (None, None)
    );
    assert_eq!(judge[0]["x-team"], "t");
}

/// The simulated judge takes a fixed 300 ms for a prompt, the default client 10 ms.
#[test]
fn virtual_time_has_the_profile_of_each_client() {
    let folder = tempfile::tempdir().expect("a folder");
    let quick = "prefill_base_ms: 10\nprefill_ms_per_token: 0\nnoise_cv: 0\n";
    scenario(folder.path(), "quick.yml", quick);
    scenario(folder.path(), "slow.yml", &quick.replace("10", "300"));
    let clients = r#"
  client = { api_base = "sim://quick.yml", model = "m" },
  clients = { judge = { api_base = "sim://slow.yml", model = "m" } },
  evaluators = { { type = "performance", group_by = { "client" }, slos = { 'max(ttfc{client="judge"}) < 1s' } } },
"#;
    let run = simulated(folder.path(), "s.lua", &debate(clients), &[]);
    let records = by_node(&run);
    let ttfc = |node: u64| records[&node]["ttfc"].as_f64().expect("a time");
    for (node, expected) in [(1, 0.01), (2, 0.3), (3, 0.01)] {
        assert!((ttfc(node) - expected).abs() < 1e-9, "{node}: {}", ttfc(node));
    }
    let groups = read_json(&run, "metrics/summary_stats.json")["groups"].to_string();
    assert!(groups.contains("judge"), "{groups}");
    // A profile of the command line replaces that of `client`, and not that of another simulator.
    let fast = simulated(folder.path(), "s.lua", &debate(clients), &["--profile", "fast"]);
    let records = by_node(&fast);
    let ttfc = |node: u64| records[&node]["ttfc"].as_f64().expect("a time");
    assert!(ttfc(1) < 0.001 && (ttfc(2) - 0.3).abs() < 1e-9, "{records:?}");
}

/// Over sockets, each simulator answers in its API.
#[test]
fn every_simulated_client_has_its_own_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let clients = r#"
  client = { api_base = "sim://fast" },
  clients = {
    judge = { type = "anthropic_messages", api_base = "sim://fast" },
    unused = { connections = "never" },
  },
"#;
    let file = scenario(folder.path(), "s.lua", &debate(clients));
    let run = run(folder.path(), &file, &[]);
    let records = by_node(&run);
    assert!(
        records.values().all(|record| record["success"] == true),
        "{records:?}"
    );
    let servers: Vec<&Value> = records.values().map(|record| &record["server"]).collect();
    assert_eq!(servers, [0, 1, 0]);
}

#[test]
fn unknown_clients_are_named_with_session_node_and_nearest_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = debate(r#"client = { api_base = "sim://fast" }, clients = { judges = {} },"#);
    let file = scenario(folder.path(), "s.lua", &text);
    let expected = "session 0: node 2: the client `judge` does not exist; did you mean `judges`?";
    for command in ["check", "run", "simulate"] {
        let output = veeksha([command, &file, "--output_dir", path(folder.path())]);
        assert_code(&output, 4);
        assert!(
            stderr(&output).contains(expected),
            "{command}: {}",
            stderr(&output)
        );
    }
    let alone = debate(r#"client = { api_base = "sim://fast" },"#);
    let file = scenario(folder.path(), "alone.lua", &alone);
    let output = veeksha(["check", &file]);
    assert_code(&output, 4);
    let expected = "node 2: the client `judge` does not exist; declare it in `clients` of the scenario";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}

#[test]
fn mistakes_name_the_client() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |clients: &str, code: i32, expected: &str| {
        let text = debate(&format!(
            r#"client = {{ api_base = "sim://fast" }}, clients = {{ {clients} }},"#
        ));
        let file = scenario(folder.path(), "s.lua", &text);
        let output = veeksha(["check", &file]);
        assert_code(&output, code);
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    };
    check(
        "default = {}",
        2,
        "clients.default: the name `default` is that of `client`",
    );
    check(
        "judge = { modle = 'm' }",
        2,
        "clients.judge.modle: unknown key; did you mean `model`?",
    );
    check(
        "judge = { api_base = 'sim://nothing' }",
        2,
        "clients.judge: there is no profile `nothing`",
    );
    check(
        "judge = { type = 'wasm', codec = { plugin = 'nothing.wasm' } }",
        2,
        "clients.judge.codec.plugin",
    );
    check(
        "judge = { tokenizer = 'gpt2' }",
        2,
        "clients.judge.tokenizer: applies to the requests of all clients",
    );
    // A server that is not there, before anything is sent.
    let text = debate(
        r#"client = { api_base = "sim://fast" }, clients = { judge = { api_base = "http://127.0.0.1:9/v1" } },"#,
    );
    let file = scenario(folder.path(), "s.lua", &text);
    let output = veeksha(["run", &file, "--output_dir", path(folder.path())]);
    assert_code(&output, 5);
    let message = stderr(&output);
    assert!(
        message.contains("clients.judge: http://127.0.0.1:9/v1/models"),
        "{message}"
    );
    assert!(message.contains("clients.judge.api_base"), "{message}");
}

/// What an API cannot express is decided by the API of the request's client.
#[test]
fn a_request_is_checked_against_the_api_of_its_client() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = |client: &str| {
        debate(
            r#"client = { type = "openai_completions", api_base = "sim://fast" },
  clients = { judge = { type = "openai_chat_completions" } },"#,
        )
        .replace(
            r#"user = "judge", history = 1, client = "judge""#,
            &format!(r#"user = "judge", tools = {{ {{ name = "look" }} }}, {client}"#),
        )
        .replace("history = 2", "history = 1")
    };
    let file = scenario(folder.path(), "s.lua", &text(r#"client = "judge""#));
    assert_code(&veeksha(["check", &file]), 0);
    let file = scenario(folder.path(), "s.lua", &text(r#"client = "default""#));
    let output = veeksha(["check", &file]);
    assert_code(&output, 4);
    assert!(stderr(&output).contains("node 2"), "{}", stderr(&output));
}

#[test]
fn check_lists_the_clients() {
    let output = veeksha(["check", "scenarios/debate.lua"]);
    assert_code(&output, 0);
    let text = stdout(&output);
    for expected in [
        "Client against",
        "Client judge",
        "sim://slow; anthropic_messages; judge",
    ] {
        assert!(text.contains(expected), "{text}");
    }
}

/// Functions that the conversation states for one API reach no API without functions, and verbatim
/// ones none of another form: nothing of the session is sent.
#[test]
fn what_the_next_client_cannot_send_is_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = RecordingServer::start(|_| chat("a"));
    let portable = r#"{ { name = "look" } }"#;
    let verbatim = r#"'[{"type":"function","function":{"name":"look"}}]'"#;
    for (tools, kind, what) in [
        (
            portable,
            "openai_completions",
            "the endpoint `completions` cannot send tool definitions",
        ),
        (
            verbatim,
            "anthropic_messages",
            "the endpoint `messages` cannot send verbatim tool definitions of the endpoint `chat/completions`",
        ),
    ] {
        let text = format!(
            r#"
return {{
  session_generator = {{ type = "lua", sessions = function()
    return {{ requests = {{
      {{ user = "one", tools = {tools}, output = 5 }},
      {{ user = "two", history = 1, client = "other", output = 5 }},
    }} }}
  end }},
  client = {{ api_base = "{}", model = "m" }},
  clients = {{ other = {{ type = "{kind}" }} }},
  runtime = {{ max_sessions = 1, benchmark_timeout = 60 }},
}}
"#,
            server.api_base
        );
        let file = scenario(folder.path(), "s.lua", &text);
        let expected = format!("session 0: node 2: the client `other`: {what}");
        for command in ["check", "run", "simulate"] {
            let output = veeksha([command, &file, "--output_dir", path(folder.path())]);
            assert_code(&output, 4);
            assert!(
                stderr(&output).contains(&expected),
                "{command}: {}",
                stderr(&output)
            );
        }
        assert!(server.heads().is_empty());
    }
}

/// An agent is refused the request, in virtual time as over sockets.
#[test]
fn agents_are_refused_what_the_next_client_cannot_send() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = RecordingServer::start(|_| chat("a"));
    let text = format!(
        r#"
return {{
  session_generator = {{ type = "lua", agent = function(session)
    local one = session:request {{ user = "one", tools = {{ {{ name = "look" }} }}, output = 5 }}
    local two = session:request {{ user = "two", history = one, client = "same", output = 5 }}
    session:request {{ user = "three", history = two, client = "text", output = 5 }}
  end }},
  client = {{ api_base = "{}", model = "m" }},
  clients = {{ same = {{}}, text = {{ type = "openai_completions" }} }},
  runtime = {{ max_sessions = 1, benchmark_timeout = 60 }},
}}
"#,
        server.api_base
    );
    let file = scenario(folder.path(), "s.lua", &text);
    for command in ["check", "run", "simulate"] {
        let output = veeksha([command, &file, "--output_dir", path(folder.path())]);
        assert_code(&output, 4);
        let expected =
            "session 0: node 3: the client `text`: the endpoint `completions` cannot send tool definitions";
        assert!(
            stderr(&output).contains(expected),
            "{command}: {}",
            stderr(&output)
        );
    }
    // The first steps of agents are made and checked before anything is sent.
    assert_eq!(server.heads().len(), 0);
}

/// An answer with thinking and a signature.
fn signed(number: usize) -> String {
    let delta =
        |index: u32, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    [
        json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 9, "output_tokens": 1}}}),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": format!("SIGNATURE-{number}")})),
        delta(1, json!({"type": "text_delta", "text": "yes"})),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop"}),
    ]
    .iter()
    .map(event)
    .collect()
}

/// Two clients of one server, and one of another server with the same API.
#[test]
fn signatures_are_sent_to_the_server_that_made_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, other) = (RecordingServer::start(signed), RecordingServer::start(signed));
    let text = format!(
        r#"
return {{
  session_generator = {{ type = "lua", sessions = function()
    return {{ requests = {{
      {{ user = "one", output = 5 }},
      {{ user = "two", history = 1, keep_reasoning = true, client = "greedy", output = 5 }},
      {{ user = "three", history = 2, keep_reasoning = true, client = "other", output = 5 }},
    }} }}
  end }},
  client = {{ type = "anthropic_messages", api_base = "{}", model = "m" }},
  clients = {{
    greedy = {{ additional_sampling_params = {{ temperature = 0 }} }},
    other = {{ api_base = "{}", model = "m" }},
  }},
  runtime = {{ max_sessions = 1, benchmark_timeout = 60 }},
}}
"#,
        one.api_base, other.api_base
    );
    let file = scenario(folder.path(), "s.lua", &text);
    run(folder.path(), &file, &[]);
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "SIGNATURE-1"});
    let said = json!({"type": "text", "text": "yes"});
    assert_eq!(
        one.bodies()[1]["messages"][1],
        json!({"role": "assistant", "content": [thinking, said]})
    );
    let user = |text: &str| json!({"role": "user", "content": text});
    let plain = json!({"role": "assistant", "content": "yes"});
    assert_eq!(
        other.bodies()[0]["messages"],
        json!([user("one"), plain, user("two"), plain, user("three")])
    );
}
