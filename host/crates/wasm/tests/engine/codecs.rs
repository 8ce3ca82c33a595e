//! Endpoint codecs: shapes of requests are checked, event parts are complete, and a codec that
//! misbehaves is stopped within limits, with a report of the event.

use std::path::PathBuf;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use veeksha_model::{AnswerPart, Framing, TokenProbabilities, Usage};
use veeksha_ports::{Codec, EndpointShape, PluginFailure, PluginFailureKind};
use veeksha_wasm::{EngineLimits, Grants, Kinds, LogLevel, PluginComponent, PluginEndpoint};

use crate::support::{Kept, engine, grants, load, tight};

fn open(plugin: &PluginComponent, config: &str) -> Result<PluginEndpoint, PluginFailure> {
    plugin.codec(config.into(), grants())
}

fn words() -> Arc<dyn Codec> {
    let plugin = load(EngineLimits::default(), "codec");
    open(&plugin, r#"{"framing": "lines"}"#).unwrap().codec
}

fn behaving(limits: EngineLimits, behaviour: &str) -> Arc<dyn Codec> {
    opening(limits, behaviour).unwrap().codec
}

fn opening(limits: EngineLimits, behaviour: &str) -> Result<PluginEndpoint, PluginFailure> {
    open(
        &load(limits, "hostile-codec"),
        &format!(r#"{{"behaviour": "{behaviour}"}}"#),
    )
}

/// Returns `events` events, all `good` except the one at `bad`.
fn lines(events: usize, bad: usize) -> Vec<&'static [u8]> {
    let event = |index: usize| -> &'static [u8] { if index == bad { b"a bad line" } else { b"good" } };
    (0..events).map(event).collect()
}

fn content(text: &str) -> Vec<AnswerPart> {
    vec![AnswerPart::Content(text.into())]
}

#[test]
fn a_component_becomes_an_endpoint() {
    let plugin = load(EngineLimits::default(), "codec");
    let kinds = Kinds {
        endpoint_codec: true,
        ..Kinds::default()
    };
    assert_eq!(plugin.kinds(), kinds);
    assert_eq!(plugin.describe().unwrap().summary, "events as words");
    for (word, framing) in [
        ("event-stream", Framing::EventStream),
        ("lines", Framing::Lines),
        ("whole", Framing::Whole),
    ] {
        let endpoint = open(&plugin, &format!(r#"{{"framing": "{word}"}}"#)).unwrap();
        let expected = EndpointShape {
            path: "v2/words".into(),
            headers: vec![("x-words".into(), "all of them".into())],
            request: r#"{"text": "{{prompt}}", "limit": "{{max_tokens}}"}"#.into(),
            framing,
        };
        assert_eq!(endpoint.shape, expected);
        assert_eq!(
            (endpoint.info.name.as_str(), endpoint.info.engine),
            ("codec", "wasm")
        );
        assert_eq!(endpoint.info.digest, plugin.digest());
    }
}

#[test]
fn a_configuration_is_refused_before_anything_is_sent() {
    let failure = open(&load(EngineLimits::default(), "codec"), r#"{"framing": "cards"}"#)
        .err()
        .unwrap();
    assert_eq!(failure.function, "codec.open");
    assert_eq!(failure.message, "`cards` is not a framing");
    assert!(
        matches!(&failure.kind, PluginFailureKind::Refused { path: Some(path), .. } if path == "/framing"),
        "{failure}"
    );
}

#[test]
fn a_plugin_of_another_kind_is_refused_by_name() {
    let refusal = |failure: PluginFailure| {
        assert_eq!(
            (failure.function.as_str(), &failure.kind),
            ("load", &PluginFailureKind::Load)
        );
        failure.message
    };
    let planned = load(EngineLimits::default(), "planned");
    assert_eq!(
        refusal(open(&planned, "{}").err().unwrap()),
        "it is a session generator, which does not implement an endpoint; name a plugin that exports \
         `endpoint-codec`"
    );
    let codec = load(EngineLimits::default(), "codec");
    assert_eq!(
        refusal(codec.workload("{}".into(), grants()).err().unwrap()),
        "it is an endpoint codec, which does not generate sessions; name it as the client's `codec`"
    );
    assert!(
        refusal(codec.flavor("{}".into(), grants()).err().unwrap())
            .starts_with("it is an endpoint codec, which does not read traces")
    );
}

#[test]
fn every_kind_of_part_arrives_as_the_guest_made_it() {
    let text = String::from;
    let tool = AnswerPart::Tool {
        index: 2,
        id: text("call"),
        name: text("f"),
        arguments: text("{\"a\": 1}"),
    };
    let usage = |cached, reasoning| {
        AnswerPart::Usage(Usage {
            prompt: 7,
            completion: 4_294_967_295,
            cached,
            reasoning,
        })
    };
    let tokens = |greedy| {
        let logarithms = vec![-0.5];
        vec![AnswerPart::LogProbabilities(TokenProbabilities {
            logarithms,
            greedy,
        })]
    };
    let cases: [(&[u8], Vec<AnswerPart>); 17] = [
        (b"role", vec![AnswerPart::Role]),
        (b"", vec![]),
        (b"reasoning hm", vec![AnswerPart::Reasoning(text("hm"))]),
        ("content é😀".as_bytes(), content("é😀")),
        (b"content \xff", content("\u{fffd}")),
        (b"tool 2 call f {\"a\": 1}", vec![tool]),
        (b"usage 7 4294967295 3 0", vec![usage(Some(3), Some(0))]),
        (b"usage 7 4294967295 - -", vec![usage(None, None)]),
        (b"signature c2ln", vec![AnswerPart::Signature(text("c2ln"))]),
        (b"log -0.5", tokens(vec![])),
        (b"log -0.5 best", tokens(vec![true])),
        (b"log -0.5 other", tokens(vec![false])),
        (b"id resp-1", vec![AnswerPart::ResponseId(text("resp-1"))]),
        (b"comment", vec![AnswerPart::Comment]),
        (
            b"error 529 busy",
            vec![AnswerPart::Error {
                message: text("busy"),
                code: Some(529),
            }],
        ),
        (
            b"error - busy",
            vec![AnswerPart::Error {
                message: text("busy"),
                code: None,
            }],
        ),
        (
            b"content x;finish stop;done",
            vec![
                AnswerPart::Content(text("x")),
                AnswerPart::Finish(text("stop")),
                AnswerPart::Done,
            ],
        ),
    ];
    let (events, expected): (Vec<&[u8]>, Vec<_>) = cases.into_iter().unzip();
    let codec = words();
    assert_eq!(codec.decode(&events).unwrap(), expected);
    for (event, expected) in events.iter().zip(&expected) {
        assert_eq!(&codec.decode(&[event]).unwrap()[0], expected, "by itself");
    }
    assert_eq!(codec.decode(&[]).unwrap(), Vec::<Vec<AnswerPart>>::new());
}

/// More events than one call accepts, by number and by bytes; the order is preserved.
#[test]
fn a_long_answer_keeps_its_order() {
    let codec = words();
    let texts: Vec<String> = (0..1000).map(|i| format!("content {i}")).collect();
    let events: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    let said = codec.decode(&events).unwrap();
    assert!(
        (0..1000)
            .zip(&said)
            .all(|(i, said)| *said == content(&i.to_string()))
    );
    assert_eq!(said.len(), 1000);

    let long = "x".repeat(200_000);
    let texts: Vec<String> = (0..9).map(|i| format!("content {i}{long}")).collect();
    let events: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    let said = codec.decode(&events).unwrap();
    assert!(
        (0..9)
            .zip(&said)
            .all(|(i, said)| *said == content(&format!("{i}{long}")))
    );
}

/// Threads do not wait for each other: during one call, another thread gets a separate instance.
#[test]
fn threads_share_a_codec_and_not_an_instance() {
    let codec = behaving(
        EngineLimits {
            call_deadline: Duration::from_millis(400),
            ..tight()
        },
        "loop",
    );
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        let stuck = scope.spawn(|| {
            barrier.wait();
            codec.decode(&[b"bad"]).unwrap_err()
        });
        barrier.wait();
        let mut answers = 0;
        while !stuck.is_finished() {
            assert_eq!(codec.decode(&[b"fine"]).unwrap(), [content("fine")]);
            answers += 1;
        }
        assert!(answers > 1, "the other thread waited");
        let failure = stuck.join().unwrap();
        assert_eq!(failure.kind, PluginFailureKind::Deadline { allowed_ms: 400 });
    });
}

/// Four threads with separate answers: each gets only its results.
#[test]
fn many_threads_read_their_own_answers() {
    let codec = words();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let codec = &codec;
            scope.spawn(move || {
                for round in 0..50 {
                    let texts: Vec<String> =
                        (0..20).map(|i| format!("content {thread}-{round}-{i}")).collect();
                    let events: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
                    let said = codec.decode(&events).unwrap();
                    for (i, said) in said.iter().enumerate() {
                        assert_eq!(*said, content(&format!("{thread}-{round}-{i}")));
                    }
                }
            });
        }
    });
}

