//! Parser-free interpretation gives the same result as the parser, for any events.

use proptest::prelude::*;
use veeksha_endpoint::{AnswerOutcome, AnswerStream, EndpointKind, Pointers};
use veeksha_model::Framing;

use crate::kinds::{llama_completion, ollama, template};
use crate::support::{bytes_of, parse_with};

/// Returns every endpoint, and templates of both framings.
pub(crate) fn endpoints() -> Vec<EndpointKind> {
    let nested = Pointers {
        text: Some("/choices/*/delta/content".into()),
        reasoning: Some("/choices/0/delta/reasoning".into()),
        finish_reason: Some("/choices/0/finish_reason".into()),
        output_tokens: Some("/usage/completion_tokens".into()),
        error: Some("/error".into()),
        done: Some("[DONE]".into()),
        ..Pointers::default()
    };
    vec![
        EndpointKind::ChatCompletions,
        EndpointKind::Completions,
        EndpointKind::Responses,
        EndpointKind::AnthropicMessages,
        EndpointKind::TgiGenerateStream,
        llama_completion(),
        ollama(),
        template(Framing::EventStream, nested),
    ]
}

/// Returns the names of all fixtures that are response bodies.
pub(crate) fn fixtures() -> Vec<String> {
    let mut names = Vec::new();
    for folder in ["sse", "written"] {
        let path = format!("{}/tests/fixtures/{folder}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(path).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if !name.ends_with(".headers") {
                names.push(format!("{folder}/{name}"));
            }
        }
    }
    names.sort();
    assert!(names.len() > 70, "{names:?}");
    names
}

fn both(endpoint: &EndpointKind, pieces: &[&[u8]]) -> (AnswerOutcome, AnswerOutcome) {
    let with = parse_with(AnswerStream::new(endpoint), pieces.iter().copied());
    let without = parse_with(
        AnswerStream::new(endpoint).without_skeletons(),
        pieces.iter().copied(),
    );
    (with, without)
}

/// Cuts bytes into pieces of these sizes, cyclically.
pub(crate) fn cut<'a>(bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, left) = rest.split_at((*size).min(rest.len()));
        pieces.push(piece);
        rest = left;
    }
    pieces
}

#[test]
fn every_fixture_is_understood_alike_in_every_endpoint() {
    for name in fixtures() {
        let bytes = bytes_of(&name);
        for endpoint in endpoints() {
            let (with, without) = both(&endpoint, &[&bytes]);
            assert_eq!(with, without, "{name} as {endpoint:?}");
            let events = cut(&bytes, &[97, 512]);
            let (with, without) = both(&endpoint, &events);
            assert_eq!(with, without, "{name} in pieces, as {endpoint:?}");
        }
    }
}

/// Returns the number of events, of a hundred with one shape and different texts, that need no
/// parser.
fn fitted(endpoint: &EndpointKind, event: impl Fn(usize) -> String) -> u64 {
    let mut stream = AnswerStream::new(endpoint);
    for index in 0..100 {
        let stamp = crate::support::stamp(index as u64);
        assert!(stream.on_bytes(stamp, event(index).as_bytes()));
    }
    assert_eq!(stream.chunks().len(), 100);
    stream.fitted_events()
}

