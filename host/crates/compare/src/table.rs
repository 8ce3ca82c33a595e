//! Comparison as the rows of a table.

use crate::comparison::{ComparedSide, Comparison};
use crate::row::{ComparisonRow, SideValue};
use crate::text::{change_text, interval_text, row_name, spread_text, value_text};
use crate::verdict::DifferenceVerdict;

/// Table of one candidate against the baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparisonTable {
    /// `B against A`.
    pub title: String,
    /// Headings of the cells.
    pub columns: Vec<String>,
    /// One row for each metric and statistic.
    pub rows: Vec<TableRow>,
    /// Reasons why the sides are not comparable; to be printed first.
    pub obstacles: Vec<String>,
    /// Remarks for the reader; to be printed last.
    pub remarks: Vec<String>,
    /// Settings that differ: `traffic.rate: 10 → 20`.
    pub settings: Vec<String>,
    /// Differences between the decisions of agents.
    pub decisions: Vec<String>,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// Name of the metric and statistic.
    pub name: String,
    /// Formatted baseline, candidate, difference, interval and verdict; empty if absent.
    pub cells: Vec<String>,
    /// Remark on the row.
    pub note: Option<String>,
    /// Verdict, which decides the highlighting.
    pub verdict: DifferenceVerdict,
}

impl Comparison {
    /// Returns one table per candidate.
    pub fn tables(&self) -> Vec<ComparisonTable> {
        self.candidates
            .iter()
            .map(|candidate| self.table(candidate))
            .collect()
    }

    fn table(&self, candidate: &ComparedSide) -> ComparisonTable {
        let confidence = format!("{} interval", veeksha_stats::share(self.options.confidence));
        let columns = [
            candidate.baseline.label.clone(),
            candidate.side.label.clone(),
            "difference".into(),
            confidence,
            "verdict".into(),
        ];
        ComparisonTable {
            title: candidate.title(),
            columns: columns.to_vec(),
            rows: candidate.rows.iter().map(table_row).collect(),
            obstacles: candidate.obstacles.clone(),
            remarks: candidate.remark_texts(),
            settings: candidate.settings.iter().map(setting_text).collect(),
            decisions: candidate
                .decisions
                .as_ref()
                .map_or_else(Vec::new, |decisions| decisions.lines.clone()),
        }
    }
}

fn table_row(row: &ComparisonRow) -> TableRow {
    let side =
        |side: Option<SideValue>| side.map_or_else(String::new, |side| side_text(&side, row.display_unit()));
    TableRow {
        name: row_name(row),
        cells: vec![
            side(row.baseline),
            side(row.candidate),
            change_text(row),
            interval_text(row),
            row.verdict.to_string(),
        ],
        note: row.remark.clone(),
        verdict: row.verdict,
    }
}

/// Formats a value, with its spread if there are several runs.
fn side_text(side: &SideValue, unit: &str) -> String {
    match side.spread {
        Some(spread) => spread_text(side.value, spread.std, unit),
        None => value_text(side.value, unit),
    }
}

pub(crate) fn setting_text(setting: &crate::comparable::SettingDifference) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".into());
    format!(
        "{}: {} → {}",
        setting.name,
        text(&setting.baseline),
        text(&setting.candidate)
    )
}