#[test]
fn a_panic_names_the_authors_line_and_the_event() {
    let codec = behaving(tight(), "trap");
    let failure = codec.decode(&lines(600, 300)).unwrap_err();
    assert_eq!(
        (failure.plugin.as_str(), failure.function.as_str(), &failure.kind),
        ("hostile-codec", "codec.decode", &PluginFailureKind::Trap)
    );
    assert!(failure.message.ends_with("bytes were misread"), "{failure}");
    assert_eq!(
        failure.input.as_deref(),
        Some("event 301 of 600 (10 bytes): a bad line")
    );
    let source = include_str!("../../../../../tests/guests/hostile-codec/src/lib.rs");
    let line = source
        .lines()
        .position(|line| line.contains("bytes were misread"))
        .unwrap() as u32
        + 1;
    let innermost = &failure.frames[0];
    assert!(innermost.function.ends_with("misread"), "{innermost:?}");
    assert_eq!(innermost.line, Some(line), "{innermost:?}");
    for _ in 0..3 {
        assert!(codec.decode(&[b"bad"]).is_err());
        assert_eq!(
            codec.decode(&[b"fine"]).unwrap(),
            [content("fine")],
            "a fresh store"
        );
    }
}

#[test]
fn an_error_names_the_event_and_spares_the_instance() {
    let codec = behaving(tight(), "error");
    let failure = codec.decode(&lines(64, 63)).unwrap_err();
    assert_eq!(failure.message, "it is bad");
    assert!(
        matches!(&failure.kind, PluginFailureKind::Refused { code, hint: Some(hint), .. } if code == "event" && hint == "send good ones"),
        "{failure}"
    );
    assert_eq!(
        failure.input.as_deref(),
        Some("event 64 of 64 (10 bytes): a bad line")
    );
    // The excerpt of an event is bounded and printable for any event.
    let long = [&b"bad\n\xff\0 "[..], "x".repeat(1 << 20).as_bytes()].concat();
    let shown = codec.decode(&[&long]).unwrap_err().input.unwrap();
    assert!(
        shown.starts_with("event 1 of 1 (1,048,583 bytes): bad \u{fffd}"),
        "{shown}"
    );
    assert!(
        shown.chars().count() < 250 && !shown.contains(char::is_control),
        "{shown}"
    );
}

