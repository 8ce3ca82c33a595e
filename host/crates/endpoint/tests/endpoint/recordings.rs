//! Recorded answers of servers, whole and split at every position. The expected values were derived
//! from the files with another parser (split at blank lines, a JSON library), not with this crate.

use proptest::prelude::*;
use veeksha_endpoint::{AnswerOutcome, EndpointKind, whole_answer};
use veeksha_model::{ErrorClass, Usage};

use crate::support::{bytes_of as fixture, letters, parse_as, stamp};

/// File, text, usage (prompt, completion, cached), one letter per event.
/// r role, c content, R reasoning, f finish, u usage, D `[DONE]`.
type Good = (
    &'static str,
    &'static str,
    Option<(u32, u32, Option<u32>)>,
    &'static str,
);

const GOOD: [Good; 28] = [
    (
        "dynamo-chat-mct.sse",
        "arecache '%",
        Some((28, 3, Some(0))),
        "cccfuD",
    ),
    (
        "dynamo-chat-stream-contusage.sse",
        "8859RO directorychars",
        Some((28, 4, Some(0))),
        "ccccfuD",
    ),
    (
        "dynamo-chat-stream-logprobs.sse",
        " {}enerator finally",
        Some((28, 3, Some(0))),
        "cccfuD",
    ),
    (
        "dynamo-chat-stream-n2.sse",
        " handlelias may",
        Some((28, 3, Some(0))),
        "cccfuD",
    ),
    (
        "dynamo-chat-stream-nousage.sse",
        "leaseENT ac follow",
        None,
        "ccccfD",
    ),
    (
        "dynamo-chat-stream.sse",
        "portedsrcince called Errorcondstarts copy",
        Some((28, 8, Some(0))),
        "ccccccccfuD",
    ),
    (
        "dynamo-cmpl-ids.sse",
        "varitoken kwargs",
        Some((4, 3, Some(0))),
        "cccfuD",
    ),
    (
        "dynamo-cmpl-stream-logprobs.sse",
        "varioptations",
        Some((4, 3, Some(0))),
        "cccfuD",
    ),
    (
        "dynamo-cmpl-stream.sse",
        "=\" (\"indent execauized",
        Some((4, 6, Some(0))),
        "ccccccfuD",
    ),
    (
        "llamacpp-chat-mct.sse",
        "cket outreduce",
        Some((28, 3, Some(27))),
        "rcccfuD",
    ),
    (
        "llamacpp-chat-stream-contusage.sse",
        "load disund eval",
        Some((28, 4, Some(27))),
        "rccccfuD",
    ),
    (
        "llamacpp-chat-stream-logprobs.sse",
        "`. assertcomp",
        Some((28, 3, Some(27))),
        "rcccfuD",
    ),
    // The other choice comes first, and its usage before this choice's last text.
    (
        "llamacpp-chat-stream-n2.sse",
        " prompt// executable",
        Some((28, 3, Some(27))),
        "rrrcrcrrucfuD",
    ),
    (
        "llamacpp-chat-stream-nousage.sse",
        " optionthonclass math",
        None,
        "rccccfD",
    ),
    (
        "llamacpp-chat-stream.sse",
        "comppythonforeick TextDIR roundingDIR",
        Some((28, 8, Some(0))),
        "rccccccccfuD",
    ),
    (
        "llamacpp-cmpl-ids.sse",
        " 4\u{5} st",
        Some((4, 3, Some(0))),
        "cccfD",
    ),
    (
        "llamacpp-cmpl-stream-logprobs.sse",
        " theyvedcket",
        Some((4, 3, Some(3))),
        "cccfD",
    ),
    (
        "llamacpp-cmpl-stream.sse",
        " Python reonlyrgumentCATEexception",
        Some((4, 6, Some(0))),
        "ccccccfD",
    ),
    ("llamacpp-err-model.json", " enviltindigest", None, "rcccfD"),
    (
        "vllm-chat-mct.sse",
        " specificLOBAL self",
        Some((28, 3, Some(0))),
        "rcccuD",
    ),
    (
        "vllm-chat-stream-contusage.sse",
        "SP waitunt ",
        Some((28, 4, Some(0))),
        "rccccuD",
    ),
    (
        "vllm-chat-stream-logprobs.sse",
        "his trydu",
        Some((28, 3, Some(0))),
        "rcccuD",
    ),
    // vLLM's usage is the sum over both choices.
    (
        "vllm-chat-stream-n2.sse",
        " per msgprecationWarning",
        Some((28, 6, Some(0))),
        "rrccrcrruD",
    ),
    ("vllm-chat-stream-nousage.sse", "details can',std", None, "rccccD"),
    (
        "vllm-chat-stream.sse",
        " io must io must io must io must",
        Some((28, 8, Some(0))),
        "rccccccccuD",
    ),
    (
        "vllm-cmpl-ids.sse",
        "condsDING supplied",
        Some((4, 3, Some(0))),
        "cccuD",
    ),
    (
        "vllm-cmpl-stream-logprobs.sse",
        "valuesresponse,-",
        Some((4, 3, Some(0))),
        "cccuD",
    ),
    (
        "vllm-cmpl-stream.sse",
        "heritSIONcli__(cal (_",
        Some((4, 6, Some(0))),
        "ccccccuD",
    ),
];

