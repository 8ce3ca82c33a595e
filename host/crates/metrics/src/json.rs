//! The contents of Veeksha's result files, with additional keys.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use veeksha_events::{FailedPlugin, PluginRole};
use veeksha_model::Label;

use crate::error_estimates::ErrorEstimate;
use crate::evaluation::Evaluation;
use crate::groups::LabelGroups;
use crate::host_metrics::HostPerformance;
use crate::json_shapes::{failed_plugin, statistics, summary_json};
use crate::refused::RefusedSamples;
use crate::sent_requests::SentRequests;
use crate::sessions::SessionMetrics;
use crate::threads::ThreadUse;
use crate::what_if::Counterfactual;
use crate::workload::WorkloadDigest;
use crate::workload_failures::WorkloadFailures;
use veeksha_definitions::{CacheClass, Metric, PathPart, Scope};

impl Evaluation {
    /// Returns the content of `metrics/summary_stats.json`.
    pub fn summary_stats(&self) -> Value {
        summary_stats(self)
    }

    /// Returns the content of `metrics/throughput_metrics.json`.
    pub fn throughput_metrics(&self) -> Value {
        throughput_metrics(self)
    }

    /// Returns the content of `metrics/slo_results.json`.
    pub fn slo_results(&self) -> Value {
        let failed = |failed: &&FailedPlugin| failed.part != PluginRole::Metric;
        self.slos
            .json(self.failed.iter().filter(failed), &self.workload_failures)
    }

    /// Returns the content of `metrics/time_slices.json`. [`TimeSlices::table`](crate::TimeSlices)
    /// returns the same data as rows.
    pub fn time_slices(&self) -> Value {
        self.slices.json()
    }

    /// Returns the content of `metrics/curves.json`.
    pub fn curves(&self) -> Value {
        self.curves.json()
    }

    /// Returns the content of `metrics/session_metrics.json`: the summaries of the session metrics,
    /// and the values of each session.
    pub fn session_metrics(&self) -> Value {
        session_metrics(self)
    }

    /// Writes the content of `metrics/session_metrics.json`, one session on each line.
    ///
    /// # Errors
    /// Returns the errors of the writer.
    pub fn write_session_metrics(&self, writer: &mut dyn Write) -> io::Result<()> {
        write_session_metrics(self, writer)
    }
}

fn summary_stats(evaluation: &Evaluation) -> Value {
    let mut file = Map::new();
    add_request_counts(&mut file, evaluation);
    add_session_counts(&mut file, evaluation);
    let mut thin = Vec::new();
    let built_in = evaluation
        .metrics
        .iter()
        .map(|entry| (entry.metric.display_name(), &entry.summary));
    let of_plugins = evaluation
        .custom
        .iter()
        .map(|entry| (entry.name.as_str(), &entry.summary));
    for (name, summary) in built_in.chain(of_plugins) {
        for (statistic, value) in statistics(summary) {
            file.insert(format!("{name} ({statistic})"), value);
        }
        if summary.p99_is_thin() {
            thin.push(format!("{name} (P99)"));
        }
    }
    file.insert("P99 of Fewer than 100 Samples".into(), thin.into());
    file.insert(
        "Samples Left Out".into(),
        evaluation.refused.iter().map(left_out).collect(),
    );
    file.insert(
        "Failed Plugins".into(),
        evaluation
            .failed
            .iter()
            .map(failed_plugin)
            .chain(evaluation.workload_failures.iter().map(WorkloadFailures::json))
            .collect(),
    );
    let run_metrics = evaluation
        .run_metrics()
        .iter()
        .map(|(metric, value)| (metric.name().to_owned(), json!(value)));
    file.insert("run_metrics".into(), Value::Object(run_metrics.collect()));
    let deadlines = evaluation.samples.deadlines();
    file.insert(
        "fluidity_deadlines".into(),
        json!({ "prefill": deadlines.prefill as f64 / 1e9, "decode": deadlines.decode as f64 / 1e9 }),
    );
    file.insert("itl_is_tbc".into(), evaluation.samples.itl_is_tbc().into());
    file.insert("workload".into(), workload(evaluation.workload.as_ref()));
    file.insert("sent_requests".into(), sent_requests(evaluation.sent.as_ref()));
    file.insert("host".into(), host(&evaluation.host));
    if !evaluation.groups.is_empty() {
        let groups = evaluation.groups.iter().map(LabelGroups::json);
        file.insert("groups".into(), groups.collect());
    }
    let counterfactuals = evaluation.samples.counterfactuals();
    if !counterfactuals.is_empty() {
        let counterfactuals = counterfactuals.iter().map(Counterfactual::json);
        file.insert("what_if".into(), counterfactuals.collect());
    }
    let end = &evaluation.end;
    file.insert("record_complete".into(), (end.complete && !end.unrecorded).into());
    file.insert("interrupted".into(), evaluation.end.interrupted.into());
    Value::Object(file)
}