/// The search for the event is bounded: for a codec that fails on every answer, and for one that
/// fails only on many events at once, no event is named.
#[test]
fn the_event_is_looked_for_in_reason() {
    let crowd = behaving(tight(), "crowd").decode(&lines(5, 9)).unwrap_err();
    assert!(crowd.message.contains("a crowd"), "{crowd}");
    assert_eq!(
        crowd.input.as_deref(),
        Some("5 events, beginning with event 1 of 5 (4 bytes): good")
    );
    let codec = behaving(tight(), "error");
    let input = || codec.decode(&lines(4, 2)).unwrap_err().input.unwrap();
    for _ in 0..16 {
        assert_eq!(input(), "event 3 of 4 (10 bytes): a bad line");
    }
    assert_eq!(input(), "4 events, beginning with event 1 of 4 (4 bytes): good");
}

#[test]
fn results_that_do_not_fit_the_events_are_refused() {
    let why = |behaviour: &str| {
        let failure = behaving(tight(), behaviour).decode(&lines(64, 99)).unwrap_err();
        assert_eq!(failure.kind, PluginFailureKind::Result, "{behaviour}: {failure}");
        assert_eq!(failure.function, "codec.decode");
        assert!(failure.input.is_some());
        failure.message
    };
    assert_eq!(why("too-few"), "given 64 events, it returned `ends` for 63");
    assert_eq!(why("too-many"), "given 64 events, it returned `ends` for 65");
    assert_eq!(why("none"), "given 64 events, it returned `ends` for 0");
    assert_eq!(
        why("backwards"),
        "`ends` is 62 for event 1 after 63 for the one before it, and there are 64 parts"
    );
    assert_eq!(
        why("beyond"),
        "`ends` is 4,294,967,295 for event 0 after 0 for the one before it, and there are 64 parts"
    );
    assert_eq!(
        why("left-over"),
        "it returned 64 parts, and `ends` gives only 0 of them to events"
    );
    assert!(why("call-index").starts_with("a piece of call 4,294,967,295"));
    assert!(why("long-word").starts_with("the finish reason has 8,192 bytes"));
}

