//! Helpers of the tests of several files.

use std::cell::Cell;

use veeksha_plugin::flavor::{self, Group, Row};

use crate::row::Cells;

/// A row of a number and a JSON object.
pub(crate) fn row(number: u64, cells: &str) -> Row<Cells> {
    let mut group = flavor::group(0, "", [(number, None, cells.to_owned())]).unwrap();
    group.rows.remove(0)
}

/// The rows of a session, numbered from 1, each with its arrival in milliseconds.
pub(crate) fn group(rows: &[(Option<u64>, &str)]) -> Group<Cells> {
    let rows = (1..).zip(rows).map(|(number, (at, cells))| {
        let at = at.map(|millis| millis * 1_000_000);
        (number, at, (*cells).to_owned())
    });
    flavor::group(0, "s", rows).unwrap()
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
