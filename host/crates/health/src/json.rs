//! JSON form of the report.

use serde::Serialize;
use serde_json::{Map, Value, json};
use veeksha_events::FailedPlugin;
use veeksha_stats::Summary;

use crate::report::{HealthCheck, HealthOutcome, HealthReport};

#[derive(Serialize)]
struct DistributionJson {
    unit: &'static str,
    count: usize,
    min: f64,
    mean: f64,
    median: f64,
    p95: f64,
    p99: f64,
    max: f64,
    std: f64,
}

impl HealthReport {
    /// Returns the report as strict JSON: `passed`, `interrupted`, `failed_plugins` with `plugin`,
    /// `part` and `message`, and `checks`, each with `name`, `outcome` (`passed`, `failed`,
    /// `skipped`), `why` it was skipped or null, `findings`, `fixes`, and `values` and
    /// `distributions` by name with their units.
    pub fn json(&self) -> Value {
        json!({
            "passed": self.passed(),
            "interrupted": self.interrupted,
            "failed_plugins": self.failed_plugins.iter().map(failed_plugin).collect::<Vec<_>>(),
            "checks": self.checks.iter().map(check).collect::<Vec<_>>(),
        })
    }
}

fn failed_plugin(failed: &FailedPlugin) -> Value {
    json!({
        "plugin": failed.plugin,
        "part": failed.part.name(),
        "message": failed.message,
    })
}

fn check(check: &HealthCheck) -> Value {
    let (outcome, why) = match &check.outcome {
        HealthOutcome::Passed => ("passed", None),
        HealthOutcome::Failed => ("failed", None),
        HealthOutcome::Skipped(why) => ("skipped", Some(why)),
    };
    let values: Map<String, Value> = (check.values.iter())
        .map(|named| {
            let value = json!({"unit": named.unit.name(), "value": named.value});
            (named.name.clone(), value)
        })
        .collect();
    let distributions: Map<String, Value> = (check.distributions.iter())
        .map(|sample| {
            (
                sample.name.clone(),
                distribution(sample.unit.name(), &sample.summary),
            )
        })
        .collect();
    json!({
        "name": check.name,
        "outcome": outcome,
        "why": why,
        "findings": check.findings,
        "fixes": check.fixes,
        "values": values,
        "distributions": distributions,
    })
}

fn distribution(unit: &'static str, summary: &Summary) -> Value {
    json!(DistributionJson {
        unit,
        count: summary.count,
        min: summary.min,
        mean: summary.mean,
        median: summary.p50,
        p95: summary.p95,
        p99: summary.p99,
        max: summary.max,
        std: summary.std,
    })
}
