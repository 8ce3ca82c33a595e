//! JSON Lines: each line that is not blank is a row.

use crate::error::TraceError;
use crate::problem::RowProblem;
use crate::rows::raw_row::{RawRow, RowVisitor};
use crate::window::FileWindow;

pub(crate) fn each(
    mut window: FileWindow<'_>,
    limit: usize,
    each: &mut impl RowVisitor,
) -> Result<(), TraceError> {
    let mut line = 1;
    loop {
        let end = window.line_end(limit)?;
        let rest = window.rest();
        let row = &rest[..end.unwrap_or(rest.len())];
        let whole = end.is_some() || window.ended();
        let row = row.strip_suffix(b"\r").unwrap_or(row);
        if !whole || row.len() > limit || !blank(row) {
            let go_on = each(RawRow {
                offset: window.offset(),
                line,
                bytes: if !whole || row.len() > limit {
                    Err(RowProblem::TooLong { limit })
                } else {
                    Ok(row)
                },
                last: end.is_none(),
            })?;
            if go_on.is_break() {
                return Ok(());
            }
        }
        match end {
            Some(end) => window.consume(end + 1),
            None if skip_line(&mut window)? => {}
            None => return Ok(()),
        }
        line += 1;
    }
}

pub(crate) fn blank(row: &[u8]) -> bool {
    row.iter().all(u8::is_ascii_whitespace)
}

/// Skips the current line without holding it; returns false at the end of the file.
pub(crate) fn skip_line(window: &mut FileWindow<'_>) -> Result<bool, TraceError> {
    loop {
        let rest = window.rest();
        if let Some(end) = memchr::memchr(b'\n', rest) {
            window.consume(end + 1);
            return Ok(true);
        }
        let held = rest.len();
        window.consume(held);
        if !window.more()? {
            return Ok(false);
        }
    }
}
