//! The headers that a server receives, and the ids by which its logs are searched.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::recording_server::RecordingServer;
use crate::results::{latest, lines};
use crate::support::{assert_code, scenario, stderr, veeksha};

const CHAT: &str = "data: {\"id\":\"chatcmpl-ID\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n\
    data: {\"id\":\"chatcmpl-ID\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

const ANTHROPIC: &str = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_ID\"}}\n\n\
    data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n\
    data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
    data: {\"type\":\"message_stop\"}\n\n";

const COMPLETIONS: &str = "data: {\"id\":\"cmpl-ID\",\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\n\
    data: {\"id\":\"cmpl-ID\",\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

const RESPONSES: &str = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_ID\"}}\n\n\
    data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"a\"}\n\n\
    data: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_ID\",\"status\":\"completed\"}}\n\n";

const TGI: &str = "data:{\"index\":1,\"token\":{\"id\":1,\"text\":\"a\"},\"generated_text\":\"a\",\
    \"details\":{\"finish_reason\":\"length\",\"generated_tokens\":1}}\n\n";

/// Sessions 0 and 2 have the label `tenant`; the second request of each session has `step`.
fn labelled(client: &str) -> String {
    format!(
        r#"
return {{
  session_generator = {{ type = "lua", sessions = function(index)
    return {{
      labels = if index % 2 == 0 then {{ tenant = "acme-" .. index }} else {{}},
      requests = {{
        {{ user = "hello", output = 1 }},
        {{ user = "again", history = 1, output = 1, labels = {{ step = "two" }} }},
      }},
    }}
  end }},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 2, rampup_seconds = 0 }},
  client = {{ model = "m", {client} }},
  runtime = {{ max_sessions = 3, benchmark_timeout = 60 }},
}}
"#
    )
}

/// Runs a scenario, and returns the record's lines by request id, and the run's id.
fn run(folder: &Path, text: &str) -> (BTreeMap<String, Value>, String) {
    let file = scenario(folder, "s.lua", text);
    let output_dir = folder.to_str().expect("UTF-8");
    assert_code(&veeksha(["run", &file, "--output_dir", output_dir]), 0);
    let run = latest(folder);
    let started = &lines(&run, "traces/trace.jsonl")[0];
    let rows = lines(&run, "metrics/request_level_metrics.jsonl").into_iter();
    let rows = rows.map(|row| (row["request_id"].as_str().expect("an id").to_owned(), row));
    let run_id = started["run_id"].as_str().expect("the run's id");
    (rows.collect(), run_id.to_owned())
}

#[test]
fn headers_identify_run_session_and_request() {
    let template = r#"template", address_append_value = "chat", template = {
      request = { p = "{{prompt}}" },
      answer = { text = "/choices/0/delta/content", finish_reason = "/choices/0/finish_reason", done = "[DONE]" },
    }, model = ""#;
    // The events of some have no id.
    for (kind, stream, id) in [
        ("openai_chat_completions", CHAT, Some("chatcmpl-")),
        ("openai_completions", COMPLETIONS, Some("cmpl-")),
        ("openai_responses", RESPONSES, Some("resp_")),
        ("anthropic_messages", ANTHROPIC, Some("msg_")),
        ("tgi_generate_stream", TGI, None),
        (template, CHAT, None),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let server = RecordingServer::repeating(stream);
        let api_base = &server.api_base;
        let client = format!(
            r#"type = "{kind}", api_base = "{api_base}", session_headers = {{ "dynamo", "codex" }}, traceparent = true,
            headers = {{
              ["x-tenant"] = "t:{{{{session.label.tenant}}}}", ["x-step"] = "{{{{request.label.step}}}}",
              ["x-plain"] = "{{{{run.id}}}}", ["thread-id"] = "fixed",
            }}"#
        );
        let (rows, run_id) = run(folder.path(), &labelled(&client));
        let heads = server.heads();
        assert_eq!((rows.len(), heads.len()), (6, 6), "{kind}");
        for (number, head) in heads.iter().enumerate() {
            let request = head["x-request-id"].strip_prefix(&format!("{run_id}/"));
            let request = request.expect("run/session/node");
            let (session, node) = request.split_once('/').expect("session/node");
            let own = format!("{run_id}-{session}");
            assert_eq!(head["x-dynamo-session-id"], own, "{kind} {request}");
            assert_eq!(head["session-id"], own);
            assert_eq!(head["thread-id"], "fixed", "headers override the session headers");
            assert_eq!(head["x-plain"], run_id);
            let tenant = (session != "1").then(|| format!("t:acme-{session}"));
            assert_eq!(head.get("x-tenant"), tenant.as_ref(), "{kind} {request}");
            let step = (node == "2").then_some("two");
            assert_eq!(head.get("x-step").map(String::as_str), step);
            let row = &rows[request];
            let trace = format!("00-{}-", row["trace_id"].as_str().expect("a trace id"));
            assert!(head["traceparent"].starts_with(&trace), "{row}");
            // The number of the answer is that of the request on this server.
            let given = id.map_or("of-the-head".to_owned(), |id| format!("{id}{}", number + 1));
            assert_eq!(row["response_id"], given, "{row}");
        }
        let traces: std::collections::BTreeSet<_> = heads.iter().map(|head| &head["traceparent"]).collect();
        assert_eq!(traces.len(), 6, "each request is a trace");
    }
}

