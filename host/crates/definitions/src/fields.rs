//! The fields of a finished request: one table for files, languages and documentation.

use std::cell::OnceCell;

use veeksha_model::{
    Edge, ErrorClass, Label, Nanos, Recorded, RequestRecord, StampSource, Status, Trigger, Usage, seconds,
};

use crate::cache_classes::CacheClass;
use crate::chunks::gaps;
use crate::observation::Observation;
use crate::table::Metric;

/// A field of a finished request. [`REQUEST_FIELDS`] has all of them.
#[derive(Clone, Copy)]
pub struct RequestField {
    /// Key in `metrics/request_level_metrics.jsonl`.
    pub key: Option<&'static str>,
    /// Column in `record/requests.parquet`.
    pub column: Option<&'static str>,
    /// Name in Lua; with dashes, also the name in the contract, which packs some fields
    /// differently. Those of [`further`](Self::further) have the same name there.
    pub name: Option<&'static str>,
    /// Meaning and unit: Markdown, for the documentation.
    pub about: &'static str,
    value: for<'a> fn(&FinishedRequest<'a>) -> FieldValue<'a>,
}

impl RequestField {
    /// Returns the field's value.
    pub fn value<'a>(&self, request: &FinishedRequest<'a>) -> FieldValue<'a> {
        (self.value)(request)
    }

    /// Returns the field with this name in Lua.
    pub fn named(name: &str) -> Option<&'static RequestField> {
        REQUEST_FIELDS.iter().find(|field| field.name == Some(name))
    }

    /// Returns all names in Lua.
    pub fn names() -> impl Iterator<Item = &'static str> {
        REQUEST_FIELDS.iter().filter_map(|field| field.name)
    }

    /// Returns the fields without a dedicated column in the contract: plugins get them among its
    /// `further` columns.
    pub fn further() -> impl Iterator<Item = &'static RequestField> {
        FURTHER.iter().copied().filter_map(RequestField::named)
    }
}

/// The names of the fields that became part of a request after the contract was settled.
const FURTHER: [&str; 7] = [
    "cache_reused_tokens",
    "cache_evicted_tokens",
    "cache_rerouted_tokens",
    "cache_changed_tokens",
    "cache_new_tokens",
    "response_id",
    "trace_id",
];

/// The value of a field. Times are in seconds.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue<'a> {
    /// The field does not exist.
    Absent,
    /// True or false.
    Flag(bool),
    /// A count, an index or an id.
    Count(u64),
    /// A measured value.
    Number(f64),
    /// Text.
    Text(&'a str),
    /// Text that is formatted on demand.
    Name(String),
    /// A list of counts.
    Counts(Vec<u32>),
    /// A list of measured values.
    Numbers(Vec<f64>),
    /// A list of names.
    Names(Vec<&'static str>),
    /// The labels.
    Labels(&'a [Label]),
    /// The server's token counts.
    Usage(Usage),
    /// Measurements from a recorded trace.
    Recorded(Recorded),
}

impl From<Option<f64>> for FieldValue<'_> {
    fn from(value: Option<f64>) -> Self {
        value.map_or(FieldValue::Absent, FieldValue::Number)
    }
}

impl From<Option<u32>> for FieldValue<'_> {
    fn from(value: Option<u32>) -> Self {
        value.map_or(FieldValue::Absent, |value| FieldValue::Count(value.into()))
    }
}

impl<'a> From<Option<&'a str>> for FieldValue<'a> {
    fn from(value: Option<&'a str>) -> Self {
        value.map_or(FieldValue::Absent, FieldValue::Text)
    }
}

/// A finished request whose fields are read. Inputs that several fields need are computed once.
pub struct FinishedRequest<'a> {
    record: &'a RequestRecord,
    observation: OnceCell<Observation>,
}

impl<'a> FinishedRequest<'a> {
    /// Wraps a record.
    pub fn new(record: &'a RequestRecord) -> Self {
        FinishedRequest {
            record,
            observation: OnceCell::new(),
        }
    }