#[test]
fn a_steady_stream_of_any_endpoint_is_parsed_once() {
    let chat = |index: usize, created: usize| {
        format!(
            "data: {{\"id\":\"c\",\"created\":{created},\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"t {index}\"}}}}]}}\n\n"
        )
    };
    assert_eq!(fitted(&EndpointKind::ChatCompletions, |index| chat(index, 7)), 99);
    // A new timestamp every second: ten events are parsed.
    assert_eq!(
        fitted(&EndpointKind::ChatCompletions, |index| chat(index, index / 10)),
        90
    );
    // A new timestamp in every event: no skeleton ever fits, and learning stops.
    assert_eq!(
        fitted(&EndpointKind::ChatCompletions, |index| chat(index, index)),
        0
    );
    let responses = |index: usize| {
        format!(
            "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"sequence_number\":{index},\
             \"delta\":\"t\\n{index}\",\"obfuscation\":\"{}\"}}\r\n\r\n",
            "x".repeat(index % 7)
        )
    };
    // A text with an escape is not borrowed, so its position is unknown.
    assert_eq!(fitted(&EndpointKind::Responses, responses), 0);
    let responses = |index: usize| responses(index).replace("\\n", ["-", "\\n", "\\u00e9"][index % 3]);
    assert_eq!(fitted(&EndpointKind::Responses, responses), 99);
    let anthropic = |index: usize| {
        format!(
            "data: {{\"type\":\"content_block_delta\",\"delta\":{{\"type\":\"text_delta\",\"text\":\"t{index}\"}}}}\n\n"
        )
    };
    assert_eq!(fitted(&EndpointKind::AnthropicMessages, anthropic), 99);
    let tgi = |index: usize| {
        format!(
            "data:{{\"index\":{index},\"token\":{{\"id\":{index},\"text\":\"é{index}\",\"logprob\":-{index}.5e-3,\"special\":false}}}}\n\n"
        )
    };
    assert_eq!(fitted(&EndpointKind::TgiGenerateStream, tgi), 99);
    assert_eq!(
        fitted(&llama_completion(), |index| format!(
            "data: {{\"content\":\"{index}\"}}\n\n"
        )),
        99
    );
    assert_eq!(
        fitted(&ollama(), |index| format!(
            "{{\"message\":{{\"content\":\"{index}\"}}}}\n"
        )),
        99
    );
}

/// Generates the inside of a JSON string: plain text, all escapes, surrogates, members that
/// resemble others; if `broken`, also sequences that are invalid in a JSON string.
fn inside(broken: bool) -> impl Strategy<Value = String> {
    let list = |pieces: &'static [&'static str]| prop::sample::select(pieces).prop_map(str::to_owned);
    let piece = prop_oneof![
        8 => "[a-zA-Z ,.!]{1,6}",
        2 => "[äöü😀中\u{7f}\u{a0}\u{2028}]{1,3}",
        4 => list(&["\\n", "\\\"", "\\\\", "\\/", "\\b", "\\f", "\\r", "\\t"]),
        2 => list(&[
            "\\u00e9", "\\u4F60", "\\ud83d\\ude00", "\\uD83D\\uDE00", "\\u0000", "\\u0022", "\\u005c", "\\ufffd",
        ]),
        1 => list(&["\\\"content\\\":\\\"", "\\\\\\\"", "data: [DONE]", "[DONE]", "\\\"}}]}"]),
        u32::from(broken) => list(&[
            "\\ud83d", "\\ude00", "\\ud83d\\u0041", "\\ud83dx", "\\u12", "\\u12g4", "\\x", "\\u+123", "\\U0041", "\u{1}", "\t",
            "\"", "\",\"content\":\"x", "\"}}],\"x\":[{\"delta\":{\"content\":\"y", "\\\\\"",
        ]),
    ];
    prop_oneof![
        8 => prop::collection::vec(piece, 1..4).prop_map(|pieces| pieces.concat()),
        1 => Just(String::new()),
    ]
}

/// An event of a stream of one kind: its shape, a variable number, its text and a second text. Some
/// shapes are common to all streams.
#[derive(Clone, Debug)]
struct Event {
    shape: usize,
    number: u64,
    text: String,
    other: String,
}

/// Events that may occur in any stream.
const COMMON: [&str; 10] = [
    ": ping",
    "data:",
    "event: ping",
    "data: [DONE]",
    "event: error\ndata: {\"message\":\"U\"}",
    "data: {\"error\":{\"message\":\"U\",\"code\":N}}",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}",
    "data: {\"type\":\"message_stop\"}",
    "data: {\"type\":\"response.completed\"}",
    "\u{feff}data: {\"content\":\"T\"}",
];

