//! Faults of the wire as raw bytes, and their truth records.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the functions that the tests share are tests too"
)]

#[path = "common/client.rs"]
mod client;
#[path = "common/server.rs"]
mod server;

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;

use client::{Connection, Ended};
use server::{Sim, profile};
use veeksha_model::ChunkKind;
use veeksha_simulator::{Faults, FinishReason, Profile, TruthOutcome, WireFault, WireRule};

const CHAT: &str = "/v1/chat/completions";

fn chat(output: u32) -> String {
    format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":"hello"}}],"max_tokens":{output},"ignore_eos":true,
            "stream":true,"stream_options":{{"include_usage":true}}}}"#
    )
}

fn whole(output: u32) -> String {
    chat(output).replace("\"stream\":true", "\"stream\":false")
}

fn faulty(faults: Faults) -> Sim {
    Sim::start(Profile {
        prefill_base_ms: 1.0,
        decode_base_ms: 1.0,
        faults,
        ..profile()
    })
}

fn sim(fault: WireFault) -> Sim {
    faulty(Faults {
        wire: vec![WireRule::every(1, fault)],
        stall_ms: 120.0,
        ..Faults::default()
    })
}

/// How a connection ended.
#[derive(Debug, PartialEq)]
enum End {
    Closed,
    Reset,
}

