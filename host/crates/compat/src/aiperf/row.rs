//! A row of `profile_export.jsonl`: `MetricRecordInfo` of `aiperf/common/models/record_models.py`.

use serde_json::{Map, Value, json};
use veeksha_model::{ErrorClass, Nanos, RequestRecord, Status};

use super::catalogue::{INTER_CHUNK, ISSUED, RECORD_METRICS, ValueKind};
use super::facts::RequestFacts;
use super::results;
use crate::options::Threshold;
use crate::report::number;
use crate::sample::GapPool;

/// Worker name: AIPerf writes the name of its worker process here.
const WORKER: &str = "veeksha-host";

/// Returns the line with its line end. `run_id` is the id of the run, if it has one; `epoch` is the
/// wall clock at the run's zero.
pub(super) fn line(
    record: &RequestRecord,
    run_id: Option<&str>,
    epoch: u64,
    goodput: &[Threshold],
) -> Vec<u8> {
    let mut pool = GapPool::default();
    let facts = RequestFacts::of(record, &mut pool);
    let mut metrics = Map::new();
    for metric in &RECORD_METRICS {
        let value = match metric.tag {
            tag if ISSUED.contains(&tag) => None,
            INTER_CHUNK if pool.len() > 0 => {
                let gaps = (0..pool.len()).map(|at| pool.get(at) as f64 / metric.per);
                Some(Value::Array(gaps.map(|gap| number(Some(gap))).collect()))
            }
            _ => metric.value(&facts).map(|value| match metric.kind {
                ValueKind::Whole | ValueKind::Error => Value::from(value as u64),
                ValueKind::Real | ValueKind::Latency => number(Some(value)),
            }),
        };
        if let Some(value) = value {
            metrics.insert(
                metric.tag.to_owned(),
                json!({ "value": value, "unit": metric.unit }),
            );
        }
    }
    if let Some(good) = results::good(&facts, goodput).filter(|_| !goodput.is_empty()) {
        let value = json!({ "value": u64::from(good), "unit": "requests" });
        metrics.insert("good_request_count".into(), value);
    }
    let mut row = json!({
        "metadata": metadata(record, &facts, run_id, epoch),
        "metrics": metrics,
    });
    let wanted = record.status != Status::CancelledByClient;
    if let (true, Some(row)) = (facts.error && wanted, row.as_object_mut()) {
        row.insert("error".into(), error(record));
    }
    let mut line = row.to_string().into_bytes();
    line.push(b'\n');
    line
}

fn metadata(record: &RequestRecord, facts: &RequestFacts, run_id: Option<&str>, epoch: u64) -> Value {
    let wall = |at: Nanos| epoch.saturating_add(at);
    let session = record.id.session.to_string();
    let cancelled = matches!(
        record.status,
        Status::CancelledByClient
            | Status::Failed {
                class: ErrorClass::Cancelled,
                ..
            }
    );
    let mut metadata = json!({
        "session_num": record.id.session.0,
        "x_request_id": run_id.map_or_else(|| record.id.to_string(), |run| format!("{run}/{}", record.id)),
        "x_correlation_id": session,
        "conversation_id": session,
        "root_correlation_id": session,
        "turn_index": record.id.node.0,
        "credit_issued_ns": wall(facts.issued),
        "request_start_ns": wall(facts.start),
        "request_end_ns": wall(facts.end),
        "worker_id": WORKER,
        "record_processor_id": WORKER,
        "benchmark_phase": "profiling",
        "phase_index": 0,
        "was_cancelled": cancelled,
        "context_overflow_skip": false,
        "agent_depth": 0,
    });
    if let Some(metadata) = metadata.as_object_mut() {
        if let Some(ack) = record.first_byte_at {
            metadata.insert("request_ack_ns".into(), wall(ack).into());
        }
        if cancelled {
            metadata.insert("cancellation_time_ns".into(), wall(record.completed_at).into());
        }
    }
    metadata
}

fn error(record: &RequestRecord) -> Value {
    match &record.status {
        Status::Ok { .. } | Status::CancelledByClient => json!({
            "type": "InvalidInferenceResultError",
            "message": super::state::NO_CONTENT,
        }),
        Status::Failed { class, message } => {
            let mut error = json!({ "type": class.name(), "message": message });
            let status = record.http_status.filter(|status| !(200..300).contains(status));
            if let (Some(status), Some(error)) = (status, error.as_object_mut()) {
                error.insert("code".into(), status.into());
            }
            error
        }
    }
}
