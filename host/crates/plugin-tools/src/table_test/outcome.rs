//! The outcome of tests.

use serde_json::{Value, json};

/// A reason why a test did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestProblem {
    /// A condition is not met, or the result is an unexpected one.
    Unmet(String),
    /// The result differs from the snapshot: the lines that differ.
    Snapshot(String),
    /// There is no snapshot.
    NoSnapshot(String),
    /// The test itself is wrong.
    Test(String),
}

/// The outcome of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestOutcome {
    /// The file of the test, relative to the project.
    pub file: String,
    /// The name of the test.
    pub name: String,
    /// Why it did not pass; empty if it did.
    pub problems: Vec<TestProblem>,
    /// True if its snapshot was written.
    pub updated: bool,
}

/// The outcome of all tests of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestReport {
    /// The outcomes, in order.
    pub outcomes: Vec<TestOutcome>,
    /// Tests that a filter left out.
    pub filtered: usize,
}

impl TestReport {
    /// Returns the number of tests that did not pass.
    pub fn failed(&self) -> usize {
        let failed = self
            .outcomes
            .iter()
            .filter(|outcome| !outcome.problems.is_empty());
        failed.count()
    }

    /// Returns the report as text: a line for each test, the problems, and a summary.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        for outcome in &self.outcomes {
            let state = match (outcome.problems.is_empty(), outcome.updated) {
                (true, false) => "ok  ",
                (true, true) => "new ",
                (false, _) => "FAIL",
            };
            lines.push(format!("{state} {}: {}", outcome.file, outcome.name));
            for problem in &outcome.problems {
                lines.push(indented(&problem.text()));
            }
        }
        lines.push(self.summary());
        lines.join("\n")
    }

    fn summary(&self) -> String {
        let failed = self.failed();
        let mut summary = format!("{} passed, {failed} failed", self.outcomes.len() - failed);
        let updated = self.outcomes.iter().filter(|outcome| outcome.updated).count();
        if updated > 0 {
            summary.push_str(&format!(
                ", {} written",
                veeksha_stats::counted(updated as u64, "snapshot")
            ));
        }
        if self.filtered > 0 {
            summary.push_str(&format!(", {} left out by the filter", self.filtered));
        }
        summary
    }

    /// Returns the report as JSON.
    pub fn json(&self) -> Value {
        let outcome = |outcome: &TestOutcome| {
            let problems: Vec<String> = outcome.problems.iter().map(TestProblem::text).collect();
            json!({
                "file": outcome.file,
                "name": outcome.name,
                "passed": problems.is_empty(),
                "problems": problems,
                "snapshot_written": outcome.updated,
            })
        };
        json!({
            "passed": self.outcomes.len() - self.failed(),
            "failed": self.failed(),
            "filtered": self.filtered,
            "tests": self.outcomes.iter().map(outcome).collect::<Vec<_>>(),
        })
    }
}

impl TestProblem {
    fn text(&self) -> String {
        match self {
            TestProblem::Unmet(text) | TestProblem::Test(text) => text.clone(),
            TestProblem::Snapshot(lines) => {
                format!("the result differs from the snapshot (`--update` accepts it):\n{lines}")
            }
            TestProblem::NoSnapshot(file) => format!("there is no snapshot {file}: `--update` writes it"),
        }
    }
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| format!("       {line}").trim_end().to_owned())
        .collect();
    lines.join("\n")
}