/// Shapes of events. `T` is a text, `N` a number, `U` a second text.
const SHAPES: [(usize, &[&str]); 8] = [
    // Chat completions, also with reordered, duplicate and nested members, and with text in two
    // places.
    (
        0,
        &[
            r#"data: {"id":"c","created":N,"choices":[{"index":0,"delta":{"content":"T"},"finish_reason":null}]}"#,
            r#"data: {"id":"c","created":7,"choices":[{"index":0,"delta":{"content":"T"},"finish_reason":null}]}"#,
            r#"data: {"choices":[{"delta":{"reasoning_content":"T"},"index":0}],"id":"c"}"#,
            r#"data: {"choices":[{"delta":{"reasoning_content":"T","reasoning":"U"},"index":0}],"id":"c"}"#,
            r#"data: {"choices":[{"delta":{"content":"T","content":"U"},"index":0}],"id":"c"}"#,
            r#"data: {"id":"c","id":"d","x":{"content":"U"},"choices":[{"index":0,"delta":{"content":"T"}}]}"#,
            r#"data: {"choices":[{"index":N,"delta":{"content":"T"}}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"T"},"finish_reason":"U"}]}"#,
            r#"data: {"choices":[{"index":0,"text":"T"}],"usage":{"completion_tokens":N}}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"x","tool_calls":[{"function":{"arguments":"T"}}]}}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"T"}},{"index":1,"delta":{"content":"U"}}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"refusal":"T"}}],"error":null}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"T","refusal":"U"}}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"T","reasoning":"U"}}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"T"}},{"index":0,"delta":{"content":"U"}}]}"#,
            "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"T\"}}]}",
            "id: N\ndata: {\"choices\":[{\"delta\":{\"content\":\"T\"}}]}",
        ],
    ),
    (
        1,
        &[
            r#"data: {"choices":[{"index":0,"text":"T","finish_reason":null}]}"#,
            r#"data: {"choices":[{"text":"T"}],"x":"U"}"#,
        ],
    ),
    (
        2,
        &[
            "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"T\",\"sequence_number\":N}",
            r#"data: {"type":"response.output_text.delta","sequence_number":N,"delta":"T","obfuscation":"U"}"#,
            r#"data: {"type":"response.reasoning_text.delta","sequence_number":"U","delta":"T"}"#,
            r#"data: {"sequence_number":-N.5e3,"delta":"T","type":"response.output_text.delta"}"#,
            r#"data: {"type":"T","delta":"x"}"#,
            r#"data: {"type":"response.function_call_arguments.delta","delta":"T"}"#,
            r#"data: {"type":"response.output_text.delta","delta":"T","delta":"U"}"#,
            r#"data: {"type":"response.output_text.delta","delta":N}"#,
        ],
    ),
    (
        3,
        &[
            r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"T"}}"#,
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"thinking\":\"T\"}}",
            r#"data: {"type":"content_block_delta","delta":{"partial_json":"T"}}"#,
            r#"data: {"type":"content_block_delta","delta":{"text":"T","stop_reason":"U"}}"#,
            r#"data: {"type":"T","delta":{"text":"U"}}"#,
        ],
    ),
    (
        4,
        &[
            r#"data:{"index":N,"token":{"id":N,"text":"T","logprob":-0.N,"special":false},"generated_text":null,"details":null}"#,
            r#"data:{"token":{"id":"U","text":"T","logprob":null}}"#,
            r#"data:{"token":{"id":1,"text":"T","special":true}}"#,
            r#"data:{"token":{"id":01,"text":"T","logprob":N.}}"#,
        ],
    ),
    (
        5,
        &[
            r#"data: {"content":"T","stop":false,"tokens_predicted":N}"#,
            r#"data: {"content":"T","stop":false}"#,
            r#"data: {"content":"T","content":"U"}"#,
            r#"data: {"content":"x","stop_type":"T"}"#,
        ],
    ),
    (
        6,
        &[
            r#"{"message":{"content":"T"},"done":false}"#,
            r#"{"message":{"thinking":"T"},"at":"U"}"#,
            r#"{"message":{"content":"","thinking":"T"},"at":"x"}"#,
        ],
    ),
    (
        7,
        &[
            r#"data: {"choices":[{"delta":{"content":"T"}}],"x":1}"#,
            r#"data: {"choices":[{"delta":{"reasoning":"T"}}]}"#,
            r#"data: {"choices":[{"delta":{"content":"T"}}],"error":"U"}"#,
            r#"data: {"choices":[{"delta":{"content":"T"}}],"usage":{"completion_tokens":N}}"#,
        ],
    ),
];

