//! The report for people: `health_check_results.txt`.

use std::fmt::{self, Write};

use veeksha_stats::{Summary, duration, number, share};

use crate::report::{Check, HealthReport, Outcome, Unit};

const LINE: &str = "--------------------------------------------------------------------------------";

impl HealthReport {
    /// The report as plain text, a section for each check: its name, PASSED, FAILED or SKIPPED, what was found, numbers and samples.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        let outcome =
            |wanted: fn(&Outcome) -> bool| self.checks.iter().filter(|check| wanted(&check.outcome)).count();
        writeln!(
            text,
            "Health checks: {}",
            if self.passed() { "PASSED" } else { "FAILED" }
        )?;
        writeln!(
            text,
            "{} passed, {} failed, {} skipped",
            outcome(|outcome| *outcome == Outcome::Passed),
            outcome(|outcome| *outcome == Outcome::Failed),
            outcome(|outcome| matches!(outcome, Outcome::Skipped(_))),
        )?;
        for check in &self.checks {
            writeln!(text, "{LINE}")?;
            write_check(text, check)?;
        }
        Ok(())
    }
}

fn write_check(text: &mut String, check: &Check) -> fmt::Result {
    writeln!(text, "{}", check.name)?;
    match &check.outcome {
        Outcome::Passed => writeln!(text, "Status: PASSED")?,
        Outcome::Failed => writeln!(text, "Status: FAILED")?,
        Outcome::Skipped(why) => writeln!(text, "Status: SKIPPED ({why})")?,
    }
    for finding in &check.findings {
        writeln!(text, "  * {finding}")?;
    }
    let width = check
        .figures
        .iter()
        .map(|figure| figure.name.chars().count())
        .max()
        .unwrap_or(0);
    for figure in &check.figures {
        writeln!(
            text,
            "  {:width$}  {}",
            figure.name,
            with_unit(figure.value, figure.unit)
        )?;
    }
    for sample in &check.distributions {
        write_sample(text, &sample.name, sample.unit, &sample.summary)?;
    }
    Ok(())
}

fn write_sample(text: &mut String, name: &str, unit: Unit, summary: &Summary) -> fmt::Result {
    let thin = if summary.p99_is_thin() {
        "; too few for a P99"
    } else {
        ""
    };
    writeln!(text, "  {name} (n = {}{thin})", summary.count)?;
    let figures = [
        ("min", summary.min),
        ("mean", summary.mean),
        ("median", summary.p50),
        ("P95", summary.p95),
        ("P99", summary.p99),
        ("max", summary.max),
        ("std", summary.std),
    ];
    let figures = figures.map(|(name, value)| format!("{name} {}", with_unit(value, unit)));
    writeln!(text, "    {}", figures.join(", "))
}

fn with_unit(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Seconds => duration(value),
        Unit::Share if value < 0.0 => format!("-{}", share(-value)),
        Unit::Share => share(value),
        Unit::PerSecond => format!("{}/s", number(value)),
        Unit::Tokens | Unit::Count => number(value),
    }
}