fn bytes_of(name: &str) -> Vec<u8> {
    fixture(&format!("sse/{name}"))
}

/// Parses the pieces as one read each, at the times 1, 2, ...
fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> AnswerOutcome {
    parse_as(&EndpointKind::ChatCompletions, pieces)
}

/// Splits a recording in two at `at` and compares the result with the whole, except for the
/// differences that the split must cause.
fn check_cut(name: &str, bytes: &[u8], at: usize, whole: &AnswerOutcome) {
    let cut = parse([&bytes[..at], &bytes[at..]]);
    assert_eq!(cut.result, whole.result, "{name} cut at {at}");
    assert_eq!(letters(&cut), letters(whole), "{name} cut at {at}");
    // The recordings separate events with LF LF, so the number of blank lines in the first part is
    // the number of events that it completed.
    let completed = bytes[..at].windows(2).filter(|pair| pair == b"\n\n").count();
    for (index, (chunk, expected)) in cut.chunks.iter().zip(&whole.chunks).enumerate() {
        assert_eq!(chunk.bytes, expected.bytes);
        assert_eq!(
            chunk.at,
            if index < completed { 1 } else { 2 },
            "{name} cut at {at}: event {index}"
        );
        assert_eq!(
            chunk.merged,
            index != 0 && index != completed,
            "{name} cut at {at}: event {index}"
        );
    }
}

#[test]
fn every_good_recording_gives_its_text_usage_and_events() {
    for (name, text, usage, events) in GOOD {
        let verdict = parse([&bytes_of(name)[..]]);
        let response = verdict
            .result
            .as_ref()
            .unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        assert_eq!(response.text, text, "{name}");
        assert_eq!(response.reasoning, "", "{name}");
        assert_eq!(response.finish_reason, "length", "{name}");
        let expected = usage.map(|(prompt, completion, cached)| Usage {
            prompt,
            completion,
            cached,
            reasoning: None,
        });
        assert_eq!(response.usage, expected, "{name}");
        assert_eq!(response.output_tokens, usage.map_or(0, |usage| usage.1), "{name}");
        assert_eq!(letters(&verdict), events, "{name}");
    }
}

#[test]
fn every_good_recording_is_the_same_at_every_cut() {
    for (name, ..) in GOOD {
        let bytes = bytes_of(name);
        let whole = parse([&bytes[..]]);
        for at in 0..=bytes.len() {
            check_cut(name, &bytes, at, &whole);
        }
    }
}

#[test]
fn reasoning_is_kept_apart() {
    let bytes = bytes_of("vllm-reasoning.sse");
    let verdict = parse([&bytes[..]]);
    let response = verdict.result.clone().unwrap();
    assert_eq!(response.reasoning, " equivalent stdinrangeABLESP");
    assert_eq!(response.text, "");
    assert_eq!(
        response.usage,
        Some(Usage {
            prompt: 12,
            completion: 5,
            cached: Some(0),
            reasoning: Some(0)
        })
    );
    assert_eq!(letters(&verdict), "rRRRRRuD");
    for at in 0..=bytes.len() {
        check_cut("vllm-reasoning.sse", &bytes, at, &verdict);
    }
}

#[test]
fn killed_worker_is_a_failure_despite_done() {
    let bytes = bytes_of("dynamo-worker-killed.sse");
    let verdict = parse([&bytes[..]]);
    let failure = verdict.result.clone().unwrap_err();
    assert_eq!(failure.class, ErrorClass::InStream);
    assert_eq!(failure.status, Some(503));
    assert_eq!(failure.message, "Service temporarily unavailable");
    // 248 data lines: 246 texts, the error, [DONE].
    assert_eq!(letters(&verdict), "c".repeat(246));
    assert_eq!(verdict.completed_at, Some(1));
    // 54 kB: every split of the last 2 kB, where the error is, and some others.
    for at in (0..bytes.len())
        .step_by(997)
        .chain(bytes.len() - 2_000..=bytes.len())
    {
        let cut = parse([&bytes[..at], &bytes[at..]]);
        assert_eq!(
            (cut.result, cut.chunks.len()),
            (verdict.result.clone(), 246),
            "cut at {at}"
        );
    }
}

