//! The units of objectives, as shown on the terminal and on the page.

use veeksha_metrics::{Metric, PluginVerdict, RunMetric, SloResult};

/// Returns the unit of an objective: `share` for run-level values without a unit and for metrics
/// that are shares. Other values without a unit are plain numbers.
pub(crate) fn objective_unit(result: &SloResult) -> &str {
    let is_share = result.sample_count.is_none() || result.metric.parse().is_ok_and(Metric::is_share);
    match result.unit.as_str() {
        "1" if is_share => "share",
        unit => unit,
    }
}

/// Returns the unit of a plugin's verdict; empty if it is unknown.
pub(crate) fn verdict_unit(of_plugin: &PluginVerdict) -> &str {
    match of_plugin.unit.as_deref() {
        Some("1") if RunMetric::of_name(&of_plugin.verdict.name).is_some() => "share",
        Some(unit) => unit,
        None => "",
    }
}
