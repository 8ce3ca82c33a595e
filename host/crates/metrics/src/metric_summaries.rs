//! Summaries of the samples of a run.

use veeksha_definitions::Metric;
use veeksha_stats::Summary;

use crate::catalogue::MetricInfo;
use crate::run_samples::RunSamples;

/// The summary of a metric's samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BuiltInSummary {
    /// The metric, which provides names and unit.
    pub metric: Metric,
    /// The statistics, in the metric's unit.
    pub summary: Summary,
}

/// The summary of the samples of a plugin metric.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomSummary {
    /// The name of the metric.
    pub name: String,
    /// The plugin's definition; `None` if the record has samples without a definition.
    pub info: Option<MetricInfo>,
    /// The statistics, in the metric's unit; weighted if samples have weights.
    pub summary: Summary,
}

/// Returns the summaries of the built-in metrics that have samples.
pub(crate) fn built_in(samples: &RunSamples) -> Vec<BuiltInSummary> {
    let with_samples = |metric: Metric| {
        let summary = *samples.summary(metric.name())?;
        Some(BuiltInSummary { metric, summary })
    };
    Metric::all().filter_map(with_samples).collect()
}

/// Returns the summaries of the plugin metrics that have samples.
pub(crate) fn of_plugins(samples: &RunSamples) -> Vec<CustomSummary> {
    let catalogue = samples.catalogue();
    let names = samples.names().into_iter();
    names
        .filter(|name| name.parse::<Metric>().is_err())
        .filter_map(|name| {
            Some(CustomSummary {
                summary: *samples.summary(&name)?,
                info: catalogue.get(&name).cloned(),
                name,
            })
        })
        .collect()
}
