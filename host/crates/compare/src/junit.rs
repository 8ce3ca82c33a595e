//! Comparison as JUnit XML.

use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};
use veeksha_model::printable;

use crate::comparison::{ComparedSide, Comparison};
use crate::fail_if::{Decision, FailOutcome};
use crate::row::{ComparisonRow, SideValue};
use crate::text::{change_text, interval_text, row_name, value_text};
use crate::verdict::DifferenceVerdict;

impl Comparison {
    /// Returns a suite for each candidate: a case for comparability, one for each metric, and one
    /// for the decision.
    ///
    /// Without a decision a metric that is worse is a failure. With one only the decision's case
    /// fails, so that the report agrees with the exit code. A metric without enough data is
    /// skipped.
    pub fn junit(&self, decision: Option<&Decision>) -> Result<String, SerializeError> {
        let mut report = Report::new("veeksha-host compare");
        for (place, candidate) in self.candidates.iter().enumerate() {
            let mut suite = TestSuite::new(printable(&candidate.title()));
            suite.add_test_case(comparable(candidate, decision));
            for row in &candidate.rows {
                suite.add_test_case(value_case(row, decision));
            }
            if let Some(decision) = decision {
                suite.add_test_case(gate(decision, place));
            }
            report.add_test_suite(suite);
        }
        report.to_string()
    }
}

fn failed(kind: NonSuccessKind, message: String) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(printable(&message));
    status
}

fn skipped(message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(printable(message));
    status
}

fn comparable(candidate: &ComparedSide, decision: Option<&Decision>) -> TestCase {
    let status = if candidate.obstacles.is_empty() {
        TestCaseStatus::success()
    } else if decision.is_some() {
        skipped(&candidate.obstacles.join("; "))
    } else {
        failed(NonSuccessKind::Error, candidate.obstacles.join("; "))
    };
    let mut case = TestCase::new("the runs can be compared", status);
    case.set_classname("compare");
    let settings = candidate.settings.iter().map(crate::table::setting_text);
    let texts = candidate.remark_texts().into_iter().chain(settings);
    let lines: Vec<String> = texts.map(|text| printable(&text)).collect();
    case.set_system_out(lines.join("\n"));
    case
}

fn value_case(row: &ComparisonRow, decision: Option<&Decision>) -> TestCase {
    let text = sentence(row);
    let status = match row.verdict {
        DifferenceVerdict::Worse if decision.is_none() => failed(NonSuccessKind::Failure, text.clone()),
        DifferenceVerdict::NotEnoughData
        | DifferenceVerdict::TooFewRuns
        | DifferenceVerdict::SurvivorsOnly
        | DifferenceVerdict::CacheStatesDiffer
        | DifferenceVerdict::NotComparable => skipped(&text),
        _ => TestCaseStatus::success(),
    };
    let mut case = TestCase::new(printable(&row_name(row)), status);
    case.set_classname(printable(&format!("compare.{}", row.name)));
    case.set_system_out(printable(&text));
    case
}

/// Formats a row: `worse: 100 ms → 110 ms, +10 ms (+10 %), +8 % … +12 %`.
pub(crate) fn sentence(row: &ComparisonRow) -> String {
    let side = |side: &Option<SideValue>| {
        side.map_or_else(
            || "none".to_owned(),
            |side| value_text(side.value, row.display_unit()),
        )
    };
    let values = format!(
        "{}: {} → {}",
        row.verdict,
        side(&row.baseline),
        side(&row.candidate)
    );
    let parts = [
        values,
        change_text(row),
        interval_text(row),
        row.remark.clone().unwrap_or_default(),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

fn gate(decision: &Decision, place: usize) -> TestCase {
    let candidate = decision.candidates.get(place);
    let reasons = candidate.map_or_else(String::new, |candidate| candidate.reasons.join("; "));
    let status = match candidate.map(|candidate| candidate.outcome) {
        None | Some(FailOutcome::Passes) => TestCaseStatus::success(),
        Some(FailOutcome::Fails) => failed(NonSuccessKind::Failure, reasons),
        Some(FailOutcome::Undecided) => failed(NonSuccessKind::Error, format!("undecided: {reasons}")),
    };
    let mut case = TestCase::new(format!("fail-if {}", decision.expression), status);
    case.set_classname("compare");
    case
}
