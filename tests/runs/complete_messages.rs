//! Calls, reasoning, definitions of functions, the form of the answer and token ids, as servers
//! receive them.

use std::path::Path;

use serde_json::{Value, json};

use crate::recording_server::RecordingServer;
use crate::results::{latest, lines};
use crate::server::Sim;
use crate::support::{assert_code, scenario, stderr, veeksha};

/// Three turns: the first answer calls a function, the second continues after its result, the third
/// asks for another form.
const TURNS: &str = r#"
  { user = "one", tools = { { name = "look", parameters = { type = "object" } } }, tool_choice = "required", output = 5 },
  { messages = { { role = "tool", tool_call_id = "call-1", content = "found" } }, history = 1, keep_reasoning = true, output = 5 },
  { user = "two", history = 2, response_schema = { type = "object" }, output = 5 },
"#;

fn planned(client: &str, requests: &str) -> String {
    format!(
        r#"
return {{
  session_generator = {{ type = "lua", sessions = function(index)
    return {{ requests = {{ {requests} }} }}
  end }},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 1, rampup_seconds = 0 }},
  client = {{ model = "m", {client} }},
  runtime = {{ max_sessions = 1, benchmark_timeout = 60 }},
}}
"#
    )
}

fn stream(events: &[Value]) -> String {
    let named = |event: &Value| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    events.iter().map(named).collect()
}

/// Reasoning "hm"; then a call in the first answer, "yes" in others.
fn chat(number: usize) -> String {
    let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
    let call = json!([{"index": 0, "id": "call-1", "function": {"name": "look", "arguments": "{\"q\":1}"}}]);
    let said = match number {
        1 => json!({"tool_calls": call}),
        _ => json!({"content": "yes"}),
    };
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    stream(&[delta(json!({"reasoning": "hm"})), delta(said), end]) + "data: [DONE]\n\n"
}

fn anthropic(number: usize) -> String {
    let delta =
        |index: u32, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let tool = json!({"type": "tool_use", "id": "call-1", "name": "look", "input": {}});
    let said = match number {
        1 => vec![
            json!({"type": "content_block_start", "index": 1, "content_block": tool}),
            delta(
                1,
                json!({"type": "input_json_delta", "partial_json": "{\"q\":1}"}),
            ),
        ],
        _ => vec![delta(1, json!({"type": "text_delta", "text": "yes"}))],
    };
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "m"}}),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "sig"})),
    ];
    events.extend(said);
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}));
    events.push(json!({"type": "message_stop"}));
    stream(&events)
}

fn responses(number: usize) -> String {
    let reasoning = json!({"type": "reasoning", "summary": [], "encrypted_content": "sig"});
    let call =
        json!({"type": "function_call", "call_id": "call-1", "name": "look", "arguments": "{\"q\":1}"});
    let said = match number {
        1 => json!({"type": "response.output_item.added", "output_index": 1, "item": call}),
        _ => json!({"type": "response.output_text.delta", "output_index": 1, "delta": "yes"}),
    };
    stream(&[
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning}),
        said,
        json!({"type": "response.completed", "response": {"status": "completed"}}),
    ])
}

fn run(folder: &Path, text: &str) {
    let file = scenario(folder, "s.lua", text);
    let output_dir = folder.to_str().expect("UTF-8");
    assert_code(&veeksha(["run", &file, "--output_dir", output_dir]), 0);
}

/// Runs the three turns, and returns the bodies that the server received.
fn bodies(client: &str, answer: fn(usize) -> String) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let server = RecordingServer::start(answer);
    let client = format!(r#"{client} api_base = "{}""#, server.api_base);
    run(folder.path(), &planned(&client, TURNS));
    let bodies = server.bodies();
    assert_eq!(bodies.len(), 3, "{bodies:?}");
    bodies
}