/// `tight` accepts 8 MiB from one call: 16 MiB of text in one event, and 500,000 parts of one
/// event, exceed that.
#[test]
fn gigantic_answers_are_refused() {
    for behaviour in ["huge", "many"] {
        let failure = behaving(tight(), behaviour).decode(&[b"x"]).unwrap_err();
        assert_eq!(failure.kind, PluginFailureKind::Result, "{failure}");
        assert_eq!(
            failure.message,
            "it handed over more data in one call than is taken (8 MiB)"
        );
    }
    // 5 MiB in each of two calls: the limit of one call also applies to all calls about an answer.
    let codec = behaving(tight(), "amplify");
    let said = codec.decode(&lines(256, 999)).unwrap();
    assert!(matches!(&said[0][..], [AnswerPart::Content(text)] if text.len() == 5 << 20));
    let failure = codec.decode(&lines(257, 999)).unwrap_err();
    assert_eq!(
        failure.message,
        "the parts of one answer exceed the limit (8 MiB)"
    );
}

#[test]
fn a_memory_bomb_meets_its_limit_and_a_leak_is_recycled() {
    let failure = behaving(tight(), "memory").decode(&[b"x"]).unwrap_err();
    assert!(
        matches!(failure.kind, PluginFailureKind::Memory { allowed, .. } if allowed == 64 << 20),
        "{failure}"
    );
    let swelling = EngineLimits {
        recycle_memory_bytes: 30 << 20,
        ..tight()
    };
    let codec = behaving(swelling, "swell");
    let calls: Vec<_> = (0..9).map(|_| codec.decode(&[b"x"]).unwrap()).collect();
    assert_eq!(calls[0], [content("1")]);
    assert!(
        calls[1..].contains(&vec![content("1")]),
        "it was never replaced: {calls:?}"
    );
}

#[test]
fn a_store_serves_so_many_calls() {
    let codec = behaving(
        EngineLimits {
            calls_per_store: 3,
            ..tight()
        },
        "calls",
    );
    let calls: Vec<_> = (0..6).map(|_| codec.decode(&[b"x"]).unwrap().remove(0)).collect();
    // The query for the endpoint was the first call of the first store.
    assert_eq!(calls, ["1", "2", "1", "2", "3", "1"].map(content));
}

