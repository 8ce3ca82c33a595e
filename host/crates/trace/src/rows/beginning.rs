//! The first row of a packed file, looked at before the whole is unpacked: a few packed kilobytes may be a row of many
//! gigabytes, and nobody needs those on a disk to refuse it.

use std::ops::ControlFlow;

use crate::error::TraceError;
use crate::options::OnBadRow;
use crate::problem::RowProblem;
use crate::rows::csv::header_of;
use crate::rows::format::Shape;
use crate::rows::format::first_of;
use crate::rows::{Limits, RawRow, each_row};
use crate::store::Store;

/// Refuses a file whose beginning, longer than any row, shows that its first row is too long. What the whole file would
/// decide is left to it.
pub(crate) fn check_beginning(
    store: &Store,
    rows_in: Option<&str>,
    on_bad_row: OnBadRow,
    limits: Limits,
) -> Result<(), TraceError> {
    let file = store.regions[0].path.clone();
    let too_long = |line| TraceError::Frame {
        file: file.clone(),
        line,
        problem: RowProblem::TooLong { limit: limits.row },
    };
    let refused = on_bad_row == OnBadRow::Refuse;
    let shape = match first_of(store, rows_in, limits)? {
        First::Shape(shape) => shape,
        First::TooLong { line } if refused => return Err(too_long(line)),
        First::TooLong { .. } | First::Unknown => return Ok(()),
    };
    if let Shape::Csv { at } = shape
        && let Err(problem @ RowProblem::TooLong { .. }) = header_of(store, 0, at, limits)?
    {
        return Err(TraceError::Header { file, problem });
    }
    let result = each_row(store, 0, &shape, limits, &mut |row: RawRow<'_>| match row.bytes {
        Err(RowProblem::TooLong { .. }) if refused => Err(too_long(row.line)),
        _ => Ok(ControlFlow::Break(())),
    });
    match result {
        Err(TraceError::Frame {
            problem: RowProblem::TooLong { .. },
            ..
        }) => result,
        // The beginning ends somewhere, which says nothing about the file.
        Err(TraceError::Frame { .. }) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}

/// What the beginning of a file says of its shape.
pub(crate) enum First {
    /// It has this shape, however it goes on.
    Shape(Shape),
    /// It is one object, longer than a row may be.
    TooLong { line: u64 },
    /// It may go on either way.
    Unknown,
}
