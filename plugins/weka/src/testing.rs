//! What the tests of several files share.

use veeksha_plugin::flavor::{self, Row};

use crate::row::Cells;

/// A conversation from a JSON object; it is row 1.
pub(crate) fn row(cells: &str) -> Row<Cells> {
    let mut group = flavor::group(0, "", [(1, None, cells.to_owned())]).unwrap();
    group.rows.remove(0)
}
