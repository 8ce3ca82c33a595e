//! The content of a page apart from its requests: plain data, filled in by the caller.
//!
//! Every part is optional. An empty part has no section on the page; a number that is `None` is
//! displayed as a dash, never as 0.
//!
//! **Units.** A number has a unit, and the page displays both: `s` (seconds; displayed as µs, ms, s
//! or min), `share` (`0.0..=1.0`; displayed in percent), `tokens`, `tokens/s`, `requests/s`; an
//! empty text or `1` is a plain number; any other unit is appended to the number.

use serde::Serialize;

use crate::request::RequestList;

/// The complete content of a page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PageData {
    /// Target, time and state of the run.
    pub run: RunFacts,
    /// The run's certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateSection>,
    /// The main aggregates at the top of the page, in display order; six are recommended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub key_metrics: Vec<KeyMetric>,
    /// Metrics, built in and custom, in display order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// The objectives of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slos: Vec<SloRow>,
    /// Load over time, of all requests. If absent, the page computes it, provided that every
    /// request is on the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curves: Option<RunCurves>,
    /// The requests ([`crate::RequestSample`]).
    pub requests: RequestList,
    /// Failures by class, most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failures>,
    /// Requests that were known and never sent, by reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub never_sent: Vec<NeverSent>,
    /// Tool runs that were known and did not end, by class and reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped_tool_runs: Vec<DroppedToolRuns>,
    /// Workload plugins that failed, such as agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_plugins: Vec<FailedWorkload>,
    /// The sessions by critical path, and the tool runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<GroupTable>,
    /// The prompt tokens by state of the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<GroupTable>,
    /// The requests grouped by labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupTable>,
    /// Statistics of time slices of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slices: Option<Slices>,
    /// Health checks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<HealthRow>,
    /// The resolved configuration as YAML. Secrets must have been removed: the page displays it
    /// verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// The plugins of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<Plugin>,
    /// The use of resources by the plugins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugin_use: Vec<PluginUseRow>,
    /// The machine on which the host ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machine: Vec<Fact>,
    /// Versions of the components: host, server, model, tokenizer, contract.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<Fact>,
}

impl PageData {
    /// Returns the data as strict JSON on one line, as required by [`crate::LivePage::publish`]. A
    /// number that is not finite becomes `null`.
    pub fn json(&self) -> String {
        // Serialization cannot fail here: maps have text keys. Otherwise the page would have no
        // data.
        serde_json::to_string(self).unwrap_or_else(|_| "null".to_owned())
    }
}

/// Target, time and state of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunFacts {
    /// The page's title: the name of the scenario or of the run folder.
    pub name: String,
    /// The state of the run.
    pub state: RunState,
    /// One line below the title: the workload and the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Short facts below the title: model, server, traffic, seed, workload digest, ...
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
    /// Wall-clock time at the run's zero, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_unix: Option<f64>,
    /// The duration of the run so far, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed: Option<f64>,
    /// The planned maximum duration, in seconds: displayed as progress during the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<f64>,
    /// Warnings about the results, one sentence each: `the record ends in the middle of a row:
    /// ...`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// In progress.
    Running,
    /// Ended normally.
    #[default]
    Ended,
    /// Interrupted by the user.
    Interrupted,
    /// The record ends before the run did.
    Cut,
}

/// The degree to which the results can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CertificateVerdict {
    /// The client's contribution to every certified metric is small.
    #[default]
    Valid,
    /// The client's contribution is not small, or unknown.
    Degraded,
    /// The results describe the client more than the server.
    Invalid,
}

/// The certificate of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CertificateSection {
    /// The worst of the findings' verdicts.
    pub verdict: CertificateVerdict,
    /// The part of the metrics that the verdict covers: `1 of 4 metrics; 3 have too few samples`;
    /// `None` if it covers all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<String>,
    /// The evidence as text: `the run's own record and a self-test`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basis: Option<String>,
    /// The findings; positive findings on single metrics may be omitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<CertificateFinding>,
    /// The client's maximum contribution to each metric.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<MetricError>,
}

