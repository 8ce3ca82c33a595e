//! What a page shows, apart from its requests: plain data, filled in by whoever has it.
//!
//! Everything is optional. A part that is empty has no section on the page; a number that is `None` is shown as a dash, never as 0.
//!
//! **Units.** A number comes with its unit, and the page writes both: `s` (seconds; shown as µs, ms, s or min), `share` (`0.0..=1.0`; shown in
//! percent), `tokens`, `tokens/s`, `requests/s`; an empty text or `1` is a plain number; anything else is written behind the number as it is.

use serde::Serialize;

use crate::request::Requests;

/// Everything that a page shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PageData {
    /// What was run, when, and how it ended.
    pub run: RunFacts,
    /// The run's judgement of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
    /// The few figures of the whole run that stand at the top, in the order in which they are
    /// shown; six are a good number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// Metrics, built in and custom alike, in the order in which they are shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// What was asked of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slos: Vec<Slo>,
    /// Load over time, of all requests. Where it is absent, and every request is on the page, the
    /// page computes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curves: Option<Curves>,
    /// The requests ([`crate::RequestSample`]).
    pub requests: Requests,
    /// Failures by class, the most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failures>,
    /// Requests that were known and never sent, by reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub never_sent: Vec<NeverSent>,
    /// Figures of stretches of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slices: Option<Slices>,
    /// Health checks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<Check>,
    /// The resolved configuration as YAML. Secrets must have been removed: the page shows it as it
    /// is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// The plugins that took part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<Plugin>,
    /// The machine that measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machine: Vec<Fact>,
    /// Versions of what took part: host, server, model, tokenizer, contract.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<Fact>,
}

impl PageData {
    /// The data as strict JSON on one line: what [`crate::Live::publish`] takes. A number that is
    /// not finite becomes `null`.
    pub fn json(&self) -> String {
        // Maps have text keys and nothing here fails to serialise; a page with no data would still
        // be a page.
        serde_json::to_string(self).unwrap_or_else(|_| "null".to_owned())
    }
}

/// What was run, when, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunFacts {
    /// The page's title: the scenario's name or the run folder's.
    pub name: String,
    /// How far the run is.
    pub state: RunState,
    /// One line beneath the title: what was run against what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Short facts beneath the title: model, server, traffic, seed, workload digest, ...
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
    /// Wall-clock time at the run's zero, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_unix: Option<f64>,
    /// How long the run took, or, while it goes on, has taken so far, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed: Option<f64>,
    /// How long it is going to take at most, in seconds: shown as progress while it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<f64>,
    /// What a reader must know before the figures: `the record ends in the middle of a row: ...`.
    /// One sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It goes on.
    Running,
    /// It came to its end.
    #[default]
    Ended,
    /// The user stopped it.
    Interrupted,
    /// Its record ends before it did.
    Cut,
}

/// How far figures can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The client's part in every certified metric is small.
    #[default]
    Valid,
    /// The client's part is not small, or not known.
    Degraded,
    /// The figures say more about the client than about the server.
    Invalid,
}

/// A run's judgement of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Certificate {
    /// The worst of the findings' verdicts.
    pub verdict: Verdict,
    /// What it rests on, in words: `the run's own record and a self-test`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basis: Option<String>,
    /// What it has to say; those of one metric that only say that it is well may be left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// How far the client may have falsified each metric.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Bound>,
}

/// Something that the certificate has to say.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Finding {
    /// What it means for the run; [`Verdict::Valid`] is a remark.
    pub verdict: Verdict,
    /// The name of the metric it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// In words.
    pub what: String,
    /// What can be done about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// How far the client may have falsified a metric, in the metric's unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Bound {
    /// The metric's name.
    pub metric: String,
    /// Samples.
    pub count: u64,
    /// Mean absolute error of a sample: it decides.
    pub mean_error: f64,
    /// 99th percentile of the absolute errors: the ± that stands beside the metric.
    pub p99_error: f64,
    /// `mean_error` as a share of the metric's typical value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<f64>,
    /// Where `p99_error` comes from, in words: `estimated` or `measured by the self-test`.
    pub source: String,
}

