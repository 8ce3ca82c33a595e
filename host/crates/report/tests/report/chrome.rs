//! The Chrome trace, read back as JSON.

use std::collections::BTreeMap;

use serde_json::Value;
use veeksha_events::{Event, NeverSentReason, PluginCall, RequestRecord, SessionEnd, Status};
use veeksha_model::{Chunk, ChunkKind, ErrorClass, NodeId, RequestId, SessionId, ToolRunRecord};
use veeksha_report::{ChromeTrace, ChromeTraceLimits};

use crate::record::record;

const MILLI: u64 = 1_000_000;

fn id_of(session: u64, node: u32) -> RequestId {
    RequestId {
        session: SessionId(session),
        node: NodeId(node),
    }
}

/// Intended at 100 ms, dispatched at 110 ms, generated chunks at these milliseconds.
fn answered(session: u64, node: u32, chunks: &[u64]) -> RequestRecord {
    let at = |millis: u64, kind| Chunk {
        at: millis * MILLI,
        lag: 0,
        bytes: 1,
        kind,
        merged: false,
    };
    let mut all = vec![at(111, ChunkKind::Role)];
    all.extend(chunks.iter().map(|millis| at(*millis, ChunkKind::Content)));
    RequestRecord {
        id: id_of(session, node),
        intended: 100 * MILLI,
        dispatched_at: 110 * MILLI,
        completed_at: chunks.last().copied().unwrap_or(120) * MILLI + 5,
        chunks: all,
        status: Status::Ok {
            finish_reason: "stop".into(),
        },
        total_prompt_tokens: 128,
        output_tokens: chunks.len() as u32,
        ..record(session)
    }
}

fn finished(record: RequestRecord) -> Event {
    Event::Finished(Box::new(record))
}

fn written(limits: ChromeTraceLimits, events: &[Event]) -> Vec<Value> {
    let mut trace = ChromeTrace::new(limits);
    events.iter().for_each(|event| trace.on(event));
    let mut bytes = Vec::new();
    trace.write(&mut bytes).unwrap();
    // The parser takes strict JSON only.
    serde_json::from_slice::<Vec<Value>>(&bytes).unwrap()
}

fn of<'a>(events: &'a [Value], pid: u64, phase: &str) -> Vec<&'a Value> {
    let matches = |event: &&Value| event["pid"] == pid && event["ph"] == phase;
    events.iter().filter(matches).collect()
}

