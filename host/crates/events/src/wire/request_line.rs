//! The rows of `metrics/request_level_metrics.jsonl`.

use serde::Serialize;
use veeksha_model::{Label, StampSource};

use super::seconds;
use crate::wire::latencies::Latencies;
use crate::{RequestRecord, Status};

/// Veeksha's keys of `request_level_metrics.jsonl`, followed by the fields that Veeksha does not
/// have. A request without tokens has `null` latencies, never 0.
#[derive(Serialize)]
struct RequestLine<'a> {
    request_id: String,
    session_id: u64,
    node_id: u32,
    session_total_requests: u32,
    parents: Vec<u32>,
    history_parent: Option<u32>,
    wait_after_ready: f64,
    success: bool,
    measured: bool,
    error_class: Option<&'a str>,
    error_message: Option<&'a str>,
    http_status: Option<u16>,
    finish_reason: Option<&'a str>,
    scheduler_ready_at: f64,
    scheduler_dispatched_at: f64,
    client_picked_up_at: Option<f64>,
    sent_at: Option<f64>,
    first_byte_at: Option<f64>,
    client_completed_at: f64,
    result_processed_at: f64,
    num_delta_prompt_tokens: u32,
    num_total_prompt_tokens: u32,
    target_num_delta_prompt_tokens: u32,
    num_output_tokens: Option<u32>,
    num_requested_output_tokens: Option<u32>,
    num_total_tokens: Option<u64>,
    num_chunks: usize,
    output_tokens_source: Option<&'static str>,
    usage_prompt_tokens: Option<u32>,
    usage_completion_tokens: Option<u32>,
    usage_cached_tokens: Option<u32>,
    usage_reasoning_tokens: Option<u32>,
    is_stream: bool,
    ttfc: Option<f64>,
    ttfc_from_intended: Option<f64>,
    tpot: Option<f64>,
    end_to_end_latency: Option<f64>,
    e2e_from_intended: Option<f64>,
    normalized_end_to_end_latency: Option<f64>,
    output_throughput: Option<f64>,
    tbc: &'a [f64],
    merged_chunks: usize,
    arrival_stamps: &'static str,
    client_lag: Option<f64>,
    held_seconds: f64,
    held_by_sessions: f64,
    held_by_in_flight: f64,
    held_by_prefill: f64,
    server: u16,
    connection_reused: bool,
    resolve_seconds: Option<f64>,
    connect_seconds: Option<f64>,
    tls_seconds: Option<f64>,
    retried: bool,
    history_mode: &'static str,
    num_template_tokens: u32,
    recorded_at: Option<f64>,
    recorded_latency: Option<f64>,
    recorded_prompt_tokens: Option<u32>,
    recorded_output_tokens: Option<u32>,
    ideal_cached_tokens: Option<u32>,
    #[serde(skip_serializing_if = "<[Label]>::is_empty")]
    labels: &'a [Label],
}

/// Appends the line of `metrics/request_level_metrics.jsonl` for a record, without the newline. The
/// caller computes the latencies, so that each has one definition: see [`Latencies`]. After an
/// error, `line` may end with an incomplete line.
pub fn request_line(
    line: &mut Vec<u8>,
    record: &RequestRecord,
    latencies: &Latencies,
) -> serde_json::Result<()> {
    let (finish_reason, class, message) = match &record.status {
        Status::Ok { finish_reason } => (Some(finish_reason.as_str()), None, None),
        Status::Failed { class, message } => (None, Some(class.name()), Some(message.as_str())),
    };
    let usage = record.usage;
    let recorded = record.recorded.unwrap_or_default();
    let chunks = record.generated_at().count();
    // The tokens of an answer that broke off were not counted, which is different from 0.
    let uncounted = !record.is_ok() && record.output_tokens == 0 && chunks > 0;
    let output_tokens = (!uncounted).then_some(record.output_tokens);
    let row = RequestLine {
        request_id: record.id.to_string(),
        session_id: record.id.session.0,
        node_id: record.id.node.0,
        session_total_requests: record.session_requests,
        parents: record.parents.iter().map(|parent| parent.0).collect(),
        history_parent: record.history_parent.map(|parent| parent.0),
        wait_after_ready: seconds(record.wait_after_ready),
        success: record.is_ok(),
        measured: record.measured,
        error_class: class,
        error_message: message,
        http_status: record.http_status,
        finish_reason,
        scheduler_ready_at: seconds(record.intended),
        scheduler_dispatched_at: seconds(record.dispatched_at),
        client_picked_up_at: record.picked_up_at.map(seconds),
        sent_at: record.sent_at.map(seconds),
        first_byte_at: record.first_byte_at.map(seconds),
        client_completed_at: seconds(record.completed_at),
        result_processed_at: seconds(record.processed_at),
        num_delta_prompt_tokens: record.prompt_tokens,
        num_total_prompt_tokens: record.total_prompt_tokens,
        target_num_delta_prompt_tokens: record.target_prompt_tokens,
        num_output_tokens: output_tokens,
        num_requested_output_tokens: record.target_output_tokens,
        num_total_tokens: output_tokens
            .map(|tokens| u64::from(record.total_prompt_tokens) + u64::from(tokens)),
        num_chunks: chunks,
        output_tokens_source: (record.output_tokens > 0).then_some(if record.output_tokens_from_usage {
            "usage"
        } else {
            "tokenizer"
        }),
        usage_prompt_tokens: usage.map(|usage| usage.prompt),
        usage_completion_tokens: usage.map(|usage| usage.completion),
        usage_cached_tokens: usage.and_then(|usage| usage.cached),
        usage_reasoning_tokens: usage.and_then(|usage| usage.reasoning),
        is_stream: record.is_stream(),
        ttfc: latencies.ttfc,
        ttfc_from_intended: latencies.ttfc_from_intended,
        tpot: latencies.tpot,
        end_to_end_latency: latencies.end_to_end,
        e2e_from_intended: latencies.end_to_end_from_intended,
        normalized_end_to_end_latency: latencies.normalized_end_to_end,
        output_throughput: latencies.output_throughput,
        tbc: &latencies.tbc,
        merged_chunks: record.chunks.iter().filter(|chunk| chunk.merged).count(),
        arrival_stamps: record.stamps.name(),
        client_lag: longest_lag(record),
        held_seconds: seconds(record.held.total()),
        held_by_sessions: seconds(record.held.sessions),
        held_by_in_flight: seconds(record.held.in_flight),
        held_by_prefill: seconds(record.held.in_prefill),
        server: record.server,
        connection_reused: record.connection_reused,
        resolve_seconds: record.resolve.map(seconds),
        connect_seconds: record.connect.map(seconds),
        tls_seconds: record.tls.map(seconds),
        retried: record.retried,
        history_mode: record.history_mode.name(),
        num_template_tokens: record.template_tokens,
        recorded_at: recorded.at.map(seconds),
        recorded_latency: recorded.latency.map(seconds),
        recorded_prompt_tokens: recorded.prompt_tokens,
        recorded_output_tokens: recorded.output_tokens,
        ideal_cached_tokens: record.ideal_cached_tokens,
        labels: &record.labels,
    };
    serde_json::to_writer(line, &row)
}