    fn sample(&self, metric: Metric) -> FieldValue<'a> {
        let observation = self.observation.get_or_init(|| Observation::of(self.record));
        metric.sample(observation).into()
    }

    fn cache_tokens(&self, class: CacheClass) -> FieldValue<'a> {
        let observation = self.observation.get_or_init(|| Observation::of(self.record));
        let tokens = observation.cache_tokens();
        tokens.map_or(FieldValue::Absent, |tokens| {
            FieldValue::Count(tokens.class(class))
        })
    }

    /// `None` for an answer that broke off: its tokens were not counted, which differs from 0.
    fn output_tokens(&self) -> Option<u32> {
        let record = self.record;
        let uncounted =
            !record.is_ok() && record.output_tokens == 0 && record.generated_at().next().is_some();
        (!uncounted).then_some(record.output_tokens)
    }

    fn cancelling(&self) -> &'a [Edge] {
        let cancellation = self.record.cancellation.as_ref();
        cancellation.map_or(&[], |cancellation| &cancellation.when)
    }

    fn failure(&self) -> Option<(ErrorClass, &'a str)> {
        match &self.record.status {
            Status::Ok { .. } | Status::CancelledByClient => None,
            Status::Failed { class, message } => Some((*class, message)),
        }
    }
}

fn time<'a>(nanos: Nanos) -> FieldValue<'a> {
    FieldValue::Number(seconds(nanos))
}

fn maybe_time<'a>(nanos: Option<Nanos>) -> FieldValue<'a> {
    nanos.map(seconds).into()
}

/// Returns the longest delay, in seconds, between the arrival of an event and its read. Read times
/// do not contain this delay.
fn longest_lag(record: &RequestRecord) -> Option<f64> {
    if record.stamps == StampSource::Read {
        return None;
    }
    let longest = record.chunks.iter().map(|chunk| chunk.lag).max();
    longest.map(|lag| seconds(u64::from(lag)))
}

/// Declares the table: `key, column, name: about, |request| value;` with `_` where a field is
/// absent.
macro_rules! request_fields {
    ($($key:tt, $column:tt, $name:tt: $about:literal, $value:expr;)*) => {
        /// All fields of a finished request, in the order of their keys in
        /// `metrics/request_level_metrics.jsonl`.
        ///
        /// **Adding a field** requires an entry here (files, Lua and documentation derive from it),
        /// the field of `RequestRecord`, the code that fills it (`completion.rs` of the pipeline),
        /// and its column (`tables.rs` and `request_rows.rs` of the record). Tests fail if one of
        /// these is missing.
        pub static REQUEST_FIELDS: &[RequestField] = &[
            $(RequestField {
                key: request_fields!(@name $key),
                column: request_fields!(@name $column),
                name: request_fields!(@name $name),
                about: $about,
                value: $value,
            },)*
        ];
    };
    (@name _) => { None };
    (@name $name:ident) => { Some(stringify!($name)) };
}

