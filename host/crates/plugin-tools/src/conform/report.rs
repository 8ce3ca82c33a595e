//! The results of the checks of conformance.

use serde_json::{Value, json};

use crate::opened::OpenError;

/// The state of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConformState {
    /// The plugin meets the requirement.
    Passed,
    /// It does not; the reason.
    Failed(String),
    /// The requirement could not be checked; the reason.
    Skipped(String),
}

/// The results, in the order of the checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConformReport {
    checks: Vec<(String, ConformState)>,
}

impl ConformReport {
    /// Adds the result of a check: an error is the reason of its failure.
    pub(super) fn add<E: std::fmt::Display>(&mut self, name: impl Into<String>, result: Result<(), E>) {
        let state = match result {
            Ok(()) => ConformState::Passed,
            Err(why) => ConformState::Failed(why.to_string()),
        };
        self.checks.push((name.into(), state));
    }

    /// Adds a check that could not be made.
    pub(super) fn skip(&mut self, name: impl Into<String>, why: impl Into<String>) {
        self.checks.push((name.into(), ConformState::Skipped(why.into())));
    }

    /// Returns the checks by their names.
    pub fn checks(&self) -> &[(String, ConformState)] {
        &self.checks
    }

    /// Returns true if no check failed.
    pub fn conforms(&self) -> bool {
        !self
            .checks
            .iter()
            .any(|(_, state)| matches!(state, ConformState::Failed(_)))
    }

    /// Returns a line for each check, and the reasons.
    pub fn text(&self) -> String {
        let line = |(name, state): &(String, ConformState)| match state {
            ConformState::Passed => format!("✓ {name}"),
            ConformState::Skipped(why) => format!("· {name}: not checked, {why}"),
            ConformState::Failed(why) => format!("✗ {name}\n  {}", why.replace('\n', "\n  ")),
        };
        let mut lines: Vec<String> = self.checks.iter().map(line).collect();
        let failed = self
            .checks
            .iter()
            .filter(|(_, state)| matches!(state, ConformState::Failed(_)))
            .count();
        let total = veeksha_stats::counted(self.checks.len() as u64, "check");
        lines.push(format!("{total}, {failed} failed"));
        lines.join("\n")
    }

    /// Returns the report as JSON.
    pub fn json(&self) -> Value {
        let check = |(name, state): &(String, ConformState)| {
            let (state, why) = match state {
                ConformState::Passed => ("passed", None),
                ConformState::Skipped(why) => ("skipped", Some(why)),
                ConformState::Failed(why) => ("failed", Some(why)),
            };
            json!({ "check": name, "state": state, "reason": why })
        };
        json!({
            "conforms": self.conforms(),
            "checks": self.checks.iter().map(check).collect::<Vec<_>>(),
        })
    }
}

/// Returns the text of a failure to open.
pub(super) fn shown(error: OpenError) -> String {
    match error {
        OpenError::Plugin(failure) => failure.to_string(),
        OpenError::Command(failure) => failure.message,
    }
}
