//! Rows of the terminal tables.

use veeksha_report::SummaryRow;

/// Creates a row without a mark or a note.
pub(crate) fn row(name: &str, cells: Vec<String>) -> SummaryRow {
    SummaryRow {
        name: name.into(),
        cells,
        ..SummaryRow::default()
    }
}
