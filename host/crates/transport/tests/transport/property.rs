//! The outcome does not depend on the cuts of an answer or on the version of HTTP.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use veeksha_model::{ChunkKind, ErrorClass, Response};
use veeksha_ports::RequestOutcome;

use crate::http2::{H2Server, streamed};
use crate::support::*;

/// The part of an outcome that does not depend on time.
#[derive(Debug, PartialEq)]
struct Essence {
    status: Option<u16>,
    chunks: Vec<(ChunkKind, u32)>,
    result: Result<Response, (ErrorClass, String)>,
}

impl Essence {
    fn of(outcome: RequestOutcome) -> Self {
        Essence {
            status: outcome.status,
            chunks: outcome
                .chunks
                .iter()
                .map(|chunk| (chunk.kind, chunk.bytes))
                .collect(),
            result: outcome.result.map_err(|failure| (failure.class, failure.message)),
        }
    }
}

/// Generates an event of an answer.
fn event() -> impl Strategy<Value = String> {
    let delta = |name: &'static str| {
        any::<String>().prop_map(move |text| {
            let text = serde_json::to_string(&text).unwrap();
            format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"{name}\":{text}}}}}]}}\n\n")
        })
    };
    prop_oneof![
        6 => "[ a-zA-Z\"\\\\\u{e9}\u{1f600}]{0,40}".prop_map(|text| text_event(&text)),
        2 => delta("reasoning_content"),
        1 => Just(": keep-alive\n\n".to_owned()),
        1 => Just("data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n".to_owned()),
        1 => "[a-z]{0,9}".prop_map(|id| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"{id}\",\"function\":{{\"name\":\"f\",\"arguments\":\"{{}}\"}}}}]}}}}]}}\n\n")),
        // More bytes than may wait in any answer.
        1 => "[a-z]{0,30}".prop_map(|text| text_event(&text.repeat(200))),
    ]
}

fn end() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(FINISH.to_owned()),
        1 => Just(FINISH.replace("data: [DONE]\n\n", "")),
        1 => Just("data: [DONE]\n\n".to_owned()),
        1 => Just(format!("{FINISH}{}", text_event("late"))),
        1 => Just("data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\ndata: [DONE]\n\n".to_owned()),
        1 => Just("data: {broken\n\n".to_owned()),
        1 => Just(String::new()),
    ]
}

/// Generates a body and its cuts: into HTTP chunks (or frames), and into writes.
fn answer() -> impl Strategy<Value = (String, Vec<prop::sample::Index>, Vec<prop::sample::Index>)> {
    let cuts = || prop::collection::vec(any::<prop::sample::Index>(), 0..12);
    let events = prop::collection::vec(event(), 0..30).prop_map(|events| events.concat());
    (events, end(), cuts(), cuts()).prop_map(|(events, end, chunks, writes)| (events + &end, chunks, writes))
}

/// Returns the bytes between cuts.
fn cut<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places
        .windows(2)
        .map(|ends| &bytes[ends[0]..ends[1]])
        .filter(|piece| !piece.is_empty())
        .collect()
}

fn chunked(body: &[u8], cuts: &[prop::sample::Index]) -> Vec<u8> {
    let mut bytes = STREAM_HEAD.as_bytes().to_vec();
    for piece in cut(body, cuts) {
        bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

#[test]
fn cuts_and_versions_of_http_change_nothing() {
    type Writes = Arc<Mutex<Vec<Vec<u8>>>>;
    let writes: Writes = Arc::default();
    let script = Arc::clone(&writes);
    let plain = Server::start(move |_, mut stream, _| {
        while read_request(&mut stream).is_some() {
            let writes = script.lock().unwrap().clone();
            for write in &writes {
                if stream.write_all(write).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    });
    let frames: Arc<Mutex<Vec<String>>> = Arc::default();
    let script = Arc::clone(&frames);
    let h2 = H2Server::start(100, move |_| {
        let frames = script.lock().unwrap().clone();
        streamed(frames.into_iter().map(|frame| (0, frame)))
    });
    let http1 = Client::new(target(&plain.base()));
    let http2 = Client::of(h2.config());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&answer(), |(body, chunks, cuts)| {
            *writes.lock().unwrap() = vec![chunked(body.as_bytes(), &[])];
            let uncut = Essence::of(http1.ask(0));
            let bytes = chunked(body.as_bytes(), &chunks);
            *writes.lock().unwrap() = cut(&bytes, &cuts).into_iter().map(<[u8]>::to_vec).collect();
            prop_assert_eq!(&Essence::of(http1.ask(0)), &uncut);
            // Cuts are at character boundaries, because the frames are written as text here.
            let places: Vec<usize> = chunks.iter().map(|cut| cut.index(body.len() + 1)).collect();
            let mut rest = body.as_str();
            let mut pieces = Vec::new();
            for place in places {
                let at = rest.floor_char_boundary(place.min(rest.len()));
                let (piece, behind) = rest.split_at(at);
                pieces.push(piece.to_owned());
                rest = behind;
            }
            pieces.push(rest.to_owned());
            // The library closes a connection after 100 empty frames.
            pieces.retain(|piece| !piece.is_empty());
            *frames.lock().unwrap() = pieces;
            prop_assert_eq!(&Essence::of(http2.ask(0)), &uncut);
            Ok(())
        })
        .unwrap();
    // Only answers that cannot be decoded cost a connection.
    assert!(plain.connections() < 200, "{}", plain.connections());
}
