//! Plugins that measure and judge: off the timed path, in batches, after the fact.

use std::sync::Arc;

use veeksha_model::{Label, MetricDefinition, Nanos, RequestRecord};

use crate::{PluginFailure, WorkloadInfo};

/// The most metrics that one plugin may define: each has files of its own.
pub const MAX_METRICS: usize = 256;

/// The most bytes of the labels of one request, or one session: each request carries its own into every file.
pub const MAX_LABEL_BYTES: usize = 16 << 10;

/// A sample as a plugin gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PluginSample {
    /// Which of the plugin's metrics, by its place among the definitions.
    pub metric: u32,
    /// Finite.
    pub value: f64,
    /// Positive and finite.
    pub weight: f64,
    /// The request that it describes, by its place in the batch; `None` for a sample of the whole run.
    pub of: Option<u32>,
}

/// A plugin that measures metrics of its own.
pub trait MetricFactory: Send + Sync {
    /// What the plugin is.
    fn info(&self) -> &WorkloadInfo;

    /// Opens an instance, on the thread that will use it.
    fn open(&self) -> Result<OpenMetric, PluginFailure>;
}

/// An open metric plugin.
pub struct OpenMetric {
    /// What it measures. Names are checked: `[a-z][a-z0-9_]*`, each once.
    pub definitions: Vec<MetricDefinition>,
    /// What takes the requests.
    pub collector: Box<dyn MetricCollector>,
}

/// Takes finished requests in the order in which they ended, in batches of any size.
pub trait MetricCollector {
    /// Samples of these requests. A sample's metric and request exist, its value and weight are finite: what is not is a failure that
    /// names the sample.
    fn observe(&mut self, batch: &[&RequestRecord]) -> Result<Vec<PluginSample>, PluginFailure>;

    /// What can only be said at the end. Called once, last.
    fn finish(&mut self) -> Result<Vec<PluginSample>, PluginFailure>;
}

/// A plugin that says of each request whether it was good: part of goodput.
pub trait RequestCheckFactory: Send + Sync {
    /// What the plugin is.
    fn info(&self) -> &WorkloadInfo;

    /// Opens an instance, on the thread that will use it.
    fn open(&self) -> Result<Box<dyn RequestCheck>, PluginFailure>;
}

/// Judges finished requests. [`judge`] is how one is asked.
pub trait RequestCheck {
    /// Whether each request was good: as many answers as requests.
    fn judge(&mut self, batch: &[&RequestRecord]) -> Result<Vec<bool>, PluginFailure>;
}

/// Whether each of these requests was good: as many answers as requests.
///
/// A check is shown the requests that were answered and no others: one that failed or was cancelled is never good, whatever a check
/// would say of it. All checks are asked through here, so a rule gives the same verdicts in whatever language it is written.
///
/// # Errors
/// Those of the check.
pub fn judge(check: &mut dyn RequestCheck, batch: &[&RequestRecord]) -> Result<Vec<bool>, PluginFailure> {
    let answered: Vec<&RequestRecord> = batch.iter().copied().filter(|record| record.is_ok()).collect();
    let mut judged = match answered.is_empty() {
        true => Vec::new(),
        false => check.judge(&answered)?,
    }
    .into_iter();
    let good = |record: &&RequestRecord| record.is_ok() && judged.next().unwrap_or(false);
    Ok(batch.iter().map(good).collect())
}

/// A plugin that judges a run by its results.
pub trait SloCheck: Send + Sync {
    /// What the plugin is.
    fn info(&self) -> &WorkloadInfo;

    /// Its verdicts: at least one, each with a name of its own.
    fn check(&self, results: Arc<dyn RunResults>) -> Result<Vec<SloVerdict>, PluginFailure>;
}

/// What a plugin says of an objective.
#[derive(Clone, Debug, PartialEq)]
pub struct SloVerdict {
    /// Its name, not empty.
    pub name: String,
    /// Whether it is met.
    pub met: bool,
    /// What was observed; finite. `None` where there was nothing to observe.
    pub observed: Option<f64>,
    /// What was asked; finite.
    pub threshold: f64,
    /// One line for a person; may be empty.
    pub detail: String,
}

/// The samples of one metric in a few figures, in the metric's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// How many; the others are 0 where this is.
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

/// The figures of one stretch of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowStats {
    /// Its beginning.
    pub from: Nanos,
    /// Its end.
    pub to: Nanos,
    /// Of the samples of requests that were intended within it.
    pub stats: Stats,
}

/// The results of a run, as a plugin that judges may read them.
pub trait RunResults: Send + Sync {
    /// The names of all metrics that have samples, built in or not.
    fn metrics(&self) -> Vec<String>;

    /// Figures of the whole run by name: `error_rate`, `goodput`, `requests_per_second`, ... `None` if there is no such figure.
    fn figure(&self, name: &str) -> Option<f64>;

    /// The metric's figures over the samples of requests that have all these labels. Count 0 if there are none.
    fn stats(&self, metric: &str, filter: &[Label]) -> Stats;

    /// Any percentile (0 to 100) of the same samples; `None` if there are none.
    fn percentile(&self, metric: &str, percent: f64, filter: &[Label]) -> Option<f64>;

    /// The same figures in windows of this length, from the first intended instant on; windows without samples have count 0.
    fn windows(&self, metric: &str, filter: &[Label], length: Nanos) -> Vec<WindowStats>;
}