fn names(events: &[&Value]) -> Vec<String> {
    events
        .iter()
        .map(|event| event["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The name of the thread that an event belongs to.
fn thread<'a>(events: &'a [Value], event: &Value) -> &'a str {
    let names = |other: &&Value| other["name"] == "thread_name" && other["tid"] == event["tid"];
    let told: Vec<&Value> = events.iter().filter(names).collect();
    assert_eq!(told.len(), 1, "{event}");
    assert_eq!(told[0]["pid"], event["pid"]);
    told[0]["args"]["name"].as_str().unwrap()
}

/// Returns an instant or a length in whole nanoseconds, as a reader that truncates would.
fn nanos(micros: &Value) -> i64 {
    (micros.as_f64().unwrap() * 1000.0) as i64
}

fn end(event: &Value) -> f64 {
    event["ts"].as_f64().unwrap() + event["dur"].as_f64().unwrap()
}

#[test]
fn request_lane_has_wait_prefill_and_chunks() {
    let events = written(
        ChromeTraceLimits::default(),
        &[finished(answered(7, 2, &[150, 160, 190]))],
    );
    let slices = of(&events, 1, "X");
    assert_eq!(names(&slices), ["Wait", "Prefill", "T1", "T2"]);
    for slice in &slices {
        assert_eq!(thread(&events, slice), "R0 / 7 / 128->3");
    }
    // Microseconds since the run's start. Prefill ends with the first token: its length is the time
    // to first chunk.
    let times: Vec<(i64, i64)> = slices
        .iter()
        .map(|slice| (nanos(&slice["ts"]), nanos(&slice["dur"])))
        .collect();
    assert_eq!(
        times,
        [
            (100_000_000, 10_000_000),
            (110_000_000, 40_000_000),
            (150_000_000, 10_000_000),
            (160_000_000, 30_000_000)
        ]
    );
    let arguments = &slices[1]["args"];
    assert_eq!(arguments["request_id"], "7/2");
    assert_eq!(
        (&arguments["ttfc"], &arguments["end_to_end_latency"]),
        (&0.04.into(), &0.08.into())
    );
    assert_eq!(arguments["error_class"], Value::Null);
}

#[test]
fn tool_call_and_unstreamed_answer_end_with_the_finish_event() {
    let finish = |at: u64| Chunk {
        at: at * MILLI,
        lag: 0,
        bytes: 1,
        kind: ChunkKind::Finish,
        merged: false,
    };
    let mut tool_call = answered(0, 0, &[150, 160]);
    for chunk in tool_call.chunks.iter_mut().skip(1) {
        chunk.kind = ChunkKind::Tool;
    }
    tool_call.chunks.push(finish(190));
    let mut unstreamed = answered(1, 0, &[]);
    unstreamed.output_tokens = 5;
    unstreamed.chunks = vec![finish(170)];
    let events = written(
        ChromeTraceLimits::default(),
        &[finished(tool_call), finished(unstreamed)],
    );
    let slices = of(&events, 1, "X");
    assert_eq!(
        names(&slices),
        ["Wait", "Prefill", "T1", "Finish", "Wait", "Answer"]
    );
    assert_eq!(
        (nanos(&slices[3]["ts"]), nanos(&slices[3]["dur"])),
        (160_000_000, 30_000_000)
    );
    assert_eq!(slices[1]["args"]["end_to_end_latency"], 0.08);
    assert_eq!(nanos(&slices[5]["dur"]), 60_000_000);
    assert_eq!(slices[5]["args"]["ttfc"], Value::Null);
    assert_eq!(slices[5]["args"]["end_to_end_latency"], 0.06);
}

#[test]
fn slices_of_a_lane_are_contiguous() {
    let mut events = Vec::new();
    for session in 0..20 {
        let begin = 150 + session * 3;
        events.push(finished(answered(
            session,
            0,
            &[begin, begin, begin + 7, begin + 9],
        )));
        events.push(finished(answered(session, 1, &[])));
    }
    let events = written(ChromeTraceLimits::default(), &events);
    let mut ends: BTreeMap<u64, i64> = BTreeMap::new();
    for slice in of(&events, 1, "X") {
        let (begin, length) = (nanos(&slice["ts"]), nanos(&slice["dur"]));
        let before = ends.insert(slice["tid"].as_u64().unwrap(), begin + length);
        assert!(begin >= before.unwrap_or(0) && length >= 0, "{slice}");
    }
    assert_eq!(ends.len(), 40, "each request has a separate lane");
}

#[test]
fn failed_request_ends_at_its_error() {
    let failed = RequestRecord {
        status: Status::Failed {
            class: ErrorClass::Timeout,
            message: "no \"first\" byte\nin 30 s \u{1}".into(),
        },
        ..answered(1, 0, &[])
    };
    let completed = failed.completed_at as f64 / 1e3;
    let events = written(ChromeTraceLimits::default(), &[finished(failed)]);
    let slices = of(&events, 1, "X");
    assert_eq!(names(&slices), ["Wait", "Prefill"]);
    assert!((end(slices[1]) - completed).abs() < 1e-3);
    assert_eq!(
        slices[1]["args"]["error_message"],
        "no \"first\" byte\nin 30 s \u{1}"
    );
    assert_eq!(slices[1]["args"]["ttfc"], Value::Null);
    assert_eq!(names(&of(&events, 1, "i")), ["timeout"]);
}

#[test]
fn sessions_plugins_and_marks_have_separate_processes() {
    let session = SessionId(3);
    let events = written(
        ChromeTraceLimits::default(),
        &[
            Event::SessionFinished {
                session,
                at: 90 * MILLI,
                end: SessionEnd::Errored,
                requests: 4,
            },
            Event::SessionStarted {
                session,
                at: 20 * MILLI,
                requests: 2,
            },
            Event::PluginCalled(PluginCall {
                thread: "plugin-0".into(),
                what: "sessions 0..64".into(),
                begin: 5 * MILLI,
                end: 7 * MILLI,
            }),
            Event::NeverSent {
                request: id_of(3, 1),
                reason: NeverSentReason::RunEnded,
                at: 80 * MILLI,
            },
            Event::TimeoutReached { at: 70 * MILLI },
        ],
    );
    let sessions = of(&events, 2, "X");
    assert_eq!(names(&sessions), ["errored"]);
    assert_eq!(
        (nanos(&sessions[0]["ts"]), nanos(&sessions[0]["dur"])),
        (20_000_000, 70_000_000)
    );
    assert_eq!(thread(&events, sessions[0]), "session 3");
    let plugins = of(&events, 3, "X");
    assert_eq!(
        (thread(&events, plugins[0]), &plugins[0]["name"]),
        ("plugin-0", &"sessions 0..64".into())
    );
    assert_eq!(names(&of(&events, 2, "i")), ["3/1 never sent: run_ended"]);
    let run = of(&events, 4, "i");
    assert_eq!(names(&run), ["benchmark_timeout reached"]);
    assert_eq!((&run[0]["s"], nanos(&run[0]["ts"])), (&"g".into(), 70_000_000));
    let processes: Vec<&Value> = events
        .iter()
        .filter(|event| event["name"] == "process_name")
        .map(|event| &event["args"]["name"])
        .collect();
    assert_eq!(processes, ["requests", "sessions", "plugins", "run", "tools"]);
}

/// A run of `class` from `ready` over `started` to `completed`, in milliseconds.
fn ran(node: u32, class: &str, [ready, started, completed]: [u64; 3]) -> Event {
    Event::ToolRan(Box::new(ToolRunRecord {
        id: id_of(3, node),
        class: class.into(),
        parents: Vec::new(),
        ready_at: ready * MILLI,
        started_at: started * MILLI,
        completed_at: completed * MILLI,
        is_cold: node == 1,
        failed: false,
        result_tokens: 9,
        measured: true,
        labels: [].into(),
    }))
}

#[test]
fn tool_runs_have_a_thread_for_each_at_once() {
    let events = written(
        ChromeTraceLimits::default(),
        &[
            ran(2, "sandbox", [20, 50, 60]),
            ran(1, "sandbox", [10, 10, 50]),
            ran(3, "sandbox", [50, 50, 70]),
            ran(4, "search", [50, 50, 55]),
        ],
    );
    let slices = of(&events, 5, "X");
    let shown: Vec<String> = slices
        .iter()
        .map(|slice| format!("{} {}", thread(&events, slice), slice["name"].as_str().unwrap()))
        .collect();
    assert_eq!(
        shown,
        [
            "sandbox 1 3/1",
            "sandbox 1 Service",
            "sandbox 2 3/2",
            "sandbox 2 Waiting",
            "sandbox 2 Service",
            "sandbox 1 3/3",
            "sandbox 1 Service",
            "search 1 3/4",
            "search 1 Service",
        ]
    );
    assert_eq!(nanos(&slices[3]["dur"]), 30_000_000);
    assert_eq!(slices[0]["args"]["cold"], true);
}

#[test]
fn truncated_record_shows_open_entries() {
    let events = written(
        ChromeTraceLimits::default(),
        &[
            Event::SessionStarted {
                session: SessionId(0),
                at: 0,
                requests: 1,
            },
            // Received after its end: it is not open.
            finished(answered(9, 0, &[150])),
            Event::Dispatched {
                request: id_of(9, 0),
                intended: 100 * MILLI,
                at: 110 * MILLI,
            },
            Event::Dispatched {
                request: id_of(0, 0),
                intended: 0,
                at: 2 * MILLI,
            },
        ],
    );
    let open: Vec<&Value> = of(&events, 1, "X")
        .into_iter()
        .filter(|slice| slice["name"] == "Unfinished")
        .collect();
    assert_eq!(open.len(), 1);
    // Up to the last known instant: the completion of the other one.
    assert_eq!(nanos(&open[0]["ts"]), 2_000_000);
    assert!((end(open[0]) - 150_000.005).abs() < 1e-3);
    assert_eq!(names(&of(&events, 2, "X")), ["unfinished"]);
}

#[test]
fn long_run_is_limited_and_counts_omissions() {
    let limits = ChromeTraceLimits {
        entries: 3,
        chunks: 5,
    };
    let events: Vec<Event> = (0..10)
        .map(|session| finished(answered(session, 0, &[150, 160, 170])))
        .collect();
    let events = written(limits, &events);
    let slices = of(&events, 1, "X");
    let count = |name: &str| names(&slices).iter().filter(|other| *other == name).count();
    // Two gaps each: the first two requests have theirs, the third one a single slice.
    assert_eq!(
        (count("Prefill"), count("T1"), count("T2"), count("Decode")),
        (3, 2, 2, 1)
    );
    let told = events
        .iter()
        .find(|event| event["name"] == "veeksha_host")
        .unwrap();
    let arguments = &told["args"];
    assert_eq!(
        (
            &arguments["requests_left_out"],
            &arguments["requests_without_chunks"]
        ),
        (&7.into(), &1.into())
    );
}

/// A small run with every kind of event.
fn run() -> Vec<Event> {
    let mut events = Vec::new();
    for session in 0..6u64 {
        let id = SessionId(session);
        events.push(Event::SessionStarted {
            session: id,
            at: session * MILLI,
            requests: 2,
        });
        events.push(Event::Dispatched {
            request: id_of(session, 0),
            intended: 100 * MILLI,
            at: 110 * MILLI,
        });
        events.push(finished(answered(session, 0, &[150 + session, 160 + session])));
        events.push(Event::PluginCalled(PluginCall {
            thread: format!("plugin-{}", session % 2),
            what: format!("sessions {session}..{}", session + 1),
            begin: session * MILLI,
            end: (session + 1) * MILLI,
        }));
        events.push(Event::NeverSent {
            request: id_of(session, 1),
            reason: NeverSentReason::Held,
            at: 170 * MILLI,
        });
        events.push(Event::SessionFinished {
            session: id,
            at: 180 * MILLI,
            end: SessionEnd::Incomplete,
            requests: 2,
        });
    }
    events.extend((0..5).map(|node| ran(node, "sandbox", [10, 10 + u64::from(node), 30])));
    events.push(Event::RunEnded { at: 200 * MILLI });
    events
}

#[test]
fn event_order_does_not_matter() {
    let events = run();
    let straight = written(ChromeTraceLimits::default(), &events);
    let backwards: Vec<Event> = events.iter().rev().cloned().collect();
    assert_eq!(straight, written(ChromeTraceLimits::default(), &backwards));
    // Every seventh event, then the next ones: a different order.
    let strides: Vec<Event> = (0..7)
        .flat_map(|first| events.iter().skip(first).step_by(7).cloned())
        .collect();
    assert_eq!(straight, written(ChromeTraceLimits::default(), &strides));
}

#[test]
fn accepts_any_prefix_of_events() {
    let events = run();
    for length in 0..=events.len() {
        let seen = written(ChromeTraceLimits::default(), &events[..length]);
        let open = of(&seen, 1, "X")
            .iter()
            .filter(|slice| slice["name"] == "Unfinished")
            .count();
        let told =
            |matches: fn(&Event) -> bool| events[..length].iter().filter(|event| matches(event)).count();
        let dispatched = told(|event| matches!(event, Event::Dispatched { .. }));
        let ended = told(|event| matches!(event, Event::Finished(_)));
        assert_eq!(open, dispatched - ended, "{length}");
    }
}

/// Checks a file against the description of the format: every phase is known and has its required
/// members, every thread and process has one name, and slices of a thread follow each other or are
/// nested.
#[track_caller]
fn keeps_the_format(events: &[Value]) {
    let mut stacks: BTreeMap<(u64, u64), Vec<i64>> = BTreeMap::new();
    let mut named: BTreeMap<(&str, u64, Option<u64>), u32> = BTreeMap::new();
    for event in events {
        let phase = event["ph"].as_str().unwrap();
        let name = event["name"].as_str().unwrap();
        let pid = event["pid"].as_u64().unwrap();
        if phase == "M" {
            assert!(event["args"].is_object(), "{event}");
            *named.entry((name, pid, event["tid"].as_u64())).or_default() += 1;
            continue;
        }
        let tid = event["tid"].as_u64().unwrap();
        assert!(named.contains_key(&("process_name", pid, None)), "{event}");
        assert!(named.contains_key(&("thread_name", pid, Some(tid))), "{event}");
        assert!(
            event["ts"].as_f64().unwrap() >= 0.0 && event["cat"].is_string(),
            "{event}"
        );
        match phase {
            "X" => {
                let (begin, length) = (nanos(&event["ts"]), nanos(&event["dur"]));
                assert!(length >= 0, "{event}");
                let stack = stacks.entry((pid, tid)).or_default();
                while stack.last().is_some_and(|end| *end <= begin) {
                    stack.pop();
                }
                // An earlier unfinished slice contains all of it.
                assert!(stack.last().is_none_or(|end| begin + length <= *end), "{event}");
                stack.push(begin + length);
            }
            other => {
                assert_eq!(other, "i", "{event}");
                assert!(["g", "p", "t"].contains(&event["s"].as_str().unwrap()), "{event}");
            }
        }
    }
    assert!(named.values().all(|times| *times == 1), "{named:?}");
    let mut tids: Vec<u64> = named.keys().filter_map(|(_, _, tid)| *tid).collect();
    tids.sort_unstable();
    // A name and a sort index each, and no number in two processes.
    assert!(tids.chunks(2).all(|pair| pair[0] == pair[1]) && tids.windows(3).all(|some| some[0] < some[2]));
}

#[test]
fn written_trace_has_valid_format() {
    keeps_the_format(&written(ChromeTraceLimits::default(), &run()));
    // Instants of which binary fractions of a microsecond are now too large and now too small.
    let odd = (0..500).map(|session| {
        let at = |number: u64| 1_234_567 * session + 37 * number * number + 111_111_111;
        let chunk = |number| Chunk {
            at: at(number),
            lag: 0,
            bytes: 1,
            kind: ChunkKind::Content,
            merged: false,
        };
        finished(RequestRecord {
            intended: at(0) - 2_001,
            dispatched_at: at(0) - 999,
            completed_at: at(9),
            chunks: (0..9).map(chunk).collect(),
            ..answered(session, 0, &[])
        })
    });
    keeps_the_format(&written(ChromeTraceLimits::default(), &odd.collect::<Vec<_>>()));
    // Calls of one plugin thread, nested.
    let call = |what: &str, begin, end| {
        Event::PluginCalled(PluginCall {
            thread: "plugin-0".into(),
            what: what.into(),
            begin,
            end,
        })
    };
    let calls = [
        call("outer", 1_001, 9_003),
        call("inner", 2_003, 3_007),
        call("next", 9_003, 9_005),
    ];
    keeps_the_format(&written(ChromeTraceLimits::default(), &calls));
}

#[test]
fn empty_run_is_a_valid_trace() {
    let events = written(ChromeTraceLimits::default(), &[]);
    assert!(!events.is_empty());
    assert!(events.iter().all(|event| event["ph"] == "M"));
}