#[test]
fn chat_completions_receive_complete_messages() {
    let function = json!({"name": "look", "parameters": {"type": "object"}});
    let call =
        json!([{"id": "call-1", "type": "function", "function": {"name": "look", "arguments": "{\"q\":1}"}}]);
    for (client, name) in [
        ("", "reasoning_content"),
        (r#"reasoning_param = "reasoning","#, "reasoning"),
    ] {
        let bodies = bodies(client, chat);
        for body in &bodies {
            assert_eq!(
                body["tools"],
                json!([{"type": "function", "function": function}]),
                "{body}"
            );
        }
        assert_eq!(bodies[0]["tool_choice"], "required");
        assert_eq!(bodies[1].get("tool_choice"), None);
        let user = |text: &str| json!({"role": "user", "content": text});
        let result = json!({"role": "tool", "tool_call_id": "call-1", "content": "found"});
        assert_eq!(
            bodies[1]["messages"],
            json!([
                user("one"),
                {"role": "assistant", name: "hm", "content": null, "tool_calls": call},
                result,
            ])
        );
        // The third turn does not keep the reasoning.
        assert_eq!(
            bodies[2]["messages"],
            json!([
                user("one"),
                {"role": "assistant", "content": null, "tool_calls": call},
                result,
                {"role": "assistant", "content": "yes"},
                user("two"),
            ])
        );
        let schema = json!({"name": "answer", "schema": {"type": "object"}});
        assert_eq!(
            bodies[2]["response_format"],
            json!({"type": "json_schema", "json_schema": schema})
        );
    }
}

#[test]
fn anthropic_receives_complete_messages() {
    let bodies = bodies(r#"type = "anthropic_messages","#, anthropic);
    for body in &bodies {
        assert_eq!(
            body["tools"],
            json!([{"name": "look", "input_schema": {"type": "object"}}]),
            "{body}"
        );
    }
    assert_eq!(bodies[0]["tool_choice"], json!({"type": "any"}));
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "sig"});
    let call = json!({"type": "tool_use", "id": "call-1", "name": "look", "input": {"q": 1}});
    let result = json!({"type": "tool_result", "tool_use_id": "call-1", "content": "found"});
    assert_eq!(
        bodies[1]["messages"],
        json!([
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": [thinking, call]},
            {"role": "user", "content": [result]},
        ])
    );
    assert_eq!(
        bodies[2]["messages"],
        json!([
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": "yes"},
            {"role": "user", "content": "two"},
        ])
    );
    let schema = json!({"type": "json_schema", "schema": {"type": "object"}});
    assert_eq!(bodies[2]["output_config"], json!({"format": schema}));
}

