//! The two tables.

use veeksha_events::Event;
use veeksha_model::RequestRecord;

use crate::table::table;

table! {
    /// `requests.parquet`: all data of each request that was sent. Names are those of
    /// `request_level_metrics.jsonl`; times are in nanoseconds and have the suffix `_ns`.
    RequestColumns, RequestRows of RequestRecord, "requests", 14 later:
    position: Required<Int>, Delta;
    session_id: Required<Int>, Delta;
    node_id: Required<Int>, Delta;
    session_total_requests: Required<Int>, Dictionary;
    parents: List<Int>, Dictionary;
    history_parent: Optional<Int>, Dictionary;
    wait_after_ready_ns: Required<Int>, Dictionary;
    scheduler_ready_at_ns: Required<Int>, Delta;
    held_by_sessions_ns: Required<Int>, Dictionary;
    held_by_in_flight_ns: Required<Int>, Dictionary;
    held_by_prefill_ns: Required<Int>, Dictionary;
    scheduler_dispatched_at_ns: Required<Int>, Delta;
    client_picked_up_at_ns: Optional<Int>, Delta;
    sent_at_ns: Optional<Int>, Delta;
    first_byte_at_ns: Optional<Int>, Delta;
    client_completed_at_ns: Required<Int>, Delta;
    result_processed_at_ns: Required<Int>, Delta;
    /// Finish reason; only of an answered request.
    finish_reason: Optional<Utf8>, Dictionary;
    /// Of a failed request only.
    error_class: Optional<Utf8>, Dictionary;
    /// Of a failed request only.
    error_message: Optional<Utf8>, Dictionary;
    http_status: Optional<Int>, Dictionary;
    target_num_delta_prompt_tokens: Required<Int>, Dictionary;
    num_delta_prompt_tokens: Required<Int>, Dictionary;
    num_total_prompt_tokens: Required<Int>, Dictionary;
    num_template_tokens: Required<Int>, Dictionary;
    num_requested_output_tokens: Optional<Int>, Dictionary;
    num_output_tokens: Required<Int>, Dictionary;
    output_tokens_from_usage: Required<Flag>, Plain;
    /// Null together with `usage_completion_tokens`: no usage came.
    usage_prompt_tokens: Optional<Int>, Dictionary;
    usage_completion_tokens: Optional<Int>, Dictionary;
    usage_cached_tokens: Optional<Int>, Dictionary;
    usage_reasoning_tokens: Optional<Int>, Dictionary;
    server: Required<Int>, Dictionary;
    connection_reused: Required<Flag>, Plain;
    resolve_ns: Optional<Int>, Dictionary;
    connect_ns: Optional<Int>, Dictionary;
    tls_ns: Optional<Int>, Dictionary;
    retried: Required<Flag>, Plain;
    measured: Required<Flag>, Plain;
    history_mode: Required<Utf8>, Dictionary;
    /// True if the request comes from a trace; the next four columns hold the recorded data.
    was_recorded: Required<Flag>, Plain;
    recorded_at_ns: Optional<Int>, Delta;
    recorded_latency_ns: Optional<Int>, Delta;
    recorded_prompt_tokens: Optional<Int>, Dictionary;
    recorded_output_tokens: Optional<Int>, Dictionary;
    ideal_cached_tokens: Optional<Int>, Dictionary;
    /// As long as `label_values`.
    label_names: List<Utf8>, Dictionary;
    label_values: List<Utf8>, Dictionary;
    arrival_stamps: Required<Utf8>, Dictionary;
    /// Of each event of the stream; the next four are as long.
    chunk_at_ns: List<Int>, Delta;
    chunk_lag_ns: List<Int>, Delta;
    chunk_bytes: List<Int>, Dictionary;
    /// Codes that the file's metadata explain.
    chunk_kind: List<Code>, Dictionary;
    chunk_merged: List<Flag>, Plain;
    /// Tokens of each generated chunk, or empty: one each, or not known.
    chunk_tokens: List<Int>, Dictionary;
    /// True if the requested output tokens are exact, false if they are an upper limit. The first
    /// files of version 1 do not have this column.
    output_exact: Optional<Flag>, Plain;
    /// XXH3 (64 bits) of the request's body. The first files of version 1 do not have this column.
    body_digest: Optional<Digest>, Plain;
    /// The awaited event of each parent, or empty: the end of each. The first files of version 1 do
    /// not have this column and the next.
    parent_triggers: List<Utf8>, Dictionary;
    /// The delay after the event of each parent, or empty: none.
    parent_delays_ns: List<Int>, Dictionary;
    /// The first files of version 1 do not have this column.
    response_id: Optional<Utf8>, Plain;
    /// 32 hexadecimal digits. The first files of version 1 do not have this column.
    trace_id: Optional<Utf8>, Plain;
    /// True for a request that its workload cancelled, null for all others. The first files of
    /// version 1 do not have this column and the next four.
    cancelled_by_client: Optional<Flag>, Plain;
    /// The nodes whose events cancel the request; the next two are as for parents.
    cancel_nodes: List<Int>, Dictionary;
    cancel_triggers: List<Utf8>, Dictionary;
    cancel_delays_ns: List<Int>, Dictionary;
    cancel_after_chunks: Optional<Int>, Dictionary;
    /// The first files of version 1 do not have this column and the next two.
    known_to_server_tokens: Optional<Int>, Dictionary;
    known_to_any_server_tokens: Optional<Int>, Dictionary;
    moved_tokens: Optional<Int>, Dictionary;
}