fn workload(digest: Option<&WorkloadDigest>) -> Value {
    digest.map_or(
        Value::Null,
        |digest| json!({ "sessions": digest.sessions, "digest": digest.digest, "prefixes": digest.prefixes }),
    )
}

fn sent_requests(sent: Option<&SentRequests>) -> Value {
    sent.map_or(Value::Null, |sent| {
        let prefixes = sent.prefixes.iter();
        let prefixes: Vec<Value> = prefixes
            .map(|prefix| json!([prefix.sessions, prefix.requests, prefix.digest]))
            .collect();
        json!({ "requests": sent.requests, "digest": sent.digest, "prefixes": prefixes })
    })
}

fn add_request_counts(file: &mut Map<String, Value>, evaluation: &Evaluation) {
    let counts = &evaluation.counts;
    let never_sent: Map<String, Value> = counts
        .never_sent
        .iter()
        .map(|(reason, count)| (reason.name().to_owned(), (*count).into()))
        .collect();
    let classes: Map<String, Value> = counts
        .error_classes
        .iter()
        .map(|(class, count)| (class.name().to_owned(), (*count).into()))
        .collect();
    let by_server: Map<String, Value> = counts
        .by_server
        .iter()
        .map(|(server, seen)| {
            let seen = json!({"requests": seen.requests, "completed": seen.completed, "failed": seen.failed});
            (server.to_string(), seen)
        })
        .collect();
    let entries = [
        ("Number of Requests", json!(counts.requests)),
        ("Number of Completed Requests", json!(counts.completed)),
        ("Number of Errored Requests", json!(counts.errored)),
        ("Number of Cancelled Requests", json!(counts.cancelled)),
        (
            "Number of Requests Cancelled by the Workload",
            json!(counts.cancelled_by_client),
        ),
        ("Number of Unfinished Requests", json!(counts.unfinished)),
        ("Number of Drained Requests", json!(counts.drained)),
        ("Number of Never Sent Requests", json!(counts.never_sent_total())),
        ("Number of Missed Arrivals", json!(counts.arrivals_missed)),
        ("Number of Intended Requests", json!(counts.intended())),
        ("Number of Empty Answers", json!(counts.empty_answers)),
        ("Number of Retried Requests", json!(counts.retried)),
        ("Error Rate", json!(counts.error_rate())),
        ("Cancellation Rate", json!(counts.cancellation_rate())),
        ("error_code_freq", json!(counts.errors)),
        ("error_class_freq", Value::Object(classes)),
        ("requests_by_server", Value::Object(by_server)),
        ("never_sent_freq", Value::Object(never_sent)),
    ];
    file.extend(entries.map(|(key, value)| (key.to_owned(), value)));
}

fn add_session_counts(file: &mut Map<String, Value>, evaluation: &Evaluation) {
    let counts = &evaluation.counts;
    let entries = [
        ("Number of Sessions Seen", json!(counts.sessions)),
        ("Successful Sessions", json!(counts.successful_sessions)),
        ("Errored Sessions", json!(counts.errored_sessions)),
        ("Cancelled Sessions", json!(counts.cancelled_sessions)),
        ("Incomplete Sessions", json!(counts.incomplete_sessions)),
        (
            "Sessions with a Failed Agent",
            json!(counts.failed_agent_sessions),
        ),
        (
            "Observed Session Dispatch Rate",
            json!(evaluation.session_dispatch_rate),
        ),
    ];
    file.extend(entries.map(|(key, value)| (key.to_owned(), value)));
    if !counts.tools.is_empty() {
        let tools = counts.tools.iter();
        let tools = tools.map(|(class, counts)| (class.to_string(), counts.json()));
        file.insert("tools".into(), Value::Object(tools.collect()));
    }
}

/// Returns the JSON of a plugin metric's samples that were dropped for one reason.
fn left_out(refused: &RefusedSamples) -> Value {
    json!({
        "plugin": refused.plugin,
        "metric": refused.metric,
        "reason": refused.fault.name(),
        "count": refused.count,
        "first": refused.first,
    })
}

impl HostPerformance {
    /// Returns the statistics as JSON, as in `summary_stats.json` and `certificate.json`.
    pub fn json(&self) -> Value {
        host(self)
    }
}