#[test]
fn responses_receive_complete_messages() {
    let bodies = bodies(r#"type = "openai_responses","#, responses);
    let function = json!({"type": "function", "name": "look", "parameters": {"type": "object"}});
    for body in &bodies {
        assert_eq!(body["tools"], json!([function]), "{body}");
    }
    assert_eq!(bodies[0]["tool_choice"], "required");
    let message = |role: &str, text: &str| json!({"type": "message", "role": role, "content": text});
    let summary = json!([{"type": "summary_text", "text": "hm"}]);
    let reasoning = json!({"type": "reasoning", "encrypted_content": "sig", "summary": summary});
    let call =
        json!({"type": "function_call", "call_id": "call-1", "name": "look", "arguments": "{\"q\":1}"});
    let result = json!({"type": "function_call_output", "call_id": "call-1", "output": "found"});
    assert_eq!(
        bodies[1]["input"],
        json!([message("user", "one"), reasoning, call, result])
    );
    assert_eq!(
        bodies[2]["input"],
        json!([
            message("user", "one"),
            call,
            result,
            message("assistant", "yes"),
            message("user", "two")
        ])
    );
    let format = json!({"type": "json_schema", "name": "answer", "schema": {"type": "object"}});
    assert_eq!(bodies[2]["text"], json!({"format": format}));
}

/// A template does not read the calls of an answer, so their results are refused after a live one.
#[test]
fn template_receives_complete_messages() {
    let client = r#"type = "template", address_append_value = "chat", template = {
      request = { chat = "{{messages}}", functions = "{{tools}}", choice = "{{tool_choice}}", form = "{{schema}}" },
      answer = { text = "/choices/0/delta/content", reasoning = "/choices/0/delta/reasoning", done = "[DONE]" },
    },"#;
    let folder = tempfile::tempdir().expect("a folder");
    let server = RecordingServer::start(|_| chat(2));
    let client = format!(r#"{client} api_base = "{}""#, server.api_base);
    let refused = scenario(folder.path(), "refused.lua", &planned(&client, TURNS));
    let output = veeksha(["check", &refused]);
    assert_code(&output, 4);
    let expected = "node 2: the endpoint `chat` cannot send the result of a tool call after a live answer of an endpoint whose \
                    calls are not read; state the call in the messages of the request";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));

    let stated = r#"
      { user = "one", tools = { { name = "look" } }, tool_choice = "required", output = 5 },
      { messages = {
          { role = "assistant", tool_calls = { { id = "x", name = "look", arguments = {} } } },
          { role = "tool", tool_call_id = "x", content = "found" },
        }, history = 1, keep_reasoning = true, response_schema = { type = "object" }, output = 5 },
    "#;
    run(folder.path(), &planned(&client, stated));
    let bodies = server.bodies();
    assert_eq!(bodies[0]["functions"][0]["function"]["name"], "look");
    assert_eq!(bodies[0]["choice"], "required");
    let call = json!([{"id": "x", "type": "function", "function": {"name": "look", "arguments": "{}"}}]);
    assert_eq!(
        bodies[1]["chat"],
        json!([
            {"role": "user", "content": "one"},
            {"role": "assistant", "reasoning_content": "hm", "content": "yes"},
            {"role": "assistant", "content": null, "tool_calls": call},
            {"role": "tool", "tool_call_id": "x", "content": "found"},
        ])
    );
    assert_eq!(bodies[1]["form"], json!({"type": "object"}));
}