#[test]
fn endpoints_that_cannot_be_spoken_to_are_refused() {
    let failing = |behaviour: &str| {
        let limits = match behaviour {
            "endpoint-loop" => EngineLimits {
                call_deadline: Duration::from_millis(200),
                ..tight()
            },
            _ => tight(),
        };
        let failure = opening(limits, behaviour).err().unwrap();
        let function = if behaviour == "open-trap" {
            "codec.open"
        } else {
            "codec.endpoint"
        };
        assert_eq!(failure.function, function, "{behaviour}: {failure}");
        failure
    };
    assert_eq!(failing("open-trap").kind, PluginFailureKind::Trap);
    assert_eq!(failing("endpoint-trap").kind, PluginFailureKind::Trap);
    assert_eq!(
        failing("endpoint-loop").kind,
        PluginFailureKind::Deadline { allowed_ms: 200 }
    );
    for (behaviour, begin) in [
        ("endpoint-path", "the path `speak HTTP/1.1\\r\\nhost: elsewhere"),
        ("endpoint-huge", "it handed over more data"),
        (
            "endpoint-header",
            "the header `transfer-encoding` is the host's to send",
        ),
        ("endpoint-headers", "the headers have 200,000 bytes"),
        ("endpoint-request", "the request must be a JSON object"),
    ] {
        let failure = failing(behaviour);
        assert_eq!(failure.kind, PluginFailureKind::Result, "{failure}");
        assert!(failure.message.starts_with(begin), "{failure}");
    }
}

#[test]
fn a_codec_logs_in_its_own_name() {
    let log = Arc::new(Kept::default());
    let grants = Grants {
        log: log.clone(),
        ..grants()
    };
    let plugin = load(tight(), "hostile-codec");
    let endpoint = plugin.codec(r#"{"behaviour": "trap"}"#.into(), grants).unwrap();
    assert_eq!(endpoint.info.granted, ["log"]);
    assert!(endpoint.codec.decode(&[b"bad"]).is_err());
    let lines = log.lines();
    assert_eq!(
        (lines[0].0.as_str(), lines[0].1),
        ("hostile-codec", LogLevel::Error)
    );
}

/// The example codec in the repository, built with the Rust SDK.
#[test]
fn the_example_reads_an_answer_of_its_server() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../plugins/dist/ollama.wasm");
    let plugin = engine(EngineLimits::default())
        .load("ollama", &std::fs::read(path).unwrap())
        .unwrap();
    assert_eq!(plugin.imports(), ["log"], "only for the message of a panic");
    let endpoint = open(&plugin, r#"{"options": {"num_ctx": 8192}}"#).unwrap();
    assert_eq!(
        (endpoint.shape.path.as_str(), endpoint.shape.framing),
        ("api/chat", Framing::Lines)
    );
    let events: [&[u8]; 3] = [
        br#"{"model":"m","created_at":"2025-10-26T17:21:21.196249Z","message":{"role":"assistant","content":" Yes"},"done":false}"#,
        br#"{"model":"m","created_at":"2025-10-26T17:21:21.207235Z","message":{"role":"assistant","content":"."},"done":false}"#,
        br#"{"model":"m","created_at":"2025-10-26T17:21:21.219166Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":26,"eval_count":2}"#,
    ];
    let usage = Usage {
        prompt: 26,
        completion: 2,
        cached: None,
        reasoning: None,
    };
    let end = vec![
        AnswerPart::Finish("stop".into()),
        AnswerPart::Usage(usage),
        AnswerPart::Done,
    ];
    assert_eq!(
        endpoint.codec.decode(&events).unwrap(),
        [content(" Yes"), content("."), end]
    );
    let failure = endpoint.codec.decode(&[events[0], b"<html>"]).unwrap_err();
    assert!(
        failure
            .message
            .starts_with("the event does not fit: expected value"),
        "{failure}"
    );
    assert_eq!(failure.input.as_deref(), Some("event 2 of 2 (6 bytes): <html>"));
    let refused = open(&plugin, r#"{"api": "chatt"}"#).err().unwrap();
    assert!(
        matches!(&refused.kind, PluginFailureKind::Refused { hint: Some(hint), path: Some(path), .. }
            if hint == "did you mean `chat`?" && path == "/api"),
        "{refused}"
    );
}
