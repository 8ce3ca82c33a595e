//! Helpers of the tests of several files.

use std::cell::Cell;

use veeksha_plugin::flavor::{self, Row};

use crate::row::Cells;

/// A conversation from a JSON object; it is row 1.
pub(crate) fn row(cells: &str) -> Row<Cells> {
    let mut group = flavor::group(0, "", [(1, None, cells.to_owned())]).unwrap();
    group.rows.remove(0)
}

/// Numbers below what is asked for, the same in every run.
pub(crate) fn draws() -> impl Fn(usize) -> usize {
    let state = Cell::new(7u64);
    move |below| {
        let next = state
            .get()
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state.set(next);
        (next >> 33) as usize % below
    }
}