#[test]
fn header_of_the_response_identifies_a_failed_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = RecordingServer::repeating("data: {\"error\":{\"message\":\"no\"}}\n\n");
    let api_base = &server.api_base;
    let file = scenario(
        folder.path(),
        "s.lua",
        &labelled(&format!(r#"api_base = "{api_base}""#)),
    );
    let output_dir = folder.path().to_str().expect("UTF-8");
    assert_code(&veeksha(["run", &file, "--output_dir", output_dir]), 5);
    for row in lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl") {
        assert_eq!(row["response_id"], "of-the-head", "{row}");
        assert_eq!(row["trace_id"], Value::Null);
    }
    assert!(server.heads().iter().all(|head| {
        let has = |name: &str| head.contains_key(name);
        has("x-request-id") && !has("traceparent") && !has("x-dynamo-session-id")
    }));
}

#[test]
fn repeated_request_id_is_not_an_id_of_the_response() {
    let folder = tempfile::tempdir().expect("a folder");
    const WITHOUT_ID: &str =
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";
    let server = RecordingServer::repeating(WITHOUT_ID);
    let api_base = &server.api_base;
    let headers = r#"headers = { ["x-repeat-id"] = "{{request.id}}" }"#;
    let (rows, _) = run(
        folder.path(),
        &labelled(&format!(r#"api_base = "{api_base}", {headers}"#)),
    );
    assert_eq!(rows.len(), 6);
    assert!(rows.values().all(|row| row["response_id"].is_null()), "{rows:?}");
}

#[test]
fn label_with_a_line_break_fails_its_requests_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = RecordingServer::repeating(CHAT);
    let api_base = &server.api_base;
    let client =
        format!(r#"api_base = "{api_base}", headers = {{ ["x-tenant"] = "{{{{session.label.tenant}}}}" }}"#);
    let text = labelled(&client).replace("\"acme-\" .. index", "\"a\\r\\nx-admin: \" .. index");
    let file = scenario(folder.path(), "s.lua", &text);
    let output_dir = folder.path().to_str().expect("UTF-8");
    let output = veeksha(["run", &file, "--output_dir", output_dir]);
    let rows = lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl");
    let (good, bad): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row["session_id"] == 1);
    assert_eq!((good.len(), bad.len()), (2, 2), "{}", stderr(&output));
    assert!(good.iter().all(|row| row["success"] == true), "{good:?}");
    for row in bad {
        assert_eq!(
            row["error_message"],
            "the header `x-tenant` cannot be sent: the label `tenant` has a line break or another character that a \
             header cannot carry"
        );
    }
    assert_eq!(server.heads().len(), 2);
}

/// Headers of the session, of a request, and of the configuration: the most specific one is sent.
#[test]
fn headers_of_the_workload_reach_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = RecordingServer::repeating(CHAT);
    let base = &server.api_base;
    let text = format!(
        r#"
return {{
  session_generator = {{ type = "lua", sessions = function(index)
    return {{
      headers = {{ ["x-session"] = "s" .. index, ["X-Tier"] = "session" }},
      requests = {{
        {{ user = "hello", output = 1 }},
        {{ user = "again", history = 1, output = 1, headers = {{ ["x-tier"] = "request", ["x-turn"] = 2 }} }},
      }},
    }}
  end }},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 1, rampup_seconds = 0 }},
  client = {{ model = "m", api_base = "{base}", headers = {{ ["x-TIER"] = "client", ["x-client"] = "c" }} }},
  runtime = {{ max_sessions = 1, benchmark_timeout = 60 }},
}}
"#
    );
    let file = scenario(folder.path(), "workload.lua", &text);
    let out = folder.path().join("out");
    let output = veeksha(["run", &file, "--output_dir", out.to_str().expect("UTF-8")]);
    assert_code(&output, 0);
    let heads = server.heads();
    let names = ["x-session", "x-tier", "x-turn", "x-client"];
    let sent: Vec<[Option<&str>; 4]> = heads
        .iter()
        .map(|head| names.map(|name| head.get(name).map(String::as_str)))
        .filter(|[session, ..]| session.is_some())
        .collect();
    assert_eq!(
        sent,
        [
            [Some("s0"), Some("session"), None, Some("c")],
            [Some("s0"), Some("request"), Some("2"), Some("c")],
        ]
    );
}

