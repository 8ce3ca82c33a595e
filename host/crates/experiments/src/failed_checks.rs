//! Failed health checks of one run of a sweep.

use serde_json::Value;

use crate::outcome::CellOutcome;

/// A failed check with its first finding.
pub(crate) struct FailedCheck<'o> {
    pub(crate) name: &'o str,
    pub(crate) finding: &'o str,
}

/// Returns the failed checks of a run.
pub(crate) fn failed_checks(outcome: &CellOutcome) -> impl Iterator<Item = FailedCheck<'_>> {
    let checks = outcome.health_checks.get("checks").and_then(Value::as_array);
    let failed = checks
        .into_iter()
        .flatten()
        .filter(|check| check["outcome"] == "failed");
    failed.filter_map(|check| {
        Some(FailedCheck {
            name: check["name"].as_str()?,
            finding: check["findings"][0].as_str().unwrap_or_default(),
        })
    })
}

/// Returns the names of a run's failed checks; `None` if it was not checked.
pub(crate) fn failed_names(outcome: &CellOutcome) -> Option<Vec<&str>> {
    let checked = !outcome.health_checks.is_null();
    checked.then(|| failed_checks(outcome).map(|check| check.name).collect())
}