request_fields! {
    request_id, _, _:
        "`session/node`. The `x-request-id` header of the request is `run/session/node`, with the `run_id` of \
         the event `run_started`",
        |r| FieldValue::Name(r.record.id.to_string());
    session_id, session_id, session: "index of the session in its workload",
        |r| FieldValue::Count(r.record.id.session.0);
    node_id, node_id, node: "node in the session's graph",
        |r| FieldValue::Count(r.record.id.node.0.into());
    session_total_requests, session_total_requests, session_requests:
        "requests of the session known when it ended (an agent's session grows)",
        |r| FieldValue::Count(r.record.session_requests.into());
    parents, parents, parents: "nodes that it waited for",
        |r| FieldValue::Counts(r.record.parents.iter().map(|edge| edge.parent.0).collect());
    parent_triggers, parent_triggers, parent_triggers:
        "the awaited event of each parent: `dispatched`, `first_chunk` or `completed`; absent if each had \
         to be complete (in the record: empty)",
        |r| {
            let edges = &r.record.parents;
            if edges.iter().all(|edge| edge.trigger == Trigger::Completed) {
                return FieldValue::Absent;
            }
            FieldValue::Names(edges.iter().map(|edge| edge.trigger.name()).collect())
        };
    parent_delays, parent_delays_ns, parent_delays:
        "the time after the event of each parent; absent without delays (in the record: empty)",
        |r| {
            let edges = &r.record.parents;
            if edges.iter().all(|edge| edge.delay == 0) {
                return FieldValue::Absent;
            }
            FieldValue::Numbers(edges.iter().map(|edge| seconds(edge.delay)).collect())
        };
    history_parent, history_parent, history_parent: "parent whose conversation it continues",
        |r| r.record.history_parent.map(|parent| parent.0).into();
    wait_after_ready, wait_after_ready_ns, wait_after_ready: "think time after the last of these events",
        |r| time(r.record.wait_after_ready);
    success, _, _: "true if it was answered", |r| FieldValue::Flag(r.record.is_ok());
    cancelled_by_client, cancelled_by_client, _:
        "true if its workload cancelled it, which is neither an answer nor a failure: tokens and chunks are those \
         that had arrived",
        |r| FieldValue::Flag(r.record.status == Status::CancelledByClient);
    measured, measured, measured:
        "false if it was sent after `benchmark_timeout`, only to hold the load. Such a request is not a \
         sample of any metric, built in or of a plugin; it is load, so `mean_requests_in_flight`, \
         `max_requests_in_flight` and the curves over time include it, and `num_sessions` its session",
        |r| FieldValue::Flag(r.record.measured);
    error_class, error_class, error_class:
        "class of the failure: `connect`, `tls`, `timeout`, `status`, `protocol`, `in_stream` (an error \
         event inside a 200), `truncated` (no finish reason), `cancelled` (given up by the host), `codec` \
         (the plugin that reads the answers failed on this one)",
        |r| r.failure().map(|(class, _)| class.name()).into();
    error_message, error_message, error_message: "message of the failure",
        |r| r.failure().map(|(_, message)| message).into();
    http_status, http_status, http_status: "HTTP status, if one came",
        |r| r.record.http_status.map(u32::from).into();
    finish_reason, finish_reason, finish_reason: "reason for the end of generation, by the server",
        |r| match &r.record.status {
            Status::Ok { finish_reason } => FieldValue::Text(finish_reason),
            Status::CancelledByClient | Status::Failed { .. } => FieldValue::Absent,
        };
    scheduler_ready_at, scheduler_ready_at_ns, intended_at:
        "instant that the schedule intended: arrival, or the last awaited event of a parent + think time",
        |r| time(r.record.intended);
    scheduler_dispatched_at, scheduler_dispatched_at_ns, dispatched_at: "handed over to a client thread",
        |r| time(r.record.dispatched_at);
    client_picked_up_at, client_picked_up_at_ns, picked_up_at: "taken by the client thread",
        |r| maybe_time(r.record.picked_up_at);
    sent_at, sent_at_ns, sent_at: "last byte of the request given to the socket",
        |r| maybe_time(r.record.sent_at);
    first_byte_at, first_byte_at_ns, first_byte_at: "first byte of the answer",
        |r| maybe_time(r.record.first_byte_at);
    client_completed_at, client_completed_at_ns, completed_at: "last event of the answer, or the failure",
        |r| time(r.record.completed_at);
    result_processed_at, result_processed_at_ns, _: "result processed by a completion thread",
        |r| time(r.record.processed_at);
    num_delta_prompt_tokens, num_delta_prompt_tokens, prompt_tokens:
        "tokens of the new messages, by the host's tokenizer",
        |r| FieldValue::Count(r.record.prompt_tokens.into());
    num_total_prompt_tokens, num_total_prompt_tokens, total_prompt_tokens:
        "the same with the history and the tool definitions, and with the chat template where the host \
         applies it. Otherwise the server's template comes on top: see `usage_prompt_tokens`",
        |r| FieldValue::Count(r.record.total_prompt_tokens.into());
    target_num_delta_prompt_tokens, target_num_delta_prompt_tokens, target_prompt_tokens:
        "tokens of the new messages that the workload asked for",
        |r| FieldValue::Count(r.record.target_prompt_tokens.into());
    num_output_tokens, num_output_tokens, _: "tokens generated; null for an answer that broke off",
        |r| r.output_tokens().into();
    _, _, output_tokens: "tokens generated; 0 where they were not counted",
        |r| FieldValue::Count(r.record.output_tokens.into());
    num_requested_output_tokens, num_requested_output_tokens, target_output_tokens:
        "tokens that the server was asked to generate",
        |r| r.record.target_output_tokens.into();
    num_total_tokens, _, _: "prompt with history and output together",
        |r| r.output_tokens().map_or(FieldValue::Absent, |tokens| {
            FieldValue::Count(u64::from(r.record.total_prompt_tokens) + u64::from(tokens))
        });
    num_chunks, _, _: "generated chunks",
        |r| FieldValue::Count(r.record.generated_at().count() as u64);
    output_tokens_source, _, _: "origin of `num_output_tokens`: the server (`usage`) or the host (`tokenizer`)",
        |r| match (r.record.output_tokens, r.record.output_tokens_from_usage) {
            (0, _) => FieldValue::Absent,
            (_, true) => FieldValue::Text("usage"),
            (_, false) => FieldValue::Text("tokenizer"),
        };
    usage_prompt_tokens, usage_prompt_tokens, _: "tokens of the prompt, by the server",
        |r| r.record.usage.map(|usage| usage.prompt).into();
    usage_completion_tokens, usage_completion_tokens, _: "tokens generated, by the server",
        |r| r.record.usage.map(|usage| usage.completion).into();
    usage_cached_tokens, usage_cached_tokens, _: "prompt tokens from the server's prefix cache; null for a count above that of the prompt",
        |r| r.record.usage.and_then(|usage| usage.cached).into();
    usage_reasoning_tokens, usage_reasoning_tokens, _: "generated tokens that were reasoning; null for a count above that of the answer",
        |r| r.record.usage.and_then(|usage| usage.reasoning).into();
    is_stream, _, _: "false if the response was not streamed (there is no TTFC then)",
        |r| FieldValue::Flag(r.record.is_stream());
    ttfc, _, ttfc: "first generated chunk (reasoning, content or tool call) − dispatched",
        |r| r.sample(Metric::Ttfc);
    ttfc_from_intended, _, _: "first generated chunk − intended", |r| r.sample(Metric::TtfcFromIntended);
    tpot, _, tpot: "(last generated chunk − first) / (output tokens − tokens of the first chunk)", |r| r.sample(Metric::Tpot);
    end_to_end_latency, _, end_to_end_latency: "last generated chunk − dispatched. With tool calls, and without streaming, to the finish event",
        |r| r.sample(Metric::EndToEnd);
    e2e_from_intended, _, _: "the same from the intended instant", |r| r.sample(Metric::EndToEndFromIntended);
    normalized_end_to_end_latency, _, _: "`end_to_end_latency` per output token",
        |r| r.sample(Metric::NormalizedEndToEnd);
    output_throughput, _, _: "output tokens per second of `end_to_end_latency`",
        |r| r.sample(Metric::OutputThroughput);
    tbc, _, _: "gaps between successive generated chunks",
        |r| FieldValue::Numbers(gaps(r.record).map(seconds).collect());
    merged_chunks, _, _:
        "events that came out of the same read as an earlier one: their gaps are known as 0 only",
        |r| FieldValue::Count(r.record.chunks.iter().filter(|chunk| chunk.merged).count() as u64);
    arrival_stamps, arrival_stamps, _:
        "`kernel`: times of arrival are the kernel's receive timestamps; `read`: those of the reads",
        |r| FieldValue::Text(r.record.stamps.name());
    client_lag, _, _:
        "longest time that an event of the answer waited in the kernel before it was read; null where the \
         stamps are those of the reads",
        |r| longest_lag(r.record).into();
    held_seconds, _, held:
        "time for which limits held it back after `scheduler_ready_at`; the rest until the dispatch is the \
         dispatcher's lateness",
        |r| time(r.record.held.total());
    held_by_sessions, held_by_sessions_ns, _: "the part due to the limit on sessions",
        |r| time(r.record.held.sessions);
    held_by_in_flight, held_by_in_flight_ns, _: "the part due to the limit on requests in flight",
        |r| time(r.record.held.in_flight);
    held_by_prefill, held_by_prefill_ns, _: "the part due to the limit on requests in prefill",
        |r| time(r.record.held.in_prefill);
    server, server, server: "index of the server that it went to: those of `client` first, then those of `clients` by name",
        |r| FieldValue::Count(r.record.server.into());
    connection_reused, connection_reused, connection_reused:
        "true if the connection had carried an earlier request",
        |r| FieldValue::Flag(r.record.connection_reused);
    resolve_seconds, resolve_ns, resolve: "name resolution for a new connection",
        |r| maybe_time(r.record.resolve);
    connect_seconds, connect_ns, connect: "TCP connect of a new connection, and the proxy's consent",
        |r| maybe_time(r.record.connect);
    tls_seconds, tls_ns, tls: "TLS handshake of a new connection", |r| maybe_time(r.record.tls);
    retried, retried, retried:
        "true if it was sent again because a pooled connection was dead before any byte of an answer came",
        |r| FieldValue::Flag(r.record.retried);
    history_mode, history_mode, _:
        "the answers in its history: `live` (the real ones), `recorded` (those of the trace), `fresh` (no \
         history was sent)",
        |r| FieldValue::Text(r.record.history_mode.name());
    num_template_tokens, num_template_tokens, template_tokens:
        "tokens that the chat template adds, part of `num_total_prompt_tokens`; 0 where the host applies none",
        |r| FieldValue::Count(r.record.template_tokens.into());
    recorded_at, recorded_at_ns, _:
        "for a request from a trace: when it was sent then, counted from the earliest arrival of the trace \
         (with `fixed_schedule`: from the first arrival that is replayed)",
        |r| maybe_time(r.record.recorded.and_then(|recorded| recorded.at));
    recorded_latency, recorded_latency_ns, _: "the same: duration of its answer",
        |r| maybe_time(r.record.recorded.and_then(|recorded| recorded.latency));
    recorded_prompt_tokens, recorded_prompt_tokens, _: "the same: tokens of its whole prompt",
        |r| r.record.recorded.and_then(|recorded| recorded.prompt_tokens).into();
    recorded_output_tokens, recorded_output_tokens, _: "the same: tokens of its answer",
        |r| r.record.recorded.and_then(|recorded| recorded.output_tokens).into();
    ideal_cached_tokens, ideal_cached_tokens, ideal_cached_tokens:
        "tokens of its prompt that began an earlier prompt of the run: the hits of an unbounded prefix \
         cache; null where prefixes were not tracked",
        |r| r.record.ideal_cached_tokens.into();
    cache_reused_tokens, _, cache_reused_tokens: "prompt tokens that the server found in its prefix cache; null where it did not report them, as the next four",
        |r| r.cache_tokens(CacheClass::Reused);
    cache_evicted_tokens, _, cache_evicted_tokens: "prompt tokens that the same server had computed before, and did not find",
        |r| r.cache_tokens(CacheClass::Evicted);
    cache_rerouted_tokens, _, cache_rerouted_tokens: "prompt tokens that only another server had computed before",
        |r| r.cache_tokens(CacheClass::Rerouted);
    cache_changed_tokens, _, cache_changed_tokens: "prompt tokens whose text had been computed before, behind another beginning",
        |r| r.cache_tokens(CacheClass::Changed);
    cache_new_tokens, _, cache_new_tokens: "the rest of the prompt tokens",
        |r| r.cache_tokens(CacheClass::New);
    _, known_to_server_tokens, _:
        "tokens of the longest beginning of the prompt that its server had computed before the dispatch, in whole \
         blocks of `client.prefix_cache`; null where the server reports no cached tokens",
        |r| r.record.cache.map(|cache| cache.same_server).into();
    _, known_to_any_server_tokens, _: "the same of all servers",
        |r| r.record.cache.map(|cache| cache.any_server).into();
    _, moved_tokens, _: "tokens behind these and the cached ones whose text had been computed behind another beginning",
        |r| r.record.cache.map(|cache| cache.moved).into();
    response_id, response_id, response_id:
        "id of the response, by the server: from the body (`chatcmpl-...`), else from the header `x-request-id` \
         or `request-id`",
        |r| r.record.response_id.as_deref().into();
    trace_id, trace_id, trace_id: "trace id of the request's `traceparent`; null without one",
        |r| r.record.trace_id.map_or(FieldValue::Absent, |id| FieldValue::Name(format!("{id:032x}")));
    labels, _, labels:
        "labels of the workload, as a list of pairs: `[[\"tier\", \"gold\"]]`; the key is absent without labels",
        |r| FieldValue::Labels(&r.record.labels);
    _, body_digest, _: "XXH3 (64 bits) of the request's body; null if none was built, as in virtual time",
        |r| r.record.body_digest.map_or(FieldValue::Absent, |digest| FieldValue::Name(format!("{digest:016x}")));
    _, label_names, _: "names of the labels", |r| FieldValue::Labels(&r.record.labels);
    _, label_values, _: "values of the labels", |r| FieldValue::Labels(&r.record.labels);
    _, _, status: "`ok`, `failed`, `cancelled` (given up by the host) or `cancelled_by_client` (by its workload)",
        |r| FieldValue::Text(match &r.record.status {
            Status::Ok { .. } => "ok",
            Status::CancelledByClient => "cancelled_by_client",
            Status::Failed { class: ErrorClass::Cancelled, .. } => "cancelled",
            Status::Failed { .. } => "failed",
        });
    _, cancel_nodes, _: "nodes whose events were to cancel it",
        |r| FieldValue::Counts(r.cancelling().iter().map(|edge| edge.parent.0).collect());
    _, cancel_triggers, _: "the event of each of these nodes",
        |r| FieldValue::Names(r.cancelling().iter().map(|edge| edge.trigger.name()).collect());
    _, cancel_delays_ns, _: "the time after the event of each of these nodes",
        |r| FieldValue::Numbers(r.cancelling().iter().map(|edge| seconds(edge.delay)).collect());
    _, cancel_after_chunks, _: "number of generated chunks that were to cancel it",
        |r| {
            let cancellation = r.record.cancellation.as_ref();
            cancellation.and_then(|cancellation| cancellation.after_chunks).into()
        };
    _, output_exact, _: "true if the requested output length was exact, false if it was an upper limit",
        |r| FieldValue::Flag(r.record.output_exact);
    _, output_tokens_from_usage, output_tokens_from_usage: "true if the server counted the output tokens",
        |r| FieldValue::Flag(r.record.output_tokens_from_usage);
    _, _, usage: "the server's counts: `prompt`, `completion`, `cached`, `reasoning`",
        |r| r.record.usage.map_or(FieldValue::Absent, FieldValue::Usage);
    _, was_recorded, _: "true if the request comes from a trace",
        |r| FieldValue::Flag(r.record.recorded.is_some());
    _, _, recorded: "measurements from the trace: `at`, `latency`, `prompt_tokens`, `output_tokens`",
        |r| r.record.recorded.map_or(FieldValue::Absent, FieldValue::Recorded);
    _, chunk_at_ns, _: "arrival of each event of the stream",
        |r| FieldValue::Numbers(r.record.chunks.iter().map(|chunk| seconds(chunk.at)).collect());
    _, chunk_lag_ns, _: "delay of each event's read",
        |r| FieldValue::Counts(r.record.chunks.iter().map(|chunk| chunk.lag).collect());
    _, chunk_bytes, _: "bytes of each event's data",
        |r| FieldValue::Counts(r.record.chunks.iter().map(|chunk| chunk.bytes).collect());
    _, chunk_kind, _: "kind of each event, as a code that the file's metadata explains",
        |r| FieldValue::Names(r.record.chunks.iter().map(|chunk| chunk.kind.name()).collect());
    _, chunk_merged, _: "1 for each event that came out of the same read as an earlier one",
        |r| FieldValue::Counts(r.record.chunks.iter().map(|chunk| chunk.merged.into()).collect());
    _, chunk_tokens, _: "tokens of each generated chunk; empty where each has one, or where they were not counted",
        |r| FieldValue::Counts(r.record.chunk_tokens.clone());
    _, _, chunk_at: "arrival of each generated chunk",
        |r| FieldValue::Numbers(r.record.generated_at().map(seconds).collect());
    _, _, chunk_tokens: "tokens of each generated chunk; absent where they were not counted",
        |r| r.record.tokens_by_chunk().map_or(FieldValue::Absent, FieldValue::Counts);
    _, _, chunk_kinds: "kind of each generated chunk",
        |r| {
            let generated = r.record.chunks.iter().filter(|chunk| chunk.kind.is_generated());
            FieldValue::Names(generated.map(|chunk| chunk.kind.name()).collect())
        };
}
