//! Check of a compressed file's first row before the whole file is decompressed: a few compressed
//! kilobytes may hold a row of many gigabytes, which should be refused without writing them to
//! disk.

use std::ops::ControlFlow;

use crate::error::TraceError;
use crate::options::BadRowRule;
use crate::problem::RowProblem;
use crate::rows::csv::header_of;
use crate::rows::each_row::each_row;
use crate::rows::format::first_of;
use crate::rows::raw_row::{RawRow, ReadLimits};
use crate::rows::shape::{First, Shape};
use crate::store::Store;

/// Refuses a file whose beginning, longer than any row, proves that its first row is too long. All
/// other decisions are left to reading the whole file.
pub(crate) fn check_beginning(
    store: &Store,
    rows_in: Option<&str>,
    on_bad_row: BadRowRule,
    limits: ReadLimits,
) -> Result<(), TraceError> {
    let file = store.regions[0].path.clone();
    let too_long = |line| TraceError::Frame {
        file: file.clone(),
        line,
        problem: RowProblem::TooLong { limit: limits.row },
    };
    let refused = on_bad_row == BadRowRule::Refuse;
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
        // The beginning is truncated, which is not a property of the file.
        Err(TraceError::Frame { .. }) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}
