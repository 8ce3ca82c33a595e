//! Parts of the result files that several files share.

use serde_json::{Value, json};
use veeksha_events::FailedPlugin;
use veeksha_stats::Summary;

/// Returns the JSON of a failed plugin.
pub(crate) fn failed_plugin(failed: &FailedPlugin) -> Value {
    json!({ "plugin": failed.plugin, "part": failed.part.name(), "message": failed.message })
}

/// Returns the statistics of a summary with their names.
pub(crate) fn statistics(summary: &Summary) -> [(&'static str, Value); 9] {
    [
        ("Count", json!(summary.count)),
        ("Mean", json!(summary.mean)),
        ("Std", json!(summary.std)),
        ("Min", json!(summary.min)),
        ("P50", json!(summary.p50)),
        ("P90", json!(summary.p90)),
        ("P95", json!(summary.p95)),
        ("P99", json!(summary.p99)),
        ("Max", json!(summary.max)),
    ]
}

/// Returns the JSON of a summary; `null` if nothing was observed.
pub(crate) fn summary_json(summary: &Option<Summary>) -> Value {
    match summary {
        None => Value::Null,
        Some(summary) => statistics(summary)
            .into_iter()
            .map(|(name, value)| (name.to_lowercase(), value))
            .collect(),
    }
}