table! {
    /// `events.parquet`: all other events. The column `event` holds the kind, named as in
    /// `traces/trace.jsonl`; columns that a kind does not have are null.
    EventColumns, EventRows of Event, "events", 10 later:
    position: Required<Int>, Delta;
    event: Required<Utf8>, Dictionary;
    /// Instant of the event; for `dispatched`, when the request was handed over.
    at_ns: Optional<Int>, Delta;
    session_id: Optional<Int>, Delta;
    node_id: Optional<Int>, Delta;
    /// Of `session_started` and `session_finished`: the session's requests.
    requests: Optional<Int>, Dictionary;
    /// Of `arrivals_missed`.
    sessions: Optional<Int>, Dictionary;
    /// Of `session_planned`.
    digest: Optional<Digest>, Plain;
    /// Of `dispatched`: the instant that the schedule asked for; of `tool_ran` and `tool_dropped`:
    /// of the call.
    intended_ns: Optional<Int>, Delta;
    /// Of `starved`: when the session was due.
    due_ns: Optional<Int>, Delta;
    /// Of `never_sent` and `tool_dropped`.
    reason: Optional<Utf8>, Dictionary;
    /// Of `session_finished`: how.
    end: Optional<Utf8>, Dictionary;
    thread: Optional<Utf8>, Dictionary;
    /// Of `plugin_called`, and the next two; of `plugin_failed`: what the plugin did (`metric`,
    /// `request_check`, `slo_check`, `workload`); of `tool_ran`, and the next two: the class, and
    /// of `tool_dropped`.
    what: Optional<Utf8>, Dictionary;
    begin_ns: Optional<Int>, Delta;
    end_ns: Optional<Int>, Delta;
    /// Of `thread_sampled`, and the next two.
    span_ns: Optional<Int>, Dictionary;
    busy_ns: Optional<Int>, Dictionary;
    waiting_ns: Optional<Int>, Dictionary;
    /// Of `clock_stepped`.
    by_ns: Optional<Int>, Dictionary;
    /// Of `run_started`: the wall clock at zero, since 1970.
    epoch_unix_ns: Optional<Int>, Dictionary;
    /// Of `run_started`: the machine's monotonic clock at zero.
    epoch_monotonic_ns: Optional<Int>, Dictionary;
    /// Of `metric_defined` and `sampled`; of `run_judged`: the verdict's name.
    metric: Optional<Utf8>, Dictionary;
    unit: Optional<Utf8>, Dictionary;
    better: Optional<Utf8>, Dictionary;
    /// For `metric_defined`; for `run_judged`, the verdict's detail; for `plugin_failed`, the
    /// message.
    summary: Optional<Utf8>, Dictionary;
    plugin: Optional<Utf8>, Dictionary;
    /// Of `sampled`, and the next; of `run_judged`: what was observed.
    value: Optional<Float>, Plain;
    weight: Optional<Float>, Dictionary;
    /// Of `judged`; of `run_judged`: whether the verdict is met; of `tool_ran`: false if it failed.
    good: Optional<Flag>, Plain;
    /// Of `run_judged`. The first files of version 1 do not have this column.
    threshold: Optional<Float>, Plain;
    /// Of `run_started`. The first files of version 1 do not have this column.
    run_id: Optional<Utf8>, Dictionary;
    /// Of `tool_ran`, and the rest. The first files of version 1 do not have these columns.
    result_tokens: Optional<Int>, Dictionary;
    cold: Optional<Flag>, Plain;
    measured: Optional<Flag>, Plain;
    parents: List<Int>, Dictionary;
    /// As those of requests.
    parent_triggers: List<Utf8>, Dictionary;
    parent_delays_ns: List<Int>, Dictionary;
    label_names: List<Utf8>, Dictionary;
    label_values: List<Utf8>, Dictionary;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use veeksha_definitions::REQUEST_FIELDS;

    use super::RequestColumns;
    use crate::table::TableColumns;

    /// A column that is not in the table of fields is undocumented, and a field that should have
    /// one is not recorded.
    #[test]
    fn columns_are_those_of_the_field_table() {
        let schema = RequestColumns::schema().unwrap();
        let mut columns: BTreeSet<&str> = schema.get_fields().iter().map(|column| column.name()).collect();
        assert!(columns.remove("position"), "the place of the event in the run");
        let declared = REQUEST_FIELDS.iter().filter_map(|field| field.column);
        assert_eq!(columns, declared.collect());
    }
}