/// A valid end of a stream for each of [`endpoints`], so that its texts count.
const ENDS: [&str; 8] = [
    r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    r#"data: {"choices":[{"text":"","finish_reason":"stop"}]}"#,
    r#"data: {"type":"response.completed","response":{"status":"completed"}}"#,
    r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
    r#"data:{"generated_text":"x","details":{"finish_reason":"length"}}"#,
    r#"data: {"content":"","stop_type":"eos"}"#,
    r#"{"message":{"content":""},"done_reason":"stop"}"#,
    r#"data: {"choices":[{"finish_reason":"stop"}]}"#,
];

/// Returns the bytes of a stream, event by event.
fn written(which: usize, events: &[Event], line_end: &str) -> (EndpointKind, Vec<Vec<u8>>) {
    let (endpoint, shapes) = SHAPES[which];
    let written = events.iter().map(|event| {
        let shape = match event.shape.checked_sub(20) {
            Some(common) => COMMON[common % COMMON.len()],
            None => shapes[event.shape % shapes.len()],
        };
        let text = shape
            .replace('N', &event.number.to_string())
            .replace("\"U\"", &format!("\"{}\"", event.other))
            .replace("\"T\"", &format!("\"{}\"", event.text));
        format!("{text}\n\n").replace('\n', line_end).into_bytes()
    });
    let end = format!("{}\n\n", ENDS[endpoint])
        .replace('\n', line_end)
        .into_bytes();
    let written = written.chain([end]).collect();
    (endpoints().swap_remove(endpoint), written)
}

/// Generates a stream that keeps a shape for a while and repeats events occasionally, like actual
/// streams.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let runs = prop::bool::weighted(0.3).prop_flat_map(|broken| {
        let run = (
            prop_oneof![12 => 0usize..17, 1 => 20usize..30],
            any::<bool>(),
            0u64..2_000,
            prop::collection::vec(inside(broken), 1..6),
            inside(broken),
            any::<bool>(),
        );
        prop::collection::vec(run, 1..6)
    });
    runs.prop_map(|runs| {
        let mut events = Vec::new();
        for (shape, steady, number, texts, other, same) in runs {
            let count = if shape < 20 { texts.len() * 2 } else { 1 };
            for (step, text) in (0..count).zip(texts.iter().cycle()) {
                events.push(Event {
                    shape,
                    number: if steady { number } else { number + step as u64 },
                    text: text.clone(),
                    other: if same {
                        other.clone()
                    } else {
                        texts[step / 2].clone()
                    },
                });
            }
        }
        events
    })
}