/// A figure of the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// Its name in files and objectives: `goodput`.
    pub name: String,
    /// Its name for people: `Goodput`.
    pub label: String,
    /// The figure; `None` if there is none.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: String,
    /// How many samples or requests it rests on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// What they are: `answered requests`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count_of: Option<String>,
    /// The ± of the figure, in its unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// One line more: `2,871 of 3,000 requests met every objective`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A metric, built in or custom.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Metric {
    /// Its name in files and objectives. `ttfc`, `ttfc_from_intended`, `tbc`, `tpot`,
    /// `end_to_end_latency`, `e2e_from_intended`, `num_output_tokens`, `output_throughput` and
    /// those of custom samples ([`crate::PageRequest::custom`]) have values for each request, and
    /// with them charts; others have figures only.
    pub name: String,
    /// Its name for people: `Time to first chunk`.
    pub label: String,
    /// Its unit.
    pub unit: String,
    /// Which way it is good: `higher`, `less` or `neither`.
    pub better: String,
    /// What it is and how it is computed.
    pub definition: String,
    /// The plugin that measures it; `None` for a built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// Its figures over the whole run; `None` if it has no samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<MetricSummary>,
}

/// The samples of a metric in a few figures, in the metric's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MetricSummary {
    /// How many samples.
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

/// An objective and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Slo {
    /// The user's name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// As it was written: `p99(ttfc) < 500ms`. Of a plugin's objective: its name.
    pub expression: String,
    /// What was observed; `None` if there was nothing to observe.
    pub observed: Option<f64>,
    /// What was asked.
    pub bound: Option<f64>,
    /// `<`, `<=`, `>` or `>=`; `None` where a plugin judged and its outcome does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<String>,
    /// The unit of both.
    pub unit: String,
    /// How many samples it rests on; of an objective with windows, those of the worst one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Whether it is met; `None` while that is open.
    pub met: Option<bool>,
    /// The worst stretch, of an objective with windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_window: Option<WorstWindow>,
    /// One line for a person: the plugin's word, or why nothing was observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The plugin that judged, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
}

/// The worst stretch of an objective with windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WorstWindow {
    /// Its beginning, in seconds from the start of the run.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// How many windows with samples there are.
    pub of: u64,
}

/// Load over time in steps of one length, of all requests of the run. Lists are as long as each
/// other, or empty if not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Curves {
    /// The beginning of the first step, in seconds from the start of the run.
    pub from: f64,
    /// The length of a step in seconds, positive.
    pub step: f64,
    /// Time-weighted mean number of requests between dispatch and completion.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_flight: Vec<f64>,
    /// The fewest of them at any instant of the step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub least_in_flight: Vec<f64>,
    /// The most of them at any instant of the step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub most_in_flight: Vec<f64>,
    /// Of them, before their first generated chunk.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_prefill: Vec<f64>,
    /// Of them, between the first generated chunk and the last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_decode: Vec<f64>,
    /// Output tokens per second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub output_tokens_per_second: Vec<f64>,
    /// Prompt tokens of requests whose first generated chunk came in the step, per second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub input_tokens_per_second: Vec<f64>,
    /// Requests completed per second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests_per_second: Vec<f64>,
}

/// Failures of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Failures {
    /// The class's name (`ErrorClass::name`): it selects its requests on the page.
    pub class: String,
    /// How many.
    pub count: u64,
    /// The message of the first one.
    pub first_message: String,
    /// The first one, as `session/node`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_request: Option<String>,
    /// When the first one completed, in seconds from the start of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_at: Option<f64>,
}

/// Requests that were known and never sent, of one reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NeverSent {
    /// The reason's name (`NeverSentReason::name`).
    pub reason: String,
    /// How many.
    pub count: u64,
    /// In words: `the run ended before they were due`.
    pub meaning: String,
}

/// Figures of stretches of the run, as a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Slices {
    /// What the columns are.
    pub columns: Vec<SliceColumn>,
    /// One row for each stretch, in their order.
    pub rows: Vec<Slice>,
}

/// A column of [`Slices`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SliceColumn {
    /// For people: `TTFC P99`.
    pub label: String,
    /// The unit.
    pub unit: String,
}

/// A stretch of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Slice {
    /// Its beginning, in seconds from the start of the run.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// One value for each column.
    pub values: Vec<Option<f64>>,
}

/// How a health check came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// Nothing to object.
    #[default]
    Passed,
    /// Worth a look.
    Warned,
    /// Failed.
    Failed,
    /// It does not apply to this run.
    Skipped,
}

/// A health check.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Check {
    /// Its name for people.
    pub name: String,
    /// How it came out.
    pub outcome: CheckOutcome,
    /// One line: what was compared, and what was seen.
    pub summary: String,
    /// More lines, shown on demand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// A plugin that took part.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plugin {
    /// Its name.
    pub name: String,
    /// What it did: `workload`, `metric`, `slo-check`, ...
    pub role: String,
    /// Its version, where it says one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where it came from: a path or `shipped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The digest of its bytes, with the name of the function: `blake3:...`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// A name and a value, both as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// `Processor`
    pub name: String,
    /// `AMD EPYC 7R13, 2 cores`
    pub value: String,
}
