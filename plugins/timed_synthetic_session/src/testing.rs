//! Helpers of the tests of several files.

use veeksha_plugin::flavor::{self, Group};

use crate::graph;
use crate::node::Cells;

/// A session of rows of 64 + 32 tokens in and 8 out, with these members next to the lengths.
pub(crate) fn group(index: u64, rows: &[&str]) -> Group<Cells> {
    read(index, rows).unwrap()
}

/// The message about rows that make no session.
pub(crate) fn refused(rows: &[&str]) -> String {
    let error = match read(0, rows) {
        Ok(group) => graph::nodes(&group).unwrap_err(),
        Err(error) => error,
    };
    error.message
}

fn read(index: u64, rows: &[&str]) -> Result<Group<Cells>, veeksha_plugin::Error> {
    let rows = (1..).zip(rows).map(|(number, members)| {
        let comma = if members.is_empty() { "" } else { ", " };
        let row =
            format!(r#"{{"input_length": 96, "new_input_length": 32, "output_length": 8{comma}{members}}}"#);
        (number, None, row)
    });
    flavor::group(index, "s", rows)
}
