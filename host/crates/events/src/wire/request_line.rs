//! The rows of `metrics/request_level_metrics.jsonl`.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use veeksha_definitions::{FieldValue, FinishedRequest, REQUEST_FIELDS};
use veeksha_model::RequestRecord;

/// Appends the line of `metrics/request_level_metrics.jsonl` for a record, without the newline: the
/// keys of [`REQUEST_FIELDS`]. A request without tokens has `null` latencies, never 0. After an
/// error, `line` may end with an incomplete line.
pub fn request_line(line: &mut Vec<u8>, record: &RequestRecord) -> serde_json::Result<()> {
    let request = FinishedRequest::new(record);
    let mut serializer = serde_json::Serializer::new(line);
    let mut row = serializer.serialize_map(None)?;
    for field in REQUEST_FIELDS {
        let Some(key) = field.key else { continue };
        match field.value(&request) {
            // Most workloads have no labels.
            FieldValue::Labels([]) => {}
            value => row.serialize_entry(key, &Json(&value))?,
        }
    }
    row.end()
}

/// A field as JSON.
struct Json<'a>(&'a FieldValue<'a>);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            FieldValue::Absent => serializer.serialize_none(),
            FieldValue::Flag(flag) => flag.serialize(serializer),
            FieldValue::Count(count) => count.serialize(serializer),
            FieldValue::Number(number) => number.serialize(serializer),
            FieldValue::Text(text) => text.serialize(serializer),
            FieldValue::Name(name) => name.serialize(serializer),
            FieldValue::Counts(counts) => counts.serialize(serializer),
            FieldValue::Numbers(numbers) => numbers.serialize(serializer),
            FieldValue::Names(names) => names.serialize(serializer),
            FieldValue::Labels(labels) => labels.serialize(serializer),
            FieldValue::Usage(usage) => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("prompt", &usage.prompt)?;
                map.serialize_entry("completion", &usage.completion)?;
                map.serialize_entry("cached", &usage.cached)?;
                map.serialize_entry("reasoning", &usage.reasoning)?;
                map.end()
            }
            FieldValue::Recorded(recorded) => {
                let seconds = |nanos: Option<u64>| nanos.map(veeksha_model::seconds);
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("at", &seconds(recorded.at))?;
                map.serialize_entry("latency", &seconds(recorded.latency))?;
                map.serialize_entry("prompt_tokens", &recorded.prompt_tokens)?;
                map.serialize_entry("output_tokens", &recorded.output_tokens)?;
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use veeksha_model::{Chunk, ErrorClass, Held, HistoryMode, Recorded, StampSource};

    use super::*;
    use crate::Status;
    use crate::wire::sample::record;

    fn row(record: &RequestRecord) -> serde_json::Value {
        serde_json::from_str(&line_of(record)).unwrap()
    }

    fn line_of(record: &RequestRecord) -> String {
        let mut line = Vec::new();
        request_line(&mut line, record).unwrap();
        String::from_utf8(line).unwrap()
    }

    /// The keys that Veeksha's users read (its `request_level_metrics.jsonl`).
    #[test]
    fn request_line_has_veekshas_keys() {
        let row = row(&record());
        let expected = serde_json::json!({
            "request_id": "17/2", "session_id": 17, "session_total_requests": 3,
            "scheduler_ready_at": 1.000000001, "scheduler_dispatched_at": 1.000000002,
            "client_picked_up_at": 1.000000003, "client_completed_at": 2.0, "result_processed_at": 2.000000001,
            "num_delta_prompt_tokens": 99, "num_total_prompt_tokens": u32::MAX,
            "target_num_delta_prompt_tokens": 100, "num_output_tokens": 7, "num_requested_output_tokens": 8,
            "num_total_tokens": u64::from(u32::MAX) + 7, "is_stream": true, "tpot": null, "ttfc": 0.499999998,
            "end_to_end_latency": 0.499999998, "e2e_from_intended": 0.499999999,
            "tbc": [],
            "success": true, "finish_reason": "length", "error_class": null, "parents": [0, 1],
            "history_parent": 1, "wait_after_ready": 0.25, "merged_chunks": 1, "usage_cached_tokens": 16,
            "usage_reasoning_tokens": null, "output_tokens_source": "usage", "labels": [["tier", "gold"]],
        });
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(row.get(key), Some(value), "{key}");
        }
    }

    #[test]
    fn request_line_has_recorded_values() {
        let mut replayed = record();
        replayed.history_mode = HistoryMode::Recorded;
        replayed.template_tokens = 11;
        replayed.ideal_cached_tokens = Some(64);
        replayed.recorded = Some(Recorded {
            at: Some(1_500_000_000),
            latency: Some(250_000_000),
            prompt_tokens: Some(118),
            output_tokens: None,
        });
        let expected = serde_json::json!({
            "history_mode": "recorded", "num_template_tokens": 11, "recorded_at": 1.5, "recorded_latency": 0.25,
            "recorded_prompt_tokens": 118, "recorded_output_tokens": null, "ideal_cached_tokens": 64,
        });
        let seen = row(&replayed);
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(seen.get(key), Some(value), "{key}");
        }
        // A request that is not from a trace has the same keys, set to null.
        let seen = row(&record());
        assert_eq!(seen["history_mode"], "live");
        for key in [
            "recorded_at",
            "recorded_latency",
            "recorded_prompt_tokens",
            "ideal_cached_tokens",
        ] {
            assert_eq!(seen.get(key), Some(&serde_json::Value::Null), "{key}");
        }
    }

    #[test]
    fn request_line_has_held_times_and_stamps() {
        let mut held = record();
        held.held = Held {
            sessions: 1_000_000_000,
            in_flight: 250_000_000,
            in_prefill: 500_000_000,
        };
        held.server = 2;
        held.resolve = Some(1_500_000);
        held.stamps = StampSource::Kernel;
        held.chunks[0].lag = 20_000;
        held.chunks.push(Chunk {
            lag: 35_000,
            ..held.chunks[0]
        });
        let seen = row(&held);
        let expected = serde_json::json!({
            "held_seconds": 1.75, "held_by_sessions": 1.0, "held_by_in_flight": 0.25, "held_by_prefill": 0.5,
            "server": 2, "resolve_seconds": 0.0015, "arrival_stamps": "kernel", "client_lag": 0.000035,
        });
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(seen.get(key), Some(value), "{key}");
        }
        // Read times do not show how late the read was.
        held.stamps = StampSource::Read;
        let seen = row(&held);
        assert_eq!(
            (&seen["arrival_stamps"], &seen["client_lag"]),
            (&"read".into(), &serde_json::Value::Null)
        );
        held.stamps = StampSource::Kernel;
        held.chunks.clear();
        assert_eq!(row(&held)["client_lag"], serde_json::Value::Null);
    }

    #[test]
    fn failed_request_has_class_and_message() {
        let message = "a \"quoted\" line\nand another".to_owned();
        let mut record = record();
        record.status = Status::Failed {
            class: ErrorClass::Truncated,
            message: message.clone(),
        };
        record.output_tokens = 0;
        let line = line_of(&record);
        assert!(!line.contains('\n'), "a row is one line");
        let row = row(&record);
        assert_eq!(
            (&row["success"], &row["error_class"]),
            (&false.into(), &"truncated".into())
        );
        assert_eq!(row["error_message"], message);
        assert!(row["output_tokens_source"].is_null() && row["end_to_end_latency"].is_null());
        // Received chunks are counted; their tokens are unknown. Without chunks there were 0
        // tokens.
        assert!(record.generated_at().count() > 0);
        assert_eq!(row["num_chunks"], record.generated_at().count());
        assert!(row["num_output_tokens"].is_null() && row["num_total_tokens"].is_null());
        record.chunks.clear();
        let silent = self::row(&record);
        assert_eq!(
            (&silent["num_output_tokens"], &silent["num_chunks"]),
            (&0.into(), &0.into())
        );
        assert!(silent["ttfc"].is_null());
        assert_eq!(silent["tbc"], serde_json::json!([]));
    }
}