#[test]
fn recordings_without_a_finish_reason_are_truncated_wherever_they_end() {
    let cancelled = bytes_of("vllm-cancel.sse");
    let toolong = bytes_of("dynamo-toolong.http");
    let body = toolong.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    for (bytes, events) in [(&cancelled[..], 141), (&toolong[body..], 3)] {
        let verdict = parse([bytes]);
        assert_eq!(verdict.result.unwrap_err().class, ErrorClass::Truncated);
        assert_eq!(verdict.chunks.len(), events);
    }
    // A valid recording that ends before its finish event: an incomplete event is neither an event
    // nor an error.
    let good = bytes_of("llamacpp-chat-stream.sse");
    let finish = good
        .windows(24)
        .position(|part| part == b"{\"finish_reason\":\"length")
        .unwrap();
    for end in 1..finish {
        let failure = parse([&good[..end]]).result.unwrap_err();
        assert!(
            matches!(failure.class, ErrorClass::Truncated | ErrorClass::Protocol),
            "{end}: {failure:?}"
        );
        if end > 300 {
            assert_eq!(failure.class, ErrorClass::Truncated, "{end}: {failure:?}");
        }
    }
}

#[test]
fn answers_that_were_not_streamed_are_one_chunk() {
    let cases = [
        ("dynamo-chat.json", " OS flag change logceptionvars", 28),
        ("dynamo-cmpl.json", " containnexthash until should case", 4),
        ("llamacpp-chat.json", " optionMTP mailboxbits complexMessage", 28),
        ("llamacpp-cmpl.json", "auCATEauass', implementation", 4),
        ("vllm-chat.json", " corspacepolluration fieldstart", 28),
        ("vllm-cmpl.json", " contents down\u{fffd}ipupdateComp", 4),
    ];
    for (name, text, prompt) in cases {
        let bytes = bytes_of(name);
        let verdict = whole_answer(&EndpointKind::ChatCompletions, stamp(7), &bytes);
        let response = verdict
            .result
            .clone()
            .unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        assert_eq!(response.text, text, "{name}");
        assert_eq!(response.finish_reason, "length", "{name}");
        assert_eq!(
            response.usage.map(|usage| (usage.prompt, usage.completion)),
            Some((prompt, 6)),
            "{name}"
        );
        assert_eq!(letters(&verdict), "f", "{name}");
        assert_eq!(
            (verdict.chunks[0].at, verdict.chunks[0].bytes as usize),
            (7, bytes.len()),
            "{name}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any recording, with any line ends, in reads of any sizes.
    #[test]
    fn any_reads_and_line_ends_give_the_same_answer(
        which in 0..GOOD.len(),
        line_end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
        sizes in prop::collection::vec(1usize..400, 1..30),
        pings in any::<bool>(),
    ) {
        let (name, text, _, events) = GOOD[which];
        let recorded = String::from_utf8(bytes_of(name)).unwrap();
        // A keep-alive before each event, as in llama.cpp.
        let recorded = if pings { recorded.replace("data: ", ":\n\ndata: ") } else { recorded };
        let bytes = recorded.replace('\n', line_end).into_bytes();
        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        for size in sizes.iter().cycle() {
            if rest.is_empty() { break; }
            let (piece, left) = rest.split_at((*size).min(rest.len()));
            pieces.push(piece);
            rest = left;
        }
        let reads = pieces.len() as u64;
        let verdict = parse(pieces);
        let response = verdict.result.clone().unwrap();
        prop_assert_eq!(response.text, text);
        prop_assert_eq!(letters(&verdict).replace(':', ""), events);
        prop_assert_eq!(letters(&verdict).matches(':').count(), if pings { events.len() } else { 0 });
        prop_assert!(verdict.chunks.iter().all(|chunk| (1..=reads).contains(&chunk.at)));
        for pair in verdict.chunks.windows(2) {
            prop_assert!(pair[0].at <= pair[1].at);
            prop_assert_eq!(pair[1].merged, pair[0].at == pair[1].at);
        }
    }

    /// Any input gives a result and no panic.
    #[test]
    fn damaged_recordings_get_a_verdict(which in 0..GOOD.len(), at in 0usize..1_000, byte in any::<u8>(), cut in 0usize..1_000) {
        let mut bytes = bytes_of(GOOD[which].0);
        let at = at % bytes.len();
        bytes[at] = byte;
        let cut = cut % bytes.len();
        let (one, two) = (parse([&bytes[..]]), parse([&bytes[..cut], &bytes[cut..]]));
        prop_assert_eq!(one.result, two.result);
    }
}