/// The longest that an event of the answer waited in the kernel before it was read; a read's own
/// time does not show that.
fn longest_lag(record: &RequestRecord) -> Option<f64> {
    if record.stamps == StampSource::Read {
        return None;
    }
    let longest = record.chunks.iter().map(|chunk| chunk.lag).max();
    longest.map(|lag| seconds(u64::from(lag)))
}

#[cfg(test)]
mod tests {
    use veeksha_model::{Chunk, ErrorClass, Held, HistoryMode, Recorded};

    use super::*;
    use crate::wire::sample::record;

    fn row(record: &RequestRecord, latencies: &Latencies) -> serde_json::Value {
        serde_json::from_str(&line_of(record, latencies)).unwrap()
    }

    fn line_of(record: &RequestRecord, latencies: &Latencies) -> String {
        let mut line = Vec::new();
        request_line(&mut line, record, latencies).unwrap();
        String::from_utf8(line).unwrap()
    }

    /// The keys that Veeksha's users read (its `request_level_metrics.jsonl`).
    #[test]
    fn request_line_has_veekshas_keys() {
        let latencies = Latencies {
            ttfc: Some(0.5),
            tbc: vec![0.1, 0.2],
            ..Latencies::default()
        };
        let row = row(&record(), &latencies);
        let expected = serde_json::json!({
            "request_id": "17/2", "session_id": 17, "session_total_requests": 3,
            "scheduler_ready_at": 1.000000001, "scheduler_dispatched_at": 1.000000002,
            "client_picked_up_at": 1.000000003, "client_completed_at": 2.0, "result_processed_at": 2.000000001,
            "num_delta_prompt_tokens": 99, "num_total_prompt_tokens": u32::MAX,
            "target_num_delta_prompt_tokens": 100, "num_output_tokens": 7, "num_requested_output_tokens": 8,
            "num_total_tokens": u64::from(u32::MAX) + 7, "is_stream": true, "tpot": null, "ttfc": 0.5,
            "end_to_end_latency": null, "normalized_end_to_end_latency": null, "output_throughput": null,
            "tbc": [0.1, 0.2],
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
        let seen = row(&replayed, &Latencies::default());
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(seen.get(key), Some(value), "{key}");
        }
        // A request that is not from a trace has the same keys, set to null.
        let seen = row(&record(), &Latencies::default());
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
        let seen = row(&held, &Latencies::default());
        let expected = serde_json::json!({
            "held_seconds": 1.75, "held_by_sessions": 1.0, "held_by_in_flight": 0.25, "held_by_prefill": 0.5,
            "server": 2, "resolve_seconds": 0.0015, "arrival_stamps": "kernel", "client_lag": 0.000035,
        });
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(seen.get(key), Some(value), "{key}");
        }
        // Read times do not show how late the read was.
        held.stamps = StampSource::Read;
        let seen = row(&held, &Latencies::default());
        assert_eq!(
            (&seen["arrival_stamps"], &seen["client_lag"]),
            (&"read".into(), &serde_json::Value::Null)
        );
        held.stamps = StampSource::Kernel;
        held.chunks.clear();
        assert_eq!(
            row(&held, &Latencies::default())["client_lag"],
            serde_json::Value::Null
        );
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
        let line = line_of(&record, &Latencies::default());
        assert!(!line.contains('\n'), "a row is one line");
        let row = row(&record, &Latencies::default());
        assert_eq!(
            (&row["success"], &row["error_class"]),
            (&false.into(), &"truncated".into())
        );
        assert_eq!(row["error_message"], message);
        assert_eq!(
            (&row["ttfc"], &row["output_tokens_source"]),
            (&serde_json::Value::Null, &serde_json::Value::Null)
        );
        assert_eq!(row["tbc"], serde_json::json!([]));
        // Received chunks are counted; their tokens are unknown. Without chunks there were 0
        // tokens.
        assert!(record.generated_at().count() > 0);
        assert_eq!(row["num_chunks"], record.generated_at().count());
        assert!(row["num_output_tokens"].is_null() && row["num_total_tokens"].is_null());
        record.chunks.clear();
        let silent = self::row(&record, &Latencies::default());
        assert_eq!(
            (&silent["num_output_tokens"], &silent["num_chunks"]),
            (&0.into(), &0.into())
        );
    }
}