/// Messages of the workload and recorded answers, without any answer of the server.
#[test]
fn recorded_conversation_is_sent_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = RecordingServer::start(chat);
    let client = format!(r#"api_base = "{}""#, server.api_base);
    let requests = r#"
      { messages = {
          { role = "user", content = "a" },
          { role = "assistant", reasoning = "b", tool_calls = { { id = "x", name = "f", arguments = {} } } },
          { role = "tool", tool_call_id = "x", content = "c" },
        }, history_mode = "recorded", answer = { content = "d", reasoning = "e", tool_calls = { { id = "y", name = "g" } } } },
      { messages = { { role = "tool", tool_call_id = "y", content = "f" } }, history = 1, history_mode = "recorded",
        keep_reasoning = true },
    "#;
    run(folder.path(), &planned(&client, requests));
    let call = |id: &str, name: &str| json!([{"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}]);
    assert_eq!(
        server.bodies()[1]["messages"],
        json!([
            {"role": "user", "content": "a"},
            {"role": "assistant", "reasoning_content": "b", "content": null, "tool_calls": call("x", "f")},
            {"role": "tool", "tool_call_id": "x", "content": "c"},
            {"role": "assistant", "reasoning_content": "e", "content": "d", "tool_calls": call("y", "g")},
            {"role": "tool", "tool_call_id": "y", "content": "f"},
        ])
    );
}

/// One clear error, before anything is sent.
#[test]
fn what_the_endpoint_cannot_send_ends_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = RecordingServer::start(chat);
    for (kind, request, expected) in [
        (
            "openai_completions",
            r#"{ user = "x", tools = { { name = "f" } } }"#,
            "node 1: the endpoint `completions` cannot send tool definitions; use `openai_chat_completions`",
        ),
        (
            "openai_chat_completions",
            r#"{ user = token_ids({ 1, 2 }) }"#,
            "node 1: the endpoint `chat/completions` cannot send a prompt of token ids; use `openai_completions`",
        ),
        (
            "openai_chat_completions",
            r#"{ user = "x", tools = { { title = "f" } } }"#,
            "node 1: definition 1 of `tools` must be an object with `name`",
        ),
    ] {
        let client = format!(r#"type = "{kind}", api_base = "{}""#, server.api_base);
        let file = scenario(folder.path(), "s.lua", &planned(&client, request));
        let output_dir = folder.path().to_str().expect("UTF-8");
        for command in ["run", "simulate", "check"] {
            let mut arguments = vec![command, &file];
            if command != "check" {
                arguments.extend(["--output_dir", output_dir]);
            }
            let output = veeksha(arguments);
            assert!(
                stderr(&output).contains(expected),
                "{command} {}",
                stderr(&output)
            );
            assert_ne!(output.status.code(), Some(0));
        }
    }
    assert_eq!(server.bodies().len(), 0);
}

/// The host's and the server's count of each prompt, in ascending order.
fn counted(folder: &Path, command: &str, client: &str, requests: &str) -> Vec<[u64; 2]> {
    let file = scenario(folder, "s.lua", &planned(client, requests));
    let output_dir = folder.to_str().expect("UTF-8");
    assert_code(&veeksha([command, &file, "--output_dir", output_dir]), 0);
    let rows = lines(&latest(folder), "metrics/request_level_metrics.jsonl").into_iter();
    let number = |value: &Value| value.as_u64().expect("a number");
    let counts = rows.map(|row| [&row["num_total_prompt_tokens"], &row["usage_prompt_tokens"]].map(number));
    let mut counts: Vec<[u64; 2]> = counts.collect();
    // The requests of several sessions may end in any order.
    counts.sort_unstable();
    counts
}

#[test]
fn token_ids_are_counted_exactly() {
    let folder = tempfile::tempdir().expect("a folder");
    let sim = Sim::start(&["--profile", "fast"]);
    let client = format!(r#"type = "openai_completions", api_base = "{}""#, sim.api_base);
    let ids =
        r#"{ user = token_ids({ 5, 6, 7, 8, 9 }), output = 3 }, { user = token_ids({ 5 }), output = 3 }"#;
    for command in ["run", "simulate"] {
        let counts = counted(folder.path(), command, &client, ids);
        assert_eq!(counts, [[1, 1], [5, 5]], "{command}");
    }
}

/// The definitions are part of every prompt of the conversation, here and at the server.
#[test]
fn tokens_of_definitions_are_part_of_the_prompt() {
    let folder = tempfile::tempdir().expect("a folder");
    let requests = |tools: &str| {
        format!(r#"{{ user = "x", output = 3 {tools} }}, {{ user = "y", history = 1, output = 3 }}"#)
    };
    let client = r#"api_base = "sim://fast", ignore_eos = true"#;
    for command in ["run", "simulate"] {
        let of = |tools: &str| counted(folder.path(), command, client, &requests(tools));
        let (with, without) = (of(", tools = synthetic_tools(4, 500)"), of(""));
        for (with, without) in with.iter().zip(&without) {
            assert_eq!(with[0], without[0] + 500, "{command} {with:?} {without:?}");
            // The server writes them in its own way.
            assert!(with[1] >= without[1] + 500, "{command} {with:?} {without:?}");
        }
    }
}

/// A required call is answered with one, by the server and in virtual time.
#[test]
fn simulator_calls_the_required_tool() {
    let folder = tempfile::tempdir().expect("a folder");
    let agent = r#"
return {
  session_generator = { type = "lua", agent = function(session)
    local asked = session:request({ user = "x", tools = { { name = "f" }, { name = "g" } }, tool_choice = "required", output = 20 })
    assert(asked.tool_calls[1].name == "f", "f")
    local named = session:request({ messages = { { role = "tool", tool_call_id = asked.tool_calls[1].id, content = "r" } },
      history = asked, tool_choice = { name = "g" }, output = 20 })
    assert(named.tool_calls[1].name == "g", "g")
    local free = session:request({ messages = { { role = "tool", tool_call_id = named.tool_calls[1].id, content = "r" } },
      history = named, tool_choice = "auto", output = 20 })
    assert(#free.tool_calls == 0 and free.text ~= "", "text")
  end },
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 1, rampup_seconds = 0 },
  client = { type = "TYPE", api_base = "sim://fast" },
  runtime = { max_sessions = 2, benchmark_timeout = 60 },
}
"#;
    for kind in [
        "openai_chat_completions",
        "openai_responses",
        "anthropic_messages",
    ] {
        let file = scenario(folder.path(), "agent.lua", &agent.replace("TYPE", kind));
        let output_dir = folder.path().to_str().expect("UTF-8");
        for command in ["run", "simulate"] {
            assert_code(&veeksha([command, &file, "--output_dir", output_dir]), 0);
            let rows = lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl");
            assert_eq!(rows.len(), 6, "{kind} {command}: {rows:?}");
        }
    }
}

/// The agent sends what it received.
#[test]
fn log_probabilities_of_an_answer_reach_its_agent() {
    let agent = r#"
return {
  session_generator = { type = "lua", agent = function(session)
    local r = session:request({ user = "The cat", log_probabilities = 1, output = 2 FORM })
    session:request({ user = table.concat({
      r.text, table.concat(r.log_probabilities, " "), tostring(r.greedy[1]), tostring(r.greedy[2]),
      table.concat(r.prompt_log_probabilities or {}, " "), r.output_tokens,
    }, "|"), output = 1 })
  end },
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 1, rampup_seconds = 0 },
  client = { type = "TYPE", api_base = "BASE", model = "m" },
  runtime = { max_sessions = 1, benchmark_timeout = 60 },
}
"#;
    let token = |logarithm: f64| json!({"token": "t", "logprob": logarithm, "top_logprobs": [{"token": "u", "logprob": -1}]});
    let chat = {
        let delta = |text: &str, logarithm: f64| json!({"choices": [{"index": 0, "delta": {"content": text}, "logprobs": {"content": [token(logarithm)]}}]});
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 2, "completion_tokens": 2}});
        stream(&[delta("a", -0.5), delta("b", -1.5), end])
    };
    let responses = {
        let delta = |text: &str, logarithm: f64| json!({"type": "response.output_text.delta", "output_index": 0, "delta": text, "logprobs": [token(logarithm)]});
        let usage = json!({"input_tokens": 2, "output_tokens": 2});
        let end = json!({"type": "response.completed", "response": {"status": "completed", "usage": usage}});
        stream(&[delta("a", -0.5), delta("b", -1.5), end])
    };
    // The prompt is repeated, and its first token has no value.
    let completions = stream(&[
        json!({"choices": [{"index": 0, "text": "The cata", "logprobs": {
            "tokens": ["The", " cat", "a"], "token_logprobs": [null, -3.5, -0.5],
            "top_logprobs": [null, {"u": -1}, {"u": -1}],
        }}]}),
        json!({"choices": [{"index": 0, "text": "b", "finish_reason": "length", "logprobs": {
            "tokens": ["b"], "token_logprobs": [-1.5], "top_logprobs": [{"u": -1}],
        }}], "usage": {"prompt_tokens": 2, "completion_tokens": 2}}),
    ]);
    for (kind, form, answer, prompt) in [
        ("openai_chat_completions", "", chat, ""),
        ("openai_responses", "", responses, ""),
        (
            "openai_completions",
            ", prompt_log_probabilities = true",
            completions,
            "-3.5",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let server = RecordingServer::start(move |_| answer.clone());
        let text = agent.replace("TYPE", kind).replace("FORM", form);
        run(folder.path(), &text.replace("BASE", &server.api_base));
        let second = server.bodies()[1].to_string();
        let expected = format!("ab|-0.5 -1.5|true|false|{prompt}|2");
        assert!(second.contains(&expected), "{kind}: {second}");
        let rows = lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl");
        assert!(rows.iter().all(|row| row["success"] == true), "{rows:?}");
    }
}