/// Returns reads: the whole stream, one event each, or arbitrary sizes.
fn reads<'a>(events: &'a [Vec<u8>], bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    match sizes {
        [] => vec![bytes],
        [0] => events.iter().map(Vec::as_slice).collect(),
        sizes => cut(bytes, sizes),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn any_stream_is_understood_alike(
        which in 0..SHAPES.len(),
        events in events(),
        line_end in prop_oneof![4 => Just("\n"), 2 => Just("\r\n"), 1 => Just("\r")],
        sizes in prop_oneof![
            Just(vec![]),
            Just(vec![0]),
            prop::collection::vec(prop_oneof![4 => 200usize..2_000, 1 => 1usize..200], 1..6),
        ],
    ) {
        let (endpoint, events) = written(which, &events, line_end);
        let bytes = events.concat();
        let (with, without) = both(&endpoint, &reads(&events, &bytes, &sizes));
        prop_assert_eq!(with, without, "{}", String::from_utf8_lossy(&bytes));
    }

    /// The same property with bytes changed at any position.
    #[test]
    fn damaged_streams_are_understood_alike(
        which in 0..SHAPES.len(),
        events in events(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let (endpoint, events) = written(which, &events, "\n");
        let mut bytes = events.concat();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let (with, without) = both(&endpoint, &[&bytes]);
        prop_assert_eq!(with, without, "{}", String::from_utf8_lossy(&bytes));
    }
}

/// A learnt event, then one that resembles it but differs.
#[test]
#[expect(clippy::too_many_lines, reason = "one table of cases")]
fn similar_event_is_not_taken_for_a_known_one() {
    let responses = |number: &str, noise: &str| {
        format!(
            "data: {{\"type\":\"response.output_text.delta\",\"sequence_number\":{number},\"delta\":\"t\",\"obfuscation\":\"{noise}\"}}\n\n"
        )
    };
    let tgi = |number: &str| {
        format!(
            "data: {{\"token\":{{\"id\":{number},\"text\":\"t\",\"logprob\":{number},\"special\":false}}}}\n\n"
        )
    };
    let numbers = [
        "0",
        "-0",
        "7",
        "01",
        "-01",
        "00",
        "1.",
        ".5",
        "1.5",
        "1.50e+3",
        "1e",
        "1e+",
        "1E5",
        "1e-",
        "-",
        "+1",
        "1 ",
        " 1",
        "",
        "1_0",
        "NaN",
        "null",
        "\"7\"",
        "[7]",
        "1e999",
        "123456789012345678901234567890",
    ];
    for number in numbers {
        for (endpoint, events) in [
            (
                EndpointKind::Responses,
                [responses("7", "x"), responses(number, "x"), responses("8", "yy")],
            ),
            (EndpointKind::TgiGenerateStream, [tgi("7"), tgi(number), tgi("8")]),
        ] {
            let end = if matches!(endpoint, EndpointKind::Responses) {
                2
            } else {
                4
            };
            let end = format!("{}\n\n", ENDS[end]);
            let pieces: Vec<&[u8]> = events.iter().chain([&end]).map(String::as_bytes).collect();
            let (with, without) = both(&endpoint, &pieces);
            assert_eq!(with, without, "{number}");
        }
    }
    for noise in [
        "",
        "ü",
        "\\n",
        "\\",
        "\\ud800",
        "\\u12",
        "\u{1}",
        "\"",
        "\",\"delta\":\"u",
    ] {
        let end = format!("{}\n\n", ENDS[2]);
        let events = [
            responses("7", "x"),
            responses("8", noise),
            responses("9", "z"),
            end,
        ]
        .concat();
        let (with, without) = both(&EndpointKind::Responses, &[events.as_bytes()]);
        assert_eq!(with, without, "{noise}");
    }

    let event = |text: &[u8]| {
        [
            b"data: {\"choices\":[{\"delta\":{\"content\":\"",
            text,
            b"\"}}]}\n\n",
        ]
        .concat()
    };
    let (learnt, next) = (event(b"a"), event(b"b"));
    let chat = EndpointKind::ChatCompletions;
    let end = format!("{}\n\n", ENDS[0]).into_bytes();
    for between in [
        // The following event is not an event, or has another kind.
        &b": "[..],
        b":\n",
        b"id: ",
        b"data: {}",
        b"data: {}\n",
        b"event: error\n",
        b"event: error",
        b"error: x\n",
        b"data: [DONE]\n\n",
        b"data: [DONE]\r",
        b"event: error\ndata: x\n\n",
        b"data: {\"error\":\"x\"}\n\n",
        b"\xEF\xBB\xBF",
        b"\r",
        b"\n",
        // Half a character: the next event's text must not complete it.
        &event(b"\xF0\x9F"),
        &event(b"\xC3"),
    ] {
        for tail in [&next[..], &event(b"\x98\x80"), &event(b"\xA4")] {
            let (with, without) = both(&chat, &[&learnt, between, tail, &next, &end]);
            assert_eq!(with, without, "{}", String::from_utf8_lossy(between));
            let together = [&learnt, between, tail, &next, &end].concat();
            let (with, without) = both(&chat, &[&together]);
            assert_eq!(with, without, "{}", String::from_utf8_lossy(between));
        }
    }
    // A byte order mark can precede only the first event.
    let marked = [b"\xEF\xBB\xBF", &learnt[..]].concat();
    let (with, without) = both(&chat, &[&marked, &marked, &learnt, &marked, &end]);
    assert_eq!(with, without);
    assert_eq!(with.chunks.len(), 3);
    assert_eq!(with.result.unwrap().text, "aa");
}