fn host(host: &HostPerformance) -> Value {
    json!({
        "dispatch_lateness": summary_json(&host.dispatch_lateness),
        "late_dispatches": host.late_dispatches,
        "held": {
            "sessions": summary_json(&host.held.sessions),
            "in_flight": summary_json(&host.held.in_flight),
            "in_prefill": summary_json(&host.held.in_prefill),
        },
        "pickup_delay": summary_json(&host.pickup_delay),
        "send_lateness": summary_json(&host.send_lateness),
        "send_lateness_with_opening": summary_json(&host.send_lateness_with_opening),
        "processing_delay": summary_json(&host.processing_delay),
        "resolve_time": summary_json(&host.resolve_time),
        "connect_time": summary_json(&host.connect_time),
        "tls_time": summary_json(&host.tls_time),
        "ttfc_with_opening": host.ttfc_with_opening,
        "client_lag": host.client_lag.map(|lag| json!({
            "count": lag.count, "mean": lag.mean, "p50": lag.p50, "p99": lag.p99, "max": lag.max,
        })),
        "kernel_stamped": host.kernel_stamped,
        "read_stamped": host.read_stamped,
        "merged_chunk_share": host.merged_chunk_share,
        "late_merged_chunk_share": host.late_merged_chunk_share,
        "connections_opened": host.connections_opened,
        "connections_reused": host.connections_reused,
        "connection_reuse_share": host.connection_reuse_share,
        "connection_reuse_share_after_first": host.connection_reuse_share_after_first,
        "starvations": host.starvations,
        "starved_seconds": host.starved_seconds,
        "threads": host.threads.iter().map(thread).collect::<Vec<_>>(),
        "clock_steps": host.clock_steps,
        "largest_clock_step": host.largest_clock_step,
        "errors": host.errors.iter().map(error).collect::<Map<_, _>>(),
    })
}

fn thread(thread: &ThreadUse) -> Value {
    json!({
        "thread": thread.thread,
        "seconds": thread.seconds,
        "busy_share": thread.busy_share(),
        "waiting_share": thread.waiting_share(),
        "busiest": thread.busiest,
        "most_waiting": thread.most_waiting,
    })
}

fn error(error: &ErrorEstimate) -> (String, Value) {
    let errors = json!({
        "count": error.count,
        "mean": error.mean,
        "p99": error.p99,
        "main": error.main.name(),
        "unknown": error.unknown,
    });
    (error.metric.name().to_owned(), errors)
}

fn throughput_metrics(evaluation: &Evaluation) -> Value {
    let throughput = &evaluation.throughput;
    json!({
        "tpot_based_throughput": throughput.tpot_based,
        "tbc_based_throughput": throughput.tbc_based,
        "window_seconds": throughput.window_seconds,
        "requests_per_second": throughput.requests_per_second,
        "input_tokens_per_second": throughput.input_tokens_per_second,
        "output_tokens_per_second": throughput.output_tokens_per_second,
        "total_tokens_per_second": throughput.total_tokens_per_second,
        "input_tokens": throughput.input_tokens,
        "output_tokens": throughput.output_tokens,
        "cached_tokens": throughput.cached_tokens,
        "cached_of_tokens": throughput.cached_of_tokens,
        "goodput": evaluation.slos.goodput,
        "good_requests_per_second": evaluation.slos.good_requests_per_second,
    })
}

fn session_metrics(evaluation: &Evaluation) -> Value {
    json!({
        "metrics": session_summaries(evaluation),
        "sessions": evaluation.samples.sessions().map(session).collect::<Vec<_>>(),
    })
}

/// Writes the same content session by session, so that the text of a million sessions is not held
/// in memory.
fn write_session_metrics(evaluation: &Evaluation, writer: &mut dyn Write) -> io::Result<()> {
    let summaries = serde_json::to_string_pretty(&session_summaries(evaluation))?;
    write!(writer, "{{\n\"metrics\": {summaries},\n\"sessions\": [")?;
    for (place, metrics) in evaluation.samples.sessions().enumerate() {
        writer.write_all(if place > 0 { b",\n" } else { b"\n" })?;
        serde_json::to_writer(&mut *writer, &session(metrics))?;
    }
    writer.write_all(b"\n]\n}\n")
}

fn session_summaries(evaluation: &Evaluation) -> Map<String, Value> {
    let metrics = Metric::all().filter(|metric| metric.scope() == Scope::Session);
    let summary = |metric: Metric| {
        let summary = evaluation.metric(metric).copied();
        (metric.name().to_owned(), summary_json(&summary))
    };
    metrics.map(summary).collect()
}

fn session((session, labels): (SessionMetrics, &[Label])) -> Value {
    let mut entry = json!({
        "session_id": session.session.0,
        "intended": session.intended as f64 / 1e9,
        "session_size": session.requests,
        "session_duration": session.duration,
        "session_makespan": session.makespan,
        "session_critical_path_llm_time": session.critical_path_llm_time,
        "session_tool_time": session.tool_time,
        "session_slowdown": session.slowdown,
        "labels": labels,
    });
    let path = session.critical_path;
    entry[Metric::PathRequests.name()] = json!(path.map(|path| path.requests));
    entry["cache"] = session.cache.map_or(Value::Null, |prompts| {
        let class = |class: CacheClass| (class.name().to_owned(), prompts.tokens.class(class).into());
        let mut cache: Map<String, Value> = CacheClass::ALL.into_iter().map(class).collect();
        cache.insert("requests".into(), prompts.requests.into());
        Value::Object(cache)
    });
    for part in PathPart::ALL {
        entry[part.metric().name()] = json!(path.map(|path| path.seconds(part)));
    }
    entry
}