/// A finding of the certificate.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CertificateFinding {
    /// The consequence for the run; [`CertificateVerdict::Valid`] marks a remark.
    pub verdict: CertificateVerdict,
    /// The name of the affected metric, if it is a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The finding as text.
    pub what: String,
    /// The suggested fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// The client's maximum contribution to a metric, in the metric's unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MetricError {
    /// The metric's name.
    pub metric: String,
    /// Samples.
    pub count: u64,
    /// Mean absolute error of a sample; it determines the verdict.
    pub mean_error: f64,
    /// 99th percentile of the absolute errors, displayed as ± next to the metric.
    pub p99_error: f64,
    /// `mean_error` as a share of the metric's typical value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<f64>,
    /// The origin of `p99_error` as text: `estimated` or `measured by the self-test`.
    pub source: String,
}

/// A run-level aggregate.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KeyMetric {
    /// The name in files and objectives: `goodput`.
    pub name: String,
    /// The display name: `Goodput`.
    pub label: String,
    /// The value; `None` if it does not exist.
    pub value: Option<f64>,
    /// The unit of the value.
    pub unit: String,
    /// The number of samples or requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The counted items: `answered requests`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count_of: Option<String>,
    /// The ± of the value, in its unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// An additional line: `2,871 of 3,000 requests met every objective`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A metric, built in or custom.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Metric {
    /// The name in files and objectives. `ttfc`, `ttfc_from_intended`, `tbc`, `tpot`,
    /// `end_to_end_latency`, `e2e_from_intended`, `num_output_tokens`, `output_throughput` and the
    /// metrics of custom samples ([`crate::PageRequest::custom`]) have values for each request, and
    /// charts of them; others have summaries only.
    pub name: String,
    /// The display name: `Time to first chunk`.
    pub label: String,
    /// The unit of the values.
    pub unit: String,
    /// The direction in which it improves: `higher`, `less` or `neither`.
    pub better: String,
    /// The meaning and the formula.
    pub definition: String,
    /// The plugin that measures it; `None` for a built-in metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// The doubt about the token counts behind the values, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// The summary over the whole run; `None` if it has no samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<MetricStatistics>,
}

/// The summary of a metric's samples, in the metric's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MetricStatistics {
    /// Number of samples.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub std: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile; the page marks it as thin below 100 samples.
    pub p99: f64,
}

/// An objective and its result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SloRow {
    /// The user-defined name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The objective as written: `p99(ttfc) < 500ms`. For a plugin's objective: its name.
    pub expression: String,
    /// The observed value; `None` without samples.
    pub observed: Option<f64>,
    /// The bound.
    pub bound: Option<f64>,
    /// `<`, `<=`, `>` or `>=`; `None` if a plugin judged and its verdict does not contain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<String>,
    /// The unit of bound and observed value.
    pub unit: String,
    /// The number of samples; for an objective with windows, that of the worst one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// True if the objective is met; `None` while undecided.
    pub met: Option<bool>,
    /// The worst window, for an objective with windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_window: Option<WorstSloWindow>,
    /// A one-line message: from the plugin, or the reason for missing samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The plugin that judged, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
}

/// The worst window of an objective with windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WorstSloWindow {
    /// The start, in seconds from the start of the run.
    pub from: f64,
    /// The end, in seconds from the start of the run.
    pub to: f64,
    /// The number of windows with samples.
    pub of: u64,
}

/// Load over time in steps of equal length, of all requests of the run. Lists have the same length,
/// or are empty if unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunCurves {
    /// The start of the first step, in seconds from the start of the run.
    pub from: f64,
    /// The length of a step in seconds, positive.
    pub step: f64,
    /// Time-weighted mean number of requests between dispatch and completion.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_flight: Vec<f64>,
    /// The minimum of that number in the step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub least_in_flight: Vec<f64>,
    /// The maximum of that number in the step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub most_in_flight: Vec<f64>,
    /// Requests in flight before their first generated chunk.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_prefill: Vec<f64>,
    /// Requests in flight between the first and the last generated chunk.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_decode: Vec<f64>,
    /// Output tokens per second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub output_tokens_per_second: Vec<f64>,
    /// Prompt tokens of requests whose first generated chunk arrived in the step, per second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub input_tokens_per_second: Vec<f64>,
    /// Requests completed per second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests_per_second: Vec<f64>,
}

