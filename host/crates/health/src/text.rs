//! Plain-text form of the report: `health_check_results.txt`.

use std::fmt::{self, Write};

use veeksha_stats::{Summary, duration, number, share};

use crate::report::{HealthCheck, HealthOutcome, HealthReport, ValueUnit};

const LINE: &str = "--------------------------------------------------------------------------------";

impl HealthReport {
    /// Returns the report as plain text: the interruption of the run and failed plugins, if any,
    /// and one section per check with its name, PASSED, FAILED or SKIPPED, findings, fixes, values
    /// and distributions.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        let outcome = |wanted: fn(&HealthOutcome) -> bool| {
            self.checks.iter().filter(|check| wanted(&check.outcome)).count()
        };
        writeln!(
            text,
            "Health checks: {}",
            if self.passed() { "PASSED" } else { "FAILED" }
        )?;
        writeln!(
            text,
            "{} passed, {} failed, {} skipped",
            outcome(|outcome| *outcome == HealthOutcome::Passed),
            outcome(|outcome| *outcome == HealthOutcome::Failed),
            outcome(|outcome| matches!(outcome, HealthOutcome::Skipped(_))),
        )?;
        if self.interrupted {
            writeln!(
                text,
                "The run was interrupted: the checks cover only its part until then."
            )?;
        }
        for failed in &self.failed_plugins {
            let role = failed.part.name();
            writeln!(
                text,
                "The plugin `{}` ({role}) failed {}.",
                failed.plugin, failed.message
            )?;
        }
        for check in &self.checks {
            writeln!(text, "{LINE}")?;
            write_check(text, check)?;
        }
        Ok(())
    }
}

fn write_check(text: &mut String, check: &HealthCheck) -> fmt::Result {
    writeln!(text, "{}", check.name)?;
    match &check.outcome {
        HealthOutcome::Passed => writeln!(text, "Status: PASSED")?,
        HealthOutcome::Failed => writeln!(text, "Status: FAILED")?,
        HealthOutcome::Skipped(why) => writeln!(text, "Status: SKIPPED ({why})")?,
    }
    for finding in &check.findings {
        writeln!(text, "  * {finding}")?;
    }
    for fix in &check.fixes {
        writeln!(text, "  fix: {fix}")?;
    }
    let width = check
        .values
        .iter()
        .map(|value| value.name.chars().count())
        .max()
        .unwrap_or(0);
    for value in &check.values {
        writeln!(
            text,
            "  {:width$}  {}",
            value.name,
            with_unit(value.value, value.unit)
        )?;
    }
    for sample in &check.distributions {
        write_sample(text, &sample.name, sample.unit, &sample.summary)?;
    }
    Ok(())
}

fn write_sample(text: &mut String, name: &str, unit: ValueUnit, summary: &Summary) -> fmt::Result {
    let thin = if summary.p99_is_thin() {
        "; too few for a P99"
    } else {
        ""
    };
    writeln!(text, "  {name} (n = {}{thin})", summary.count)?;
    let values = [
        ("min", summary.min),
        ("mean", summary.mean),
        ("median", summary.p50),
        ("P95", summary.p95),
        ("P99", summary.p99),
        ("max", summary.max),
        ("std", summary.std),
    ];
    let values = values.map(|(name, value)| format!("{name} {}", with_unit(value, unit)));
    writeln!(text, "    {}", values.join(", "))
}

fn with_unit(value: f64, unit: ValueUnit) -> String {
    match unit {
        ValueUnit::Seconds => duration(value),
        ValueUnit::Share if value < 0.0 => format!("-{}", share(-value)),
        ValueUnit::Share => share(value),
        ValueUnit::PerSecond => format!("{}/s", number(value)),
        ValueUnit::Tokens | ValueUnit::Count => number(value),
    }
}
