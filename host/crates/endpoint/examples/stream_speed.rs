//! Measures the cost of interpreting a stream event, with skeletons and with the parser alone.
//!
//! ```text
//! # Nanoseconds per event.
//! cargo run --release -p veeksha-endpoint --example stream_speed
//! # A single mode, for callgrind.
//! cargo run --release -p veeksha-endpoint --example stream_speed 100000 chat skeletons
//! ```
//!
//! To get instructions per event, run twice under `valgrind --tool=callgrind` with different event
//! counts and divide the difference in instructions by the difference in counts.

use std::time::{Duration, Instant};

use veeksha_endpoint::{AnswerStream, BodyEnd, EndpointKind, ReadStamp};

/// Events per answer. A new answer begins after that many, as in a run.
const EVENTS_OF_AN_ANSWER: usize = 512;

/// Name, endpoint, and the event of one token: the format that servers send, with texts of typical
/// length.
type Shape = (&'static str, EndpointKind, fn(usize) -> String);

const TEXTS: [&str; 8] = [" the", " model", "ing", ",", " of", "\\n", " tokens", " süß"];

fn shapes() -> [Shape; 5] {
    [
        ("chat", EndpointKind::ChatCompletions, |index| {
            format!(
                "data: {{\"id\":\"chatcmpl-bd81fc3e-14f5-4e3a-82fb-e6d8d71dcb\",\"object\":\"chat.completion.chunk\",\"created\":1795205421,\
                 \"model\":\"tiny\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{}\"}},\"logprobs\":null,\"finish_reason\":null,\
                 \"token_ids\":null}}]}}\n\n",
                TEXTS[index % TEXTS.len()]
            )
        }),
        ("llamacpp", EndpointKind::ChatCompletions, |index| {
            format!(
                "data: {{\"choices\":[{{\"finish_reason\":null,\"index\":0,\"delta\":{{\"content\":\"{}\"}}}}],\"created\":{},\
                 \"id\":\"chatcmpl-xfYXUvXNCbHU6IGVyMzM0WvCP8sTvYvw\",\"model\":\"tiny\",\"system_fingerprint\":\"b9999-0123456789\",\
                 \"object\":\"chat.completion.chunk\"}}\n\n",
                TEXTS[index % TEXTS.len()],
                1_795_205_421 + index / 100
            )
        }),
        ("responses", EndpointKind::Responses, |index| {
            format!(
                "event: response.output_text.delta\ndata: {{\"content_index\":0,\"delta\":\"{}\",\"item_id\":\"msg_0123456789abcdef\",\
                 \"logprobs\":[],\"output_index\":0,\"sequence_number\":{index},\"type\":\"response.output_text.delta\"}}\n\n",
                TEXTS[index % TEXTS.len()]
            )
        }),
        ("anthropic", EndpointKind::AnthropicMessages, |index| {
            format!(
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\
                 \"text\":\"{}\"}}}}\n\n",
                TEXTS[index % TEXTS.len()]
            )
        }),
        ("tgi", EndpointKind::TgiGenerateStream, |index| {
            format!(
                "data:{{\"index\":{index},\"token\":{{\"id\":{},\"text\":\"{}\",\"logprob\":-0.{index},\"special\":false}},\
                 \"generated_text\":null,\"details\":null}}\n\n",
                index * 7,
                TEXTS[index % TEXTS.len()]
            )
        }),
    ]
}

/// Reads `count` events, one read each, and returns their bytes of text.
fn run(endpoint: &EndpointKind, events: &[String], count: usize, skeletons: bool) -> usize {
    let mut bytes = 0;
    let mut read = 0;
    while read < count {
        let mut stream = AnswerStream::new(endpoint);
        if !skeletons {
            stream = stream.without_skeletons();
        }
        let mut stamp = ReadStamp {
            at: 0,
            lag: 0,
            read: 0,
        };
        for event in events.iter().take(count - read) {
            read += 1;
            stamp = ReadStamp {
                at: read as u64,
                lag: 1,
                read: read as u64,
            };
            stream.on_bytes(stamp, event.as_bytes());
        }
        let verdict = stream.finish(stamp, None, BodyEnd::Complete);
        bytes += verdict.chunks.len();
    }
    bytes
}

#[expect(clippy::disallowed_methods, reason = "it measures its own speed")]
fn time(mut work: impl FnMut()) -> Duration {
    let best = (0..5).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed()
    });
    best.min().unwrap_or_default()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = arguments
        .first()
        .and_then(|count| count.parse().ok())
        .unwrap_or(500_000);
    let only = arguments.get(1);
    for (name, endpoint, event) in shapes() {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let events: Vec<String> = (0..EVENTS_OF_AN_ANSWER).map(event).collect();
        let size = events.iter().map(String::len).sum::<usize>() / events.len();
        if let Some(way) = arguments.get(2) {
            println!("{}", run(&endpoint, &events, count, way == "skeletons"));
            continue;
        }
        let per_event = |skeletons| {
            let time = time(|| {
                std::hint::black_box(run(&endpoint, &events, count, skeletons));
            });
            time.as_nanos() as f64 / count as f64
        };
        println!(
            "{name:10} {size:4} bytes per event: {:6.1} ns with skeletons, {:6.1} ns with the parser",
            per_event(true),
            per_event(false)
        );
    }
}
