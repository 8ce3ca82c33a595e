//! The server over real sockets: every endpoint, every fault, and the truth log against the
//! received bytes.
#![expect(
    clippy::unwrap_used,
    reason = "the functions that the tests share are tests too"
)]

#[path = "common/client.rs"]
mod client;
#[path = "common/server.rs"]
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use client::{Connection, Ended, RouteReply};
use serde_json::Value;
use server::{ANY, Sim, profile};
use veeksha_clock::{RunClock, sleep_until};
use veeksha_model::ChunkKind;
use veeksha_simulator::{Faults, FinishReason, Profile, SimError, SimOptions, SimServer, TruthOutcome};

fn chat(output: u32) -> String {
    format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":"hello"}}],"max_tokens":{output},"ignore_eos":true,
            "stream":true,"stream_options":{{"include_usage":true}}}}"#
    )
}

const CHAT: &str = "/v1/chat/completions";
const TEXT: &str = "/v1/completions";

fn data(reply: &RouteReply) -> Vec<Value> {
    let events = reply.events();
    events
        .iter()
        .filter(|(_, data)| data != "[DONE]")
        .map(|(_, data)| serde_json::from_str(data).unwrap())
        .collect()
}

#[test]
fn a_chat_stream_has_the_shape_of_vllm() {
    let sim = Sim::start(profile());
    let reply = sim.connect().post(CHAT, "x-request-id: 17/2\r\n", &chat(3));
    assert_eq!((reply.status, reply.ended), (200, Ended::Whole));
    assert_eq!(
        reply.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    assert_eq!(reply.header("x-request-id"), Some("17/2"));
    let events = reply.events();
    assert_eq!(events.last().unwrap().1, "[DONE]");
    let events = data(&reply);
    assert_eq!(events.len(), 6);
    for event in &events {
        assert_eq!(event["object"], "chat.completion.chunk");
        assert_eq!(event["model"], "m");
        assert_eq!(event["id"], events[0]["id"]);
    }
    assert_eq!(
        events[0]["choices"][0]["delta"],
        serde_json::json!({"role": "assistant", "content": ""})
    );
    for event in &events[1..4] {
        assert!(
            !event["choices"][0]["delta"]["content"]
                .as_str()
                .unwrap()
                .trim()
                .is_empty()
        );
        assert_eq!(event["choices"][0]["finish_reason"], Value::Null);
    }
    assert_eq!(events[4]["choices"][0]["delta"], serde_json::json!({}));
    assert_eq!(events[4]["choices"][0]["finish_reason"], "length");
    assert_eq!(events[5]["choices"], serde_json::json!([]));
    // "<|user|>\nhello\n<|assistant|>\n": 9 + 6 + 14 bytes, each a token here.
    let usage = &events[5]["usage"];
    assert_eq!(
        (&usage["prompt_tokens"], &usage["completion_tokens"]),
        (&Value::from(29), &Value::from(3))
    );
    assert_eq!(
        (
            &usage["total_tokens"],
            &usage["prompt_tokens_details"]["cached_tokens"]
        ),
        (&Value::from(32), &Value::from(0))
    );

    let truth = sim.truth(0);
    assert_eq!(truth.request_id.as_deref(), Some("17/2"));
    assert_eq!(truth.outcome, TruthOutcome::Finished(FinishReason::Length));
    use ChunkKind::{Content, Done, Finish, Role, Usage};
    let kinds: Vec<ChunkKind> = truth.chunks.iter().map(|(_, kind)| *kind).collect();
    assert_eq!(kinds, [Role, Content, Content, Content, Finish, Usage, Done]);
    let usage = truth.usage.unwrap();
    assert_eq!((usage.prompt, usage.completion, usage.cached), (29, 3, Some(0)));
    sim.server.stop();
}

#[test]
fn truth_is_monotone_and_never_later_than_arrival() {
    let sim = Sim::start(profile());
    let mut connection = sim.connect();
    for ordinal in 0..5 {
        let sent = sim.clock.now();
        let reply = connection.post(CHAT, "", &chat(20));
        let truth = sim.truth(ordinal);
        assert!(sent <= truth.arrived_at);
        assert!(truth.arrived_at <= truth.headers_sent_at.unwrap());
        let times: Vec<u64> = truth.chunks.iter().map(|(at, _)| *at).collect();
        assert!(truth.headers_sent_at.unwrap() <= times[0]);
        assert!(times.is_sorted());
        assert!(*times.last().unwrap() <= truth.finished_at.unwrap());
        let received: Vec<u64> = reply.events().iter().map(|(at, _)| *at).collect();
        assert_eq!(received.len(), times.len());
        for (sent, received) in times.iter().zip(&received) {
            assert!(sent <= received, "sent at {sent}, received at {received}");
        }
        // The engine's times are lower bounds: 10 ms to the first token, 4 ms to each further one.
        assert!(times[1] >= truth.arrived_at + 10_000_000);
        assert!(times[20] >= truth.arrived_at + 10_000_000 + 19 * 4_000_000);
        assert_eq!(truth.connection, 0, "the connection is kept alive");
    }
    let stats = sim.server.stats();
    assert_eq!((stats.connections_total, stats.connections_open), (1, 1));
    sim.server.stop();
}

/// The requirements of a self-test: known times, for any request and any number of clients.
#[test]
fn reference_server_keeps_its_times_and_records_each_request() {
    let clock = RunClock::starting_now();
    let (sender, over) = std::sync::mpsc::channel();
    let options = SimOptions {
        truth_over: Some(sender),
        truth_capacity: 0,
        ..SimOptions::reference(30_000_000, 5_000_000, 16)
    };
    let server = SimServer::start(ANY, options, clock).unwrap();
    let addr = server.addr();
    let clients: Vec<_> = (0..16)
        .map(|client| {
            std::thread::spawn(move || {
                let headers = format!("x-request-id: {client}\r\n");
                // The request does not set `ignore_eos`.
                let body = chat(10 + client).replace("\"ignore_eos\":true,", "");
                Connection::open(addr, clock).post(CHAT, &headers, &body)
            })
        })
        .collect();
    let replies: Vec<RouteReply> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    server.stop();
    let records: Vec<_> = over.try_iter().collect();
    assert_eq!(records.len(), 16);
    for record in records {
        let client: u32 = record.request_id.as_ref().unwrap().parse().unwrap();
        assert_eq!(record.outcome, TruthOutcome::Finished(FinishReason::Length));
        let tokens: Vec<u64> = record
            .chunks
            .iter()
            .filter(|(_, kind)| kind.is_generated())
            .map(|(at, _)| *at)
            .collect();
        assert_eq!(tokens.len(), 10 + client as usize);
        for (k, at) in tokens.iter().enumerate() {
            let due = record.arrived_at + 30_000_000 + k as u64 * 5_000_000;
            assert!(*at >= due, "token {k} came before its time");
            // The machine may do other work; on an idle one this is some ten microseconds.
            assert!(*at < due + 2_000_000_000, "token {k} came {} ns late", at - due);
        }
        assert_eq!(replies[client as usize].events().len(), record.chunks.len());
    }
}

#[test]
fn head_does_not_wait_for_the_first_token() {
    let sim = Sim::start(Profile {
        prefill_base_ms: 2000.0,
        ..profile()
    });
    let reply = sim.connect().post(CHAT, "", &chat(1));
    let (head, _) = reply.reads[0];
    let truth = sim.truth(0);
    assert!(truth.headers_sent_at.unwrap() <= head);
    assert!(
        head < truth.arrived_at + 2_000_000_000,
        "the first token comes after 2 s"
    );
    assert!(truth.chunks[0].0 >= truth.arrived_at + 2_000_000_000);
    sim.server.stop();
}

/// Each token has a separate write, even if the server is late: there are as many chunks as tokens.
#[test]
fn each_token_is_one_http_chunk() {
    let sim = Sim::start(Profile {
        decode_base_ms: 0.0,
        ..profile()
    });
    let mut connection = sim.connect();
    connection.send("POST", CHAT, "", &chat(50));
    let mut raw = Vec::new();
    while !raw.ends_with(b"0\r\n\r\n") {
        let mut buffer = [0; 4096];
        let count = std::io::Read::read(&mut connection.stream, &mut buffer).unwrap();
        assert!(count > 0);
        raw.extend_from_slice(&buffer[..count]);
    }
    let raw = String::from_utf8(raw).unwrap();
    // A chunk begins where a line with its size is followed by an event.
    assert_eq!(raw.matches("\r\ndata: ").count(), 50);
    sim.server.stop();
}

#[test]
fn completions_stream_text_without_a_role() {
    let sim = Sim::start(profile());
    let body = r#"{"prompt":"one two","max_tokens":2,"ignore_eos":true,"stream":true}"#;
    let reply = sim.connect().post(TEXT, "", body);
    let events = data(&reply);
    assert_eq!(events.len(), 3, "no role, no usage");
    for event in &events[..2] {
        assert_eq!(event["object"], "text_completion");
        assert!(!event["choices"][0]["text"].as_str().unwrap().is_empty());
        assert_eq!(event["model"], "m", "without a model the server's own");
    }
    assert_eq!(events[2]["choices"][0]["text"], "");
    assert_eq!(events[2]["choices"][0]["finish_reason"], "length");
    sim.server.stop();
}

#[test]
fn whole_answers_have_the_same_counts() {
    let sim = Sim::start(profile());
    let mut connection = sim.connect();
    let chat = chat(5).replace("\"stream\":true", "\"stream\":false");
    let reply = connection.post(CHAT, "", &chat);
    let json = reply.json();
    assert_eq!(
        (reply.status, &json["object"]),
        (200, &Value::from("chat.completion"))
    );
    assert_eq!(json["choices"][0]["message"]["role"], "assistant");
    let text = json["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(text.split(' ').count(), 5);
    assert_eq!(json["choices"][0]["finish_reason"], "length");
    assert_eq!(
        (
            &json["usage"]["prompt_tokens"],
            &json["usage"]["completion_tokens"]
        ),
        (&29.into(), &5.into())
    );
    assert!(reply.reads[0].0 >= sim.truth(0).arrived_at + 26_000_000);

    let reply = connection.post(TEXT, "", r#"{"prompt":[1,2,3],"max_tokens":2,"ignore_eos":true}"#);
    let json = reply.json();
    assert_eq!(json["object"], "text_completion");
    assert_eq!(json["choices"][0]["text"].as_str().unwrap().split(' ').count(), 2);
    assert_eq!(json["usage"]["prompt_tokens"], 3);
    sim.server.stop();
}

#[test]
fn a_repeated_prompt_is_cached_up_to_its_last_block() {
    let sim = Sim::start(profile());
    let mut connection = sim.connect();
    for cached in [0, 28] {
        // 29 tokens in blocks of 4: seven full blocks.
        let reply = connection.post(CHAT, "", &chat(1));
        let events = data(&reply);
        assert_eq!(
            events.last().unwrap()["usage"]["prompt_tokens_details"]["cached_tokens"],
            cached
        );
    }
    sim.server.stop();
}

#[test]
fn models_health_and_metrics() {
    let sim = Sim::start(profile());
    let mut connection = sim.connect();
    assert_eq!(connection.get("/health").status, 200);
    let models = connection.get("/v1/models").json();
    assert_eq!(
        (&models["object"], &models["data"][0]["id"]),
        (&"list".into(), &"m".into())
    );
    assert_eq!(models["data"][0]["max_model_len"], 32_768);
    for _ in 0..2 {
        connection.post(CHAT, "", &chat(3));
    }
    let reply = connection.get("/metrics");
    assert_eq!(
        reply.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    let value = |name: &str| -> f64 {
        let line = reply
            .body
            .lines()
            .find_map(|line| line.strip_prefix(&format!("veeksha_sim:{name} ")));
        line.unwrap_or_else(|| panic!("{name} is missing"))
            .parse()
            .unwrap()
    };
    assert_eq!(value("requests_total"), 2.0);
    assert_eq!(value("prompt_tokens_total"), 58.0);
    assert_eq!(value("generation_tokens_total"), 6.0);
    assert_eq!(value("prefix_cache_queries_total"), 58.0);
    assert_eq!(value("prefix_cache_hits_total"), 28.0);
    assert_eq!(value("num_requests_running"), 0.0);
    assert_eq!(value("num_requests_waiting"), 0.0);
    assert_eq!(value("kv_cache_usage_perc"), 0.0);
    assert_eq!(value("request_success_total{finished_reason=\"length\"}"), 2.0);
    assert_eq!(value("time_to_first_token_seconds_count"), 2.0);
    assert_eq!(
        value("time_to_first_token_seconds_bucket{le=\"0.005\"}"),
        0.0,
        "a prompt takes 10 ms"
    );
    assert!(value("time_to_first_token_seconds_sum") >= 0.020);
    assert_eq!(value("e2e_request_latency_seconds_count"), 2.0);
    assert_eq!(
        value("token_lateness_seconds_count"),
        6.0,
        "every token was written at once"
    );
    let lateness = |quantile: &str| value(&format!("token_lateness_seconds{{quantile=\"{quantile}\"}}"));
    assert!(lateness("0.5") > 0.0 && lateness("0.5") <= lateness("1"));
    sim.server.stop();
}

#[test]
fn invalid_requests_get_an_error_and_keep_the_connection() {
    let sim = Sim::start(profile());
    let mut connection = sim.connect();
    let cases = [
        (CHAT, "{", 400, "the body is not valid"),
        (CHAT, "{}", 400, "messages is missing"),
        (TEXT, "{}", 400, "prompt is missing"),
        (TEXT, r#"{"prompt":""}"#, 400, "the prompt is empty"),
        (
            TEXT,
            r#"{"prompt":"x","max_tokens":0}"#,
            400,
            "max_tokens must be at least 1",
        ),
        (
            TEXT,
            r#"{"prompt":"x","max_tokens":32768}"#,
            400,
            "maximum context length is 32768",
        ),
        ("/v2/chat", "{}", 404, "there is nothing at /v2/chat"),
        ("/v1/models", "", 405, "/v1/models takes GET only"),
    ];
    for (path, body, status, expected) in cases {
        let reply = connection.post(path, "", body);
        let error = &reply.json()["error"];
        assert_eq!(
            (reply.status, error["code"].as_u64()),
            (status, Some(u64::from(status)))
        );
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
    }
    assert_eq!(
        sim.server.truth().len(),
        6,
        "only completion requests are recorded"
    );
    assert_eq!(sim.truth(0).outcome, TruthOutcome::Status(400));
    // Another model's name is accepted and echoed, unless the profile is strict.
    let reply = connection.post(TEXT, "", r#"{"model":"x\"y","prompt":"x","max_tokens":1}"#);
    assert_eq!((reply.status, &reply.json()["model"]), (200, &"x\"y".into()));
    let strict = Sim::with(Faults {
        strict_model: true,
        ..Faults::default()
    });
    let reply = strict
        .connect()
        .post(TEXT, "", r#"{"model":"x","prompt":"x","max_tokens":1}"#);
    assert_eq!(reply.status, 404);
    assert_eq!(
        strict
            .connect()
            .post(TEXT, "", r#"{"model":"m","prompt":"x","max_tokens":1}"#)
            .status,
        200
    );
    strict.server.stop();
    sim.server.stop();
}

#[test]
fn requires_the_api_key() {
    let sim = Sim::with(Faults {
        api_key: Some("secret".into()),
        ..Faults::default()
    });
    let mut connection = sim.connect();
    for headers in ["", "authorization: Bearer wrong\r\n", "authorization: secret\r\n"] {
        let reply = connection.post(CHAT, headers, &chat(1));
        assert_eq!(
            (reply.status, reply.header("www-authenticate")),
            (401, Some("Bearer"))
        );
        assert_eq!(reply.json()["error"]["type"], "AuthenticationError");
    }
    assert_eq!(connection.get("/v1/models").status, 401);
    assert_eq!(connection.get("/health").status, 200);
    assert_eq!(connection.get("/metrics").status, 200);
    assert_eq!(
        connection
            .post(CHAT, "authorization: Bearer secret\r\n", &chat(1))
            .status,
        200
    );
    sim.server.stop();
}

#[test]
fn error_statuses_have_retry_after() {
    for (status, retry) in [(429, Some("1")), (500, None), (503, Some("1"))] {
        let mut faults = Faults::default();
        match status {
            429 => faults.status_429_probability = 1.0,
            500 => faults.status_500_probability = 1.0,
            _ => faults.status_503_probability = 1.0,
        }
        let sim = Sim::with(faults);
        let reply = sim.connect().post(CHAT, "", &chat(1));
        assert_eq!((reply.status, reply.header("retry-after")), (status, retry));
        assert_eq!(reply.json()["error"]["code"], status);
        assert_eq!(sim.truth(0).outcome, TruthOutcome::Status(status));
        sim.server.stop();
    }
}

#[test]
fn refused_connection_gets_no_bytes() {
    let sim = Sim::with(Faults {
        refuse_probability: 1.0,
        ..Faults::default()
    });
    let mut connection = sim.connect();
    connection.send("POST", CHAT, "", &chat(1));
    assert!(connection.reply().is_none());
    assert_eq!(sim.truth(0).outcome, TruthOutcome::Refused);
    assert_eq!(sim.truth(0).headers_sent_at, None);
    sim.server.stop();
}

#[test]
fn a_dropped_connection_ends_inside_an_event() {
    for after in [0, 2] {
        let faults = Faults {
            drop_connection_probability: 1.0,
            after_tokens: Some(after),
            ..Faults::default()
        };
        let sim = Sim::with(faults);
        let reply = sim.connect().post(CHAT, "", &chat(4));
        assert_eq!((reply.status, reply.ended), (200, Ended::Cut));
        let whole = reply.events();
        assert_eq!(
            whole.len(),
            if after == 0 { 0 } else { 3 },
            "the role and two tokens"
        );
        assert!(
            reply.body.rsplit("\n\n").next().unwrap().starts_with("data: {"),
            "a half event"
        );
        assert_eq!(sim.truth(0).outcome, TruthOutcome::Dropped);
        assert_eq!(sim.truth(0).chunks.len(), whole.len());
        // A dropped answer that is not streamed never begins.
        let mut connection = sim.connect();
        connection.send(
            "POST",
            CHAT,
            "",
            &chat(4).replace("\"stream\":true", "\"stream\":false"),
        );
        assert!(connection.reply().is_none());
        sim.server.stop();
    }
}

#[test]
fn an_error_inside_a_stream_comes_with_status_200() {
    let faults = Faults {
        midstream_error_probability: 1.0,
        after_tokens: Some(2),
        ..Faults::default()
    };
    let sim = Sim::with(faults);
    let mut connection = sim.connect();
    let reply = connection.post(CHAT, "", &chat(4));
    assert_eq!((reply.status, reply.ended), (200, Ended::Whole));
    let events = data(&reply);
    assert_eq!(events.len(), 4);
    assert_eq!(events[3]["error"]["code"], 500);
    assert_eq!(reply.events().last().unwrap().1, "[DONE]");
    assert_eq!(sim.truth(0).outcome, TruthOutcome::MidStreamError);
    let reply = connection.post(CHAT, "", &chat(4).replace("\"stream\":true", "\"stream\":false"));
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (500, &500.into()));
    sim.server.stop();
}

#[test]
fn a_truncated_stream_ends_without_a_reason() {
    let sim = Sim::with(Faults {
        truncate_probability: 1.0,
        after_tokens: Some(2),
        ..Faults::default()
    });
    let mut connection = sim.connect();
    let reply = connection.post(CHAT, "", &chat(4));
    assert_eq!((reply.status, reply.ended), (200, Ended::Whole));
    assert_eq!(reply.events().len(), 3, "the role and two tokens; no end marker");
    assert!(
        data(&reply)
            .iter()
            .all(|event| event["choices"][0]["finish_reason"].is_null())
    );
    assert_eq!(sim.truth(0).outcome, TruthOutcome::Truncated);
    let json = connection
        .post(CHAT, "", &chat(4).replace("\"stream\":true", "\"stream\":false"))
        .json();
    assert_eq!(json["choices"][0]["finish_reason"], Value::Null);
    assert_eq!(json["usage"]["completion_tokens"], 2);
    sim.server.stop();
}

#[test]
fn stall_is_visible_on_both_sides() {
    let faults = Faults {
        stall_probability: 1.0,
        stall_ms: 150.0,
        after_tokens: Some(2),
        ..Faults::default()
    };
    let sim = Sim::with(faults);
    let reply = sim.connect().post(CHAT, "", &chat(4));
    let truth = sim.truth(0);
    assert_eq!(truth.outcome, TruthOutcome::Finished(FinishReason::Length));
    // The third token was due after 10 + 4 + 4 ms; the sequence decodes again 150 ms later. Lower
    // bounds hold on a busy machine too.
    let third = truth.arrived_at + (10 + 4 + 4 + 150 + 4) * 1_000_000;
    assert!(truth.chunks[3].0 >= third);
    assert!(reply.events()[3].0 >= third);
    sim.server.stop();
}

#[test]
fn slow_start_delays_the_first_token() {
    let sim = Sim::with(Faults {
        start_delay_ms: 80.0,
        ..Faults::default()
    });
    sim.connect().post(CHAT, "", &chat(1));
    let truth = sim.truth(0);
    assert!(truth.chunks[0].0 >= truth.arrived_at + 90_000_000);
    sim.server.stop();
}

#[test]
fn disconnected_client_frees_the_engine() {
    let sim = Sim::start(Profile {
        max_batch: 1,
        ..profile()
    });
    // One request streams, the next one waits for it and gets a whole answer.
    let mut streaming = sim.connect();
    streaming.send("POST", CHAT, "", &chat(10_000));
    sim.until(|sim| (sim.server.stats().engine.running == 1).then_some(()));
    let mut waiting = sim.connect();
    waiting.send(
        "POST",
        CHAT,
        "",
        &chat(10_000).replace("\"stream\":true", "\"stream\":false"),
    );
    sim.until(|sim| (sim.server.stats().engine.waiting == 1).then_some(()));
    waiting.close();
    sim.until(|sim| (sim.server.stats().engine.waiting == 0).then_some(()));
    streaming.close();
    sim.until(|sim| (sim.server.stats().engine.running == 0).then_some(()));
    let stats = sim.server.stats();
    assert_eq!(
        (stats.engine.cancelled_total, stats.engine.kv_used_tokens),
        (2, 0)
    );
    assert_eq!(sim.truth(0).outcome, TruthOutcome::Disconnected);
    assert_eq!(sim.truth(1).outcome, TruthOutcome::Disconnected);
    assert_eq!(sim.connect().post(CHAT, "", &chat(1)).status, 200);
    sim.server.stop();
}

#[test]
fn many_connections_share_one_batch() {
    let sim = Sim::start(profile());
    let mut connections: Vec<Connection> = (0..200).map(|_| sim.connect()).collect();
    for connection in &mut connections {
        connection.send("POST", CHAT, "", &chat(10));
    }
    for connection in &mut connections {
        let reply = connection.reply().unwrap();
        assert_eq!((reply.events().len(), reply.ended), (14, Ended::Whole));
    }
    let truth = sim.server.truth();
    assert_eq!(truth.len(), 200);
    assert!(
        truth
            .iter()
            .all(|record| record.outcome == TruthOutcome::Finished(FinishReason::Length))
    );
    assert_eq!(sim.server.stats().connections_open, 200);
    let mut seen: Vec<u64> = truth.iter().map(|record| record.connection).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 200);
    sim.server.stop();
}

#[test]
fn stopping_closes_what_is_open_at_once() {
    let sim = Sim::start(Profile {
        prefill_base_ms: 3_600_000.0,
        ..profile()
    });
    let mut connection = sim.connect();
    connection.send("POST", CHAT, "", &chat(1));
    sim.until(|sim| (sim.server.stats().engine.running == 1).then_some(()));
    let before = sim.clock.now();
    sim.server.stop();
    assert!(sim.clock.now() - before < Duration::from_secs(10).as_nanos() as u64);
    assert_eq!(connection.reply().unwrap().ended, Ended::Cut);
}

/// After any input, the next connection is served.
#[test]
fn garbage_does_not_affect_other_connections() {
    let sim = Sim::start(profile());
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(1 << 20));
    let many = format!("GET /health HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(5000));
    let garbage: [&[u8]; 7] = [
        b"\0\xff\xfe\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        long.as_bytes(),
        many.as_bytes(),
    ];
    for bytes in garbage {
        let mut connection = sim.connect();
        // The server may close before everything is written.
        let _ = std::io::Write::write_all(&mut connection.stream, bytes);
        let _ = connection.stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = std::io::Read::read_to_end(&mut connection.stream, &mut answer);
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
        assert_eq!(sim.connect().get("/health").status, 200);
    }
    assert_eq!(sim.server.stats().engine.requests_total, 0);
    sim.server.stop();
}

#[test]
fn refuses_too_long_body_before_reading_it() {
    let sim = Sim::start(profile());
    let mut connection = sim.connect();
    let head = b"POST /v1/completions HTTP/1.1\r\ncontent-length: 67108865\r\n\r\n";
    std::io::Write::write_all(&mut connection.stream, head).unwrap();
    let reply = connection.reply().unwrap();
    assert_eq!(
        (reply.status, sim.truth(0).outcome),
        (413, TruthOutcome::Status(413))
    );
    sim.server.stop();
}

#[test]
fn request_arrives_when_its_body_is_complete() {
    let sim = Sim::start(profile());
    let mut connection = sim.connect();
    let body = r#"{"prompt":"x","max_tokens":1}"#;
    let (first, second) = body.split_at(7);
    let head = "POST /v1/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
    let piece = |part: &str| format!("{:x}\r\n{part}\r\n", part.len());
    let mut write = |text: &str| std::io::Write::write_all(&mut connection.stream, text.as_bytes()).unwrap();
    write(&format!("{head}{}", piece(first)));
    sleep_until(sim.clock, sim.clock.now() + 30_000_000);
    let before = sim.clock.now();
    write(&format!("{}0\r\n\r\n", piece(second)));
    assert_eq!(connection.reply().unwrap().status, 200);
    assert!(sim.truth(0).arrived_at >= before);
    sim.server.stop();
}

/// A prompt above the limit of the network thread is tokenized elsewhere, with the same answer.
#[test]
fn long_prompt_is_counted_like_a_short_one() {
    let sim = Sim::start(profile());
    let mut connection = sim.connect();
    for length in [4096, 4097, 30_000] {
        let body = format!(r#"{{"prompt":"{}","max_tokens":1}}"#, "a".repeat(length));
        let reply = connection.post(TEXT, "", &body);
        assert_eq!(reply.json()["usage"]["prompt_tokens"], length);
    }
    sim.server.stop();
}

/// Without a limit, every waiting prompt has a thread, and under load none of them finishes.
#[test]
fn long_prompts_are_tokenized_by_at_most_half_of_the_cores() {
    let running = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let counters = Arc::clone(&running);
    let clock = RunClock::starting_now();
    let options = SimOptions {
        tokenize: Arc::new(move |text: &str| {
            let now = counters.0.fetch_add(1, Ordering::SeqCst) + 1;
            counters.1.fetch_max(now, Ordering::SeqCst);
            sleep_until(clock, clock.now() + 5_000_000);
            counters.0.fetch_sub(1, Ordering::SeqCst);
            text.bytes().map(u32::from).collect()
        }),
        ..SimOptions::new(profile(), 1)
    };
    let sim = Sim {
        server: SimServer::start(ANY, options, clock).unwrap(),
        clock,
    };
    let body = format!(r#"{{"prompt":"{}","max_tokens":1}}"#, "a".repeat(5000));
    std::thread::scope(|scope| {
        for _ in 0..48 {
            scope.spawn(|| assert_eq!(sim.connect().post(TEXT, "", &body).status, 200));
        }
    });
    let cores = std::thread::available_parallelism().unwrap().get();
    let most = running.1.load(Ordering::SeqCst);
    assert!((1..=(cores / 2).max(1)).contains(&most), "{most} at once");
    sim.server.stop();
}

#[test]
fn names_taken_address_and_invalid_profile() {
    let sim = Sim::start(profile());
    let addr = sim.server.addr();
    let again = SimServer::start(addr, SimOptions::new(profile(), 1), sim.clock);
    let Err(error @ SimError::Listen { .. }) = again else {
        panic!("listened twice")
    };
    assert!(
        error.to_string().contains(&format!("cannot listen on {addr}")),
        "{error}"
    );
    let bad = SimOptions::new(
        Profile {
            max_batch: 0,
            ..profile()
        },
        1,
    );
    assert!(matches!(
        SimServer::start(ANY, bad, sim.clock),
        Err(SimError::Profile(_))
    ));
    sim.server.stop();
}