/// The names that the routers and clients of the table in `docs/targets.md` use, written out here.
#[test]
fn session_headers_have_the_names_that_routers_read() {
    let folder = tempfile::tempdir().expect("a folder");
    for (set, names) in [
        ("dynamo", &["x-dynamo-session-id"][..]),
        ("llm-d", &["x-session-id"]),
        ("smg", &["x-smg-routing-key"]),
        ("claude-code", &["x-claude-code-session-id"]),
        ("opencode", &["x-session-affinity", "x-session-id"]),
        ("codex", &["session-id", "thread-id"]),
    ] {
        let server = RecordingServer::repeating(CHAT);
        let client = format!(r#"api_base = "{}", session_headers = "{set}""#, server.api_base);
        let (_, run_id) = run(folder.path(), &labelled(&client));
        for head in server.heads() {
            let id = head["x-request-id"].strip_prefix(&format!("{run_id}/"));
            let session = id.and_then(|id| id.split_once('/')).expect("run/session/node").0;
            let of_session = format!("{run_id}-{session}");
            let sent: Vec<&str> = head
                .iter()
                .filter(|(_, value)| **value == of_session)
                .map(|(name, _)| &**name)
                .collect();
            assert_eq!(sent, names, "{set}");
        }
    }
}

/// A trace of the workload is recorded; what servers would not understand is not sent.
#[test]
fn traces_of_the_workload_are_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = RecordingServer::repeating(CHAT);
    let client = format!(r#"api_base = "{}", traceparent = true"#, server.api_base);
    let with = |header: &str| {
        labelled(&client).replace(
            r#"user = "hello","#,
            &format!(r#"user = "hello", headers = {{ {header} }},"#),
        )
    };
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let own = format!(r#"traceparent = "00-{trace}-00f067aa0ba902b7-01""#);
    let (rows, _) = run(folder.path(), &with(&own));
    for session in 0..3 {
        assert_eq!(rows[&format!("{session}/1")]["trace_id"], trace);
        assert_ne!(rows[&format!("{session}/2")]["trace_id"], trace);
    }
    let sent = server.heads().len();
    for (header, expected) in [
        (
            r#"traceparent = "zz""#,
            "the header `traceparent` is not one of W3C Trace Context",
        ),
        (
            r#"["x-run"] = "{{run.id}}""#,
            "the value of the header `x-run` contains `{{`",
        ),
    ] {
        let file = scenario(folder.path(), "s.lua", &with(header));
        let output = veeksha([
            "run",
            &file,
            "--output_dir",
            folder.path().to_str().expect("UTF-8"),
        ]);
        assert_code(&output, 4);
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    assert_eq!(server.heads().len(), sent);
}
