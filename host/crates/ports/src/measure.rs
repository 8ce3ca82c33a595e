//! Plugins that measure and judge: off the timed path, in batches, after the fact.

use std::sync::Arc;

use veeksha_model::{Label, MetricDefinition, Nanos, RequestRecord};

use crate::plugin_failure::PluginFailure;
use crate::workload::WorkloadInfo;

/// Maximum number of metrics that one plugin may define: each has separate files.
pub const MAX_METRICS: usize = 256;

/// The most bytes of the labels of one request, or one session: each request carries its own into
/// every file.
pub const MAX_LABEL_BYTES: usize = 16 << 10;

/// The most bytes of a text of which a plugin may count the tokens in one call. A tokenizer needs
/// about 150 bytes of memory and 50 ns per byte of text, neither of which counts as the plugin's.
pub const MAX_COUNT_BYTES: usize = 1 << 20;

/// A sample as a plugin gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PluginSample {
    /// Index of the metric among the plugin's definitions.
    pub metric: u32,
    /// Finite.
    pub value: f64,
    /// Positive and finite.
    pub weight: f64,
    /// The request that it describes, by its place in the batch; `None` for a sample of the whole
    /// run.
    pub of: Option<u32>,
}

/// Opens instances of a metric plugin.
pub trait MetricFactory: Send + Sync {
    /// Returns the plugin's name, version and permissions.
    fn info(&self) -> &WorkloadInfo;

    /// Opens an instance, on the thread that will use it.
    fn open(&self) -> Result<OpenMetric, PluginFailure>;
}

/// An open metric plugin.
pub struct OpenMetric {
    /// The metrics. Names are checked: `[a-z][a-z0-9_]*`, each once.
    pub definitions: Vec<MetricDefinition>,
    /// The instance that observes the requests.
    pub collector: Box<dyn MetricCollector>,
}

/// Takes finished requests in the order in which they ended, in batches of any size.
pub trait MetricCollector {
    /// Samples of these requests. A sample's metric and request exist, its value and weight are
    /// finite: what is not is a failure that names the sample.
    fn observe(&mut self, batch: &[&RequestRecord]) -> Result<Vec<PluginSample>, PluginFailure>;

    /// Returns the samples that are only known at the end. Called once, last.
    fn finish(&mut self) -> Result<Vec<PluginSample>, PluginFailure>;
}

/// Opens instances of a request check: a plugin that decides for each request whether it was good,
/// as a part of goodput.
pub trait RequestCheckFactory: Send + Sync {
    /// Returns the plugin's name, version and permissions.
    fn info(&self) -> &WorkloadInfo;

    /// Opens an instance, on the thread that will use it.
    fn open(&self) -> Result<Box<dyn RequestCheck>, PluginFailure>;
}

/// Judges finished requests. [`judge`] is how one is asked.
pub trait RequestCheck {
    /// Returns true for each good request: as many results as requests.
    fn judge(&mut self, batch: &[&RequestRecord]) -> Result<Vec<bool>, PluginFailure>;
}

/// Applies a check: returns true for each good request, as many results as requests.
///
/// A check only sees answered requests: a failed or cancelled request is never good. All checks are
/// called through this function, so a rule gives the same verdicts in every language.
///
/// # Errors
/// Those of the check.
pub fn judge(check: &mut dyn RequestCheck, batch: &[&RequestRecord]) -> Result<Vec<bool>, PluginFailure> {
    let answered: Vec<&RequestRecord> = batch.iter().copied().filter(|record| record.is_ok()).collect();
    let judged = if answered.is_empty() {
        Vec::new()
    } else {
        check.judge(&answered)?
    };
    let mut judged = judged.into_iter();
    let good = |record: &&RequestRecord| record.is_ok() && judged.next().unwrap_or(false);
    Ok(batch.iter().map(good).collect())
}

/// A plugin that judges a run by its results.
pub trait SloCheck: Send + Sync {
    /// Returns the plugin's name, version and permissions.
    fn info(&self) -> &WorkloadInfo;

    /// Returns its verdicts: at least one, each with a distinct name.
    fn check(&self, results: Arc<dyn RunResults>) -> Result<Vec<SloVerdict>, PluginFailure>;
}

/// One verdict of an SLO check.
#[derive(Clone, Debug, PartialEq)]
pub struct SloVerdict {
    /// Name of the objective; not empty.
    pub name: String,
    /// True if the objective is met.
    pub met: bool,
    /// The observed value; finite. `None` if there was nothing to observe.
    pub observed: Option<f64>,
    /// The required value; finite.
    pub threshold: f64,
    /// One readable line; may be empty.
    pub detail: String,
}

/// Summary statistics of one metric's samples, in the metric's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MetricStats {
    /// Number of samples; if 0, the other fields are 0.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the values themselves.
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
    /// 99th percentile.
    pub p99: f64,
}

/// Statistics of one window of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowStats {
    /// Start of the window.
    pub from: Nanos,
    /// End of the window.
    pub to: Nanos,
    /// Of the samples of requests that were intended within it.
    pub stats: MetricStats,
}

/// The results of a run, as a plugin that judges may read them.
pub trait RunResults: Send + Sync {
    /// The names of all metrics that have samples, built in or not.
    fn metrics(&self) -> Vec<String>;

    /// Returns a run-level value by name: `error_rate`, `goodput`, `requests_per_second`, ...
    /// `None` if the name is unknown.
    fn run_metric(&self, name: &str) -> Option<f64>;

    /// Returns the metric's statistics over the samples of requests that have all these labels. The
    /// count is 0 if there are none.
    fn stats(&self, metric: &str, filter: &[Label]) -> MetricStats;

    /// Any percentile (0 to 100) of the same samples; `None` if there are none.
    fn percentile(&self, metric: &str, percent: f64, filter: &[Label]) -> Option<f64>;

    /// Returns the same statistics in windows of this length, starting at the first intended
    /// instant; windows without samples have count 0.
    fn windows(&self, metric: &str, filter: &[Label], length: Nanos) -> Vec<WindowStats>;
}
