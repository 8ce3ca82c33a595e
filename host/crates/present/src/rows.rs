//! Rows of the terminal tables.

use veeksha_report::Row;

/// A plain row: no mark, no note.
pub(crate) fn row(name: &str, cells: Vec<String>) -> Row {
    Row {
        name: name.into(),
        cells,
        ..Row::default()
    }
}