/// Failures of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Failures {
    /// The class's name (`ErrorClass::name`), which selects its requests on the page.
    pub class: String,
    /// The number of failures.
    pub count: u64,
    /// The message of the first failure.
    pub first_message: String,
    /// The first failed request, as `session/node`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_request: Option<String>,
    /// The completion of the first failed request, in seconds from the start of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_at: Option<f64>,
}

/// Requests that were known and never sent, for one reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NeverSent {
    /// The reason's name (`NeverSentReason::name`).
    pub reason: String,
    /// The number of requests.
    pub count: u64,
    /// The explanation: `the run ended before they were due`.
    pub meaning: String,
}

/// Tool runs of a class that were known and did not end, for one reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DroppedToolRuns {
    /// The name of the class.
    pub tool: String,
    /// The reason's name (`ToolDropReason::name`).
    pub reason: String,
    /// The number of tool runs.
    pub count: u64,
    /// The explanation: `the run ended before they were due`.
    pub meaning: String,
}

/// Failures of a workload plugin. Each failure loses a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FailedWorkload {
    /// The plugin's name.
    pub plugin: String,
    /// The number of failures.
    pub count: u64,
    /// The message of the first failure.
    pub first_message: String,
    /// The sessions of the first failures.
    pub sessions: Vec<u64>,
}

/// Statistics of the requests with each value of a label, or of other groups, as a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GroupTable {
    /// The name of the label: the heading of the groups.
    pub label: String,
    /// A sentence about the groups, for example that values were merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// The columns.
    pub columns: Vec<ValueColumn>,
    /// One row for each group.
    pub rows: Vec<GroupValues>,
}

/// A group of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GroupValues {
    /// The value of the label: the name of the group.
    pub value: String,
    /// One value for each column.
    pub values: Vec<Option<f64>>,
}

/// Statistics of time slices of the run, as a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Slices {
    /// The columns.
    pub columns: Vec<ValueColumn>,
    /// One row for each slice, in order of time.
    pub rows: Vec<SliceRow>,
}

/// A column of [`Slices`] or [`GroupTable`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ValueColumn {
    /// The display name: `TTFC P99`.
    pub label: String,
    /// The unit.
    pub unit: String,
}

/// A time slice of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SliceRow {
    /// The start, in seconds from the start of the run.
    pub from: f64,
    /// The end, in seconds from the start of the run.
    pub to: f64,
    /// One value for each column.
    pub values: Vec<Option<f64>>,
}

/// The outcome of a health check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// No problem was found.
    #[default]
    Passed,
    /// A possible problem was found.
    Warned,
    /// A problem was found.
    Failed,
    /// The check does not apply to this run.
    Skipped,
}

/// A health check.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HealthRow {
    /// The display name.
    pub name: String,
    /// The outcome.
    pub outcome: CheckOutcome,
    /// One line: the comparison and the observation.
    pub summary: String,
    /// Further lines, shown on demand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// A plugin of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plugin {
    /// Its name.
    pub name: String,
    /// The role: `workload`, `metric`, `slo-check`, ...
    pub role: String,
    /// The version, if the plugin reports one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The origin: a path or `shipped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The digest of the plugin's bytes, prefixed with the hash function: `blake3:...`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The use of resources by a plugin, next to its limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PluginUseRow {
    /// Its name.
    pub name: String,
    /// Calls into the plugin.
    pub calls: u64,
    /// The longest call.
    pub longest_call: String,
    /// The largest memory of an instance.
    pub memory: String,
    /// The most data that a call returned; absent if it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Lines that were logged.
    pub log_lines: u64,
    /// Lines beyond the limits on logs.
    pub dropped_log_lines: u64,
    /// Restarts after a trap.
    pub restarts: u64,
}

/// A name and a value, both as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// `Processor`
    pub name: String,
    /// `AMD EPYC 7R13, 2 cores`
    pub value: String,
}
