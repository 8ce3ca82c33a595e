//! Rows of the terminal tables.

use veeksha_report::Row;

/// Creates a row without a mark or a note.
pub(crate) fn row(name: &str, cells: Vec<String>) -> Row {
    Row {
        name: name.into(),
        cells,
        ..Row::default()
    }
}