/// Returns all bytes until the server closes.
fn to_the_end(connection: &mut Connection) -> (Vec<u8>, End) {
    let mut all = Vec::new();
    let mut buffer = [0; 65536];
    loop {
        match connection.stream.read(&mut buffer) {
            Ok(0) => return (all, End::Closed),
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return (all, End::Reset),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Returns the bytes up to and including `end`.
fn until(connection: &mut Connection, end: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = [0; 65536];
    while !all.ends_with(end) {
        let count = connection.stream.read(&mut buffer).unwrap();
        assert!(count > 0, "closed after {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&buffer[..count]);
    }
    all
}

fn body_of(bytes: &[u8]) -> &[u8] {
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    &bytes[head + 4..]
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn kinds(sim: &Sim, ordinal: usize) -> Vec<ChunkKind> {
    let truth = sim.truth(ordinal);
    truth.chunks.iter().map(|(_, kind)| *kind).collect()
}

const FINISHED: TruthOutcome = TruthOutcome::Finished(FinishReason::Length);

#[test]
fn drip_writes_single_bytes() {
    let sim = sim(WireFault::Drip);
    let mut connection = sim.connect();
    let reply = connection.post(CHAT, "", &chat(2));
    assert_eq!(
        (reply.status, reply.ended, reply.events().len()),
        (200, Ended::Whole, 6)
    );
    let truth = sim.truth(0);
    assert_eq!((truth.outcome, truth.fault), (FINISHED, Some(WireFault::Drip)));
    assert_eq!(kinds(&sim, 0).len(), 6);
    // Events of one step no longer share an instant: hundreds of writes are between them.
    assert!(truth.chunks.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(truth.headers_sent_at.unwrap() < truth.chunks[0].0);
    assert_eq!(connection.post(CHAT, "", &whole(2)).status, 200);
    sim.server.stop();
}

#[test]
fn huge_event_is_a_mebibyte() {
    let sim = sim(WireFault::HugeEvent);
    let reply = sim.connect().post(CHAT, "", &chat(3));
    let longest = reply.events().iter().map(|(_, data)| data.len()).max().unwrap();
    assert!((1 << 20..(1 << 20) + 1000).contains(&longest), "{longest}");
    assert_eq!(reply.events().len(), 7);
    assert_eq!(sim.truth(0).outcome, FINISHED);
    assert_eq!(
        kinds(&sim, 0).len(),
        7,
        "each event is in the truth, also if the socket was full"
    );
    sim.server.stop();
}

#[test]
fn end_marker_can_be_missing_or_followed_by_data() {
    let missing = sim(WireFault::MissingDone);
    let mut connection = missing.connect();
    let reply = connection.post(CHAT, "", &chat(2));
    assert_eq!(
        (reply.ended, reply.body.contains("[DONE]")),
        (Ended::Whole, false)
    );
    assert!(reply.body.contains("\"finish_reason\":\"length\""));
    assert_eq!(kinds(&missing, 0).last(), Some(&ChunkKind::Usage));
    let hi = r#""max_tokens":2,"stream":true,"messages":[{"role":"user","content":"hi"}]"#;
    let reply = connection.post("/v1/messages", "", &format!("{{{hi}}}"));
    assert!(reply.body.contains("message_delta") && !reply.body.contains("message_stop"));
    let reply = connection.post(
        "/v1/responses",
        "",
        r#"{"input":"hi","stream":true,"max_output_tokens":2}"#,
    );
    assert!(reply.body.contains("response.output_item.done") && !reply.body.contains("response.incomplete"));
    missing.server.stop();

    let after = sim(WireFault::DataAfterDone);
    let reply = after.connect().post(CHAT, "", &chat(2));
    assert_eq!(reply.ended, Ended::Whole);
    let (_, rest) = reply.body.split_once("data: [DONE]\n\n").unwrap();
    assert!(
        rest.starts_with("data: {") && rest.contains("\"content\""),
        "{rest}"
    );
    assert_eq!(
        kinds(&after, 0).last(),
        Some(&ChunkKind::Done),
        "what follows counts for nothing"
    );
    after.server.stop();
}

#[test]
fn endless_body_continues_after_its_end_marker() {
    let sim = sim(WireFault::Endless);
    let mut connection = sim.connect();
    connection.send("POST", CHAT, "", &chat(2));
    let filler = b"3\r\n:\n\n\r\n";
    let bytes = text(&until(&mut connection, &filler.repeat(2)));
    assert!(bytes.contains("data: [DONE]\n\n") && !bytes.contains("\r\n0\r\n"));
    assert_eq!(sim.truth(0).outcome, FINISHED, "the answer was whole");
    connection.close();
    sim.until(|sim| (sim.server.stats().connections_open == 0).then_some(()));
    sim.server.stop();
}

#[test]
fn supports_trailers_upper_case_sizes_and_extensions() {
    for (fault, head, last) in [
        (
            WireFault::Trailers,
            "\r\ntrailer: x-sim-checksum, x-sim-note\r\n",
            "\r\n0\r\nx-sim-checksum: 1\r\nx-sim-note: trailer\r\n\r\n",
        ),
        (
            WireFault::UpperCaseChunks,
            "\r\ntransfer-encoding: chunked\r\n",
            "\r\n000\r\n\r\n",
        ),
        (
            WireFault::ChunkExtensions,
            "\r\ntransfer-encoding: chunked\r\n",
            "\r\n0;last\r\n\r\n",
        ),
    ] {
        let sim = sim(fault);
        let mut connection = sim.connect();
        for (turn, body) in [chat(2), whole(2), chat(2)].into_iter().enumerate() {
            connection.send("POST", CHAT, "", &body);
            let bytes = text(&until(&mut connection, last.as_bytes()));
            assert!(bytes.contains(head), "{bytes}");
            // The first chunk states its size and has exactly that length.
            let body = text(body_of(bytes.as_bytes()));
            let (size, rest) = body.split_once("\r\n").unwrap();
            let digits = match fault {
                WireFault::UpperCaseChunks => {
                    assert!(size.starts_with('0') && !size.contains(|c: char| c.is_ascii_lowercase()));
                    size
                }
                WireFault::ChunkExtensions => size.strip_suffix(";sim=\"a;b\"").unwrap(),
                _ => size,
            };
            let length = usize::from_str_radix(digits, 16).unwrap();
            assert_eq!(&rest[length..length + 2], "\r\n");
            assert_eq!(sim.truth(turn).outcome, FINISHED);
        }
        assert_eq!(
            sim.server.stats().connections_total,
            1,
            "the connection is kept alive"
        );
        sim.server.stop();
    }
}

#[test]
fn body_can_end_with_the_connection() {
    let sim = sim(WireFault::CloseDelimited);
    for body in [chat(2), whole(2)] {
        let mut connection = sim.connect();
        connection.send("POST", CHAT, "", &body);
        let (bytes, end) = to_the_end(&mut connection);
        let bytes = text(&bytes);
        assert_eq!(end, End::Closed);
        assert!(bytes.contains("\r\nconnection: close\r\n"));
        assert!(!bytes.contains("content-length") && !bytes.contains("transfer-encoding"));
        assert!(bytes.ends_with("data: [DONE]\n\n") || bytes.ends_with('}'));
    }
    assert_eq!(sim.truth(0).outcome, FINISHED);
    sim.server.stop();
}

/// An HTTP/1.0 client gets no chunks, even without a fault.
#[test]
fn http_1_0_client_gets_no_chunks() {
    let sim = faulty(Faults::default());
    let mut connection = sim.connect();
    let body = chat(2);
    let request = format!(
        "POST {CHAT} HTTP/1.0\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.stream.write_all(request.as_bytes()).unwrap();
    let (bytes, end) = to_the_end(&mut connection);
    assert_eq!(end, End::Closed);
    assert!(body_of(&bytes).starts_with(b"data: {") && bytes.ends_with(b"data: [DONE]\n\n"));
    sim.server.stop();
}

#[test]
fn compressed_body_is_flushed_with_every_write() {
    let sim = sim(WireFault::Gzip);
    let mut connection = sim.connect();
    connection.send("POST", CHAT, "", &chat(3));
    let bytes = until(&mut connection, b"\r\n0\r\n\r\n");
    assert!(
        text(
            &bytes[..300]
                .iter()
                .copied()
                .filter(u8::is_ascii)
                .collect::<Vec<_>>()
        )
        .contains("\r\ncontent-encoding: gzip\r\n")
    );
    let mut rest = body_of(&bytes);
    let mut chunks = Vec::new();
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n").unwrap();
        let size = usize::from_str_radix(&text(&rest[..line]), 16).unwrap();
        if size == 0 {
            break;
        }
        chunks.push(rest[line + 2..line + 2 + size].to_vec());
        rest = &rest[line + 4 + size..];
    }
    assert_eq!(chunks.len(), 3, "one for each token");
    // The first chunk alone can be decompressed up to its token.
    let mut first = String::new();
    let _ = flate2::read::GzDecoder::new(&chunks[0][..]).read_to_string(&mut first);
    assert_eq!(
        first.matches("data: ").count(),
        2,
        "the role and a token: {first}"
    );
    let mut all = String::new();
    flate2::read::GzDecoder::new(&chunks.concat()[..])
        .read_to_string(&mut all)
        .unwrap();
    assert!(all.ends_with("data: [DONE]\n\n"));
    assert_eq!(kinds(&sim, 0).len(), 7);
    sim.server.stop();
}

#[test]
fn redirection_has_the_same_path() {
    let sim = sim(WireFault::Redirect);
    let mut connection = sim.connect();
    for ordinal in 0..2 {
        let reply = connection.post(CHAT, "", &chat(2));
        assert_eq!((reply.status, reply.header("location")), (307, Some(CHAT)));
        assert_eq!(sim.truth(ordinal).outcome, TruthOutcome::Status(307));
    }
    assert_eq!(sim.server.stats().engine.requests_total, 0);
    sim.server.stop();
}

#[test]
fn interim_answers_precede_the_answer() {
    let sim = sim(WireFault::Interim);
    for body in [chat(1), whole(1)] {
        let mut connection = sim.connect();
        connection.send("POST", CHAT, "connection: close\r\n", &body);
        let (bytes, _) = to_the_end(&mut connection);
        let bytes = text(&bytes);
        let rest = bytes
            .strip_prefix(
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n",
            )
            .unwrap();
        assert!(rest.starts_with("HTTP/1.1 200 OK\r\n"));
    }
    sim.server.stop();
}

#[test]
fn reset_and_half_close_are_in_the_middle_of_an_event() {
    for (fault, expected) in [
        (WireFault::Reset, End::Reset),
        (WireFault::HalfClose, End::Closed),
    ] {
        let sim = faulty(Faults {
            wire: vec![WireRule::every(1, fault)],
            after_tokens: Some(2),
            ..Faults::default()
        });
        let mut connection = sim.connect();
        connection.send("POST", CHAT, "", &chat(50));
        let (bytes, end) = to_the_end(&mut connection);
        assert_eq!(end, expected);
        if fault == WireFault::HalfClose {
            let bytes = text(&bytes);
            // The role, two tokens, and half of the third one's event.
            assert_eq!(bytes.matches("\n\n").count(), 3);
            assert_eq!(bytes.matches("data: ").count(), 4);
            // The server continues reading until the client closes too.
            assert_eq!(sim.server.stats().connections_open, 1);
            connection.stream.write_all(b"more").unwrap();
            connection.stream.shutdown(Shutdown::Write).unwrap();
        }
        let truth = sim.truth(0);
        assert_eq!((truth.outcome, truth.fault), (TruthOutcome::Dropped, Some(fault)));
        assert_eq!(truth.chunks.len(), 3);
        sim.until(|sim| {
            let stats = sim.server.stats();
            (stats.connections_open == 0 && stats.engine.running == 0).then_some(())
        });
        assert_eq!(
            sim.server.stats().engine.cancelled_total,
            1,
            "the engine was notified"
        );
        sim.server.stop();
    }
}

/// A fault has a position in every answer, however short, and none in errors.
#[test]
fn faults_apply_to_short_answers_but_not_to_errors() {
    let reset = sim(WireFault::Reset);
    let mut connection = reset.connect();
    connection.send("POST", CHAT, "", &chat(1));
    assert_eq!(to_the_end(&mut connection).1, End::Reset);
    connection = reset.connect();
    connection.send("POST", CHAT, "", &whole(1));
    assert_eq!(to_the_end(&mut connection).1, End::Reset);
    reset.server.stop();
    for fault in [
        WireFault::Gzip,
        WireFault::Drip,
        WireFault::Reset,
        WireFault::StallMiddle,
    ] {
        let sim = sim(fault);
        let mut connection = sim.connect();
        for (ordinal, body) in [chat(0), "{".to_owned(), whole(0)].into_iter().enumerate() {
            let reply = connection.post(CHAT, "", &body);
            assert_eq!(
                (reply.status, reply.json()["error"]["code"].as_u64()),
                (400, Some(400))
            );
            assert_eq!(sim.truth(ordinal).fault, None);
        }
        sim.server.stop();
    }
}

#[test]
fn stall_delays_the_head_or_half_an_event() {
    let head = sim(WireFault::StallHead);
    for (ordinal, body) in [chat(2), whole(2)].into_iter().enumerate() {
        let reply = head.connect().post(CHAT, "", &body);
        assert_eq!(reply.status, 200);
        let truth = head.truth(ordinal);
        assert!(truth.headers_sent_at.unwrap() >= truth.arrived_at + 120_000_000);
        assert!(reply.reads[0].0 >= truth.headers_sent_at.unwrap());
        assert_eq!(truth.outcome, FINISHED);
    }
    head.server.stop();

    let middle = sim(WireFault::StallMiddle);
    for (ordinal, body) in [chat(4), chat(2), whole(2)].into_iter().enumerate() {
        let reply = middle.connect().post(CHAT, "", &body);
        assert_eq!((reply.status, reply.ended), (200, Ended::Whole));
        let truth = middle.truth(ordinal);
        assert_eq!(truth.outcome, FINISHED);
        let first = truth.chunks[0].0.min(truth.headers_sent_at.unwrap());
        assert!(truth.finished_at.unwrap() >= first + 120_000_000);
        if ordinal == 0 {
            // The second token's event waits for its other half; the third follows immediately.
            let times: Vec<u64> = truth.chunks.iter().map(|(at, _)| *at).collect();
            assert!(times[2] >= times[1] + 120_000_000);
            assert!(times[3] < times[2] + 120_000_000);
            assert_eq!(reply.events().len(), times.len());
            for ((at, _), sent) in reply.events().iter().zip(&times) {
                assert!(sent <= at);
            }
        }
    }
    middle.server.stop();
}

#[test]
fn rule_applies_to_every_nth_request() {
    let sim = faulty(Faults {
        wire: vec![WireRule::every(3, WireFault::Redirect)],
        ..Faults::default()
    });
    let mut connection = sim.connect();
    let statuses: Vec<u16> = (0..6)
        .map(|_| connection.post(CHAT, "", &chat(1)).status)
        .collect();
    assert_eq!(statuses, [200, 200, 307, 200, 200, 307]);
    sim.server.stop();
}

#[test]
fn cut_closes_all_open_connections() {
    let sim = faulty(Faults {
        cut_at_ms: Some(400.0),
        ..Faults::default()
    });
    let mut streams: Vec<Connection> = (0..4).map(|_| sim.connect()).collect();
    let mut idle = sim.connect();
    for stream in &mut streams {
        stream.send("POST", CHAT, "", &chat(30_000));
    }
    for stream in &mut streams {
        let (bytes, _) = to_the_end(stream);
        assert!(bytes.starts_with(b"HTTP/1.1 200") && !bytes.ends_with(b"0\r\n\r\n"));
    }
    assert_eq!(to_the_end(&mut idle).0, b"");
    for ordinal in 0..4 {
        assert_eq!(sim.truth(ordinal).outcome, TruthOutcome::Dropped);
    }
    assert_eq!(sim.connect().post(CHAT, "", &chat(1)).status, 200);
    sim.server.stop();
}

#[test]
fn accept_delay_delays_connections() {
    let sim = faulty(Faults {
        accept_delay_ms: 60.0,
        ..Faults::default()
    });
    let begun = sim.clock.now();
    let mut two = [sim.connect(), sim.connect()];
    let arrived = two.each_mut().map(|connection| {
        connection.post(CHAT, "", &chat(1));
        sim.clock.now()
    });
    assert!(arrived[0] >= begun + 60_000_000);
    assert!(arrived[1] >= begun + 120_000_000, "one after the other");
    sim.server.stop();
}
