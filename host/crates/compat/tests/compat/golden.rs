//! Shared by the tests: the golden sequence, and the comparison of a view with a tool's output.

use serde_json::Value;
use veeksha_events::{Event, RunInfo};
use veeksha_model::{ChunkKind, ErrorClass, Usage};

use crate::fixture::{Request, record};

/// Wall clock at the run's zero in the fixtures.
pub(crate) const EPOCH: u64 = 1_000_000_000;

pub(crate) fn fixture(name: &str) -> String {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn fixture_json(name: &str) -> Value {
    serde_json::from_str(&fixture(name)).unwrap()
}

/// Returns the golden sequence.
pub(crate) fn golden() -> Vec<Event> {
    events("golden.json")
}

/// Returns the events of a sequence of requests.
pub(crate) fn events(name: &str) -> Vec<Event> {
    let requests = fixture_json(name);
    let mut events = vec![Event::RunStarted(RunInfo {
        epoch_wall_nanos: EPOCH,
        ..RunInfo::default()
    })];
    for request in requests.as_array().unwrap() {
        events.push(Event::Finished(Box::new(record(&read(request)))));
    }
    events.push(Event::RunEnded { at: 3_000_000_000 });
    events
}

fn read(value: &Value) -> Request {
    let number = |key: &str| value[key].as_f64();
    let count = |value: &Value| value.as_u64().map(|count| count as u32);
    let mut request = Request::at(
        value["session"].as_u64().unwrap(),
        ["intended", "dispatched", "begun", "sent"].map(|key| number(key).unwrap()),
    );
    request.node = count(&value["node"]).unwrap();
    let (mut tokens, mut events): (Vec<u32>, Vec<_>) = (Vec::new(), Vec::new());
    for event in value["events"].as_array().unwrap() {
        let kind = match event[1].as_str().unwrap() {
            "role" => ChunkKind::Role,
            "reasoning" => ChunkKind::Reasoning,
            "content" => ChunkKind::Content,
            "tool" => ChunkKind::Tool,
            "finish" => ChunkKind::Finish,
            "usage" => ChunkKind::Usage,
            "done" => ChunkKind::Done,
            other => panic!("{other}"),
        };
        if kind.is_generated() {
            tokens.push(count(&event[2]).unwrap());
        }
        events.push((event[0].as_f64().unwrap(), kind, event[3] == true));
    }
    // As recorded by the host: empty where each chunk carried one token.
    if tokens.iter().any(|&tokens| tokens != 1) {
        request.chunk_tokens = tokens;
    }
    let last = events.last().map_or(0.0, |event| event.0);
    request.chunks = events;
    request.completed = number("completed").unwrap_or(last);
    request.template = count(&value["template"]).unwrap();
    request.prompt = count(&value["prompt"]).unwrap();
    request.target = count(&value["target"]);
    request.http_status = count(&value["http"]).map(|status| status as u16);
    request.measured = value["measured"] == true;
    request.output = count(&value["output"]).unwrap();
    let usage = &value["usage"];
    request.usage = usage.as_object().map(|_| Usage {
        prompt: count(&usage["prompt"]).unwrap(),
        completion: count(&usage["completion"]).unwrap(),
        cached: count(&usage["cached"]),
        reasoning: count(&usage["reasoning"]),
    });
    request.from_usage = request.usage.is_some();
    let class = match value["status"].as_str().unwrap() {
        "ok" => None,
        "status" => Some(ErrorClass::Status),
        "truncated" => Some(ErrorClass::Truncated),
        "in_stream" => Some(ErrorClass::InStream),
        "cancelled" => Some(ErrorClass::Cancelled),
        other => panic!("{other}"),
    };
    let message: &'static str = String::leak(value["message"].as_str().unwrap_or_default().to_owned());
    request.failed = class.map(|class| (class, message));
    let connection = &value["connection"];
    request.reused = connection.is_null();
    request.resolve = connection["resolve"].as_f64();
    request.connect = connection["connect"].as_f64();
    request.tls = connection["tls"].as_f64();
    request
}

/// Returns the paths at which two JSON values differ, with both values. Numbers may differ by
/// rounding.
pub(crate) fn differences(path: &str, seen: &Value, expected: &Value) -> Vec<String> {
    match (seen, expected) {
        (Value::Object(seen), Value::Object(expected)) => {
            let keys: std::collections::BTreeSet<_> = seen.keys().chain(expected.keys()).collect();
            let of = |key: &String| {
                let sides = (seen.get(key), expected.get(key));
                match sides {
                    (Some(seen), Some(expected)) => differences(&format!("{path}.{key}"), seen, expected),
                    (seen, expected) => vec![format!("{path}.{key}: {seen:?} instead of {expected:?}")],
                }
            };
            keys.into_iter().flat_map(of).collect()
        }
        (Value::Array(seen), Value::Array(expected)) if seen.len() == expected.len() => {
            let pairs = seen.iter().zip(expected).enumerate();
            pairs
                .flat_map(|(at, (seen, expected))| differences(&format!("{path}[{at}]"), seen, expected))
                .collect()
        }
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            let close = (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1e-3);
            if close {
                Vec::new()
            } else {
                vec![format!("{path}: {one} instead of {other}")]
            }
        }
        (seen, expected) if seen == expected => Vec::new(),
        (seen, expected) => vec![format!("{path}: {seen} instead of {expected}")],
    }
}
