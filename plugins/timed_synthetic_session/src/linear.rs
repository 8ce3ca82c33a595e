//! Sessions without contexts: a chain, in the order of `turn_idx` or of the file.

use std::time::Duration;

use veeksha_plugin::Error;
use veeksha_plugin::flavor::{Group, Row};

use crate::node::{Cells, Node};

const WAIT: &str = "wait_after_previous_response_s";

/// Each row continues the one before it.
pub(crate) fn nodes(group: &Group<Cells>) -> Result<Vec<Node<'_>>, Error> {
    let rows = in_order(group)?;
    let nodes = (0u32..).zip(rows).map(|(id, row)| {
        let wait = row.seconds(WAIT, row.cells.wait_after_previous_response_s.unwrap_or(0.0))?;
        let previous = id.checked_sub(1);
        Ok(Node {
            row,
            id,
            parents: previous.into_iter().collect(),
            history_parent: previous,
            // Before the first request of a session there is no response to wait after.
            wait: previous.map_or(Duration::ZERO, |_| wait),
        })
    });
    nodes.collect()
}

/// The rows by their `turn_idx`; without one, as they stand in the file.
fn in_order(group: &Group<Cells>) -> Result<Vec<&Row<Cells>>, Error> {
    let mut rows: Vec<_> = group.rows.iter().collect();
    let Some(numbered) = rows.iter().find(|row| row.cells.turn_idx.is_some()) else {
        return Ok(rows);
    };
    if let Some(bare) = rows.iter().find(|row| row.cells.turn_idx.is_none()) {
        return Err(bare.error(format!(
            "`turn_idx` is missing here and present in row {} of the same session; give it to all rows of a session or to none",
            numbered.number
        )));
    }
    rows.sort_by_key(|row| row.cells.turn_idx);
    match rows
        .windows(2)
        .find(|pair| pair[0].cells.turn_idx == pair[1].cells.turn_idx)
    {
        Some(pair) => Err(pair[1].error(format!(
            "`turn_idx` is {}, as in row {} of the same session",
            pair[1].cells.turn_idx.unwrap_or_default(),
            pair[0].number
        ))),
        None => Ok(rows),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{group, refused};

    /// Node, number of the row, wait in milliseconds.
    fn chain(rows: &[&str]) -> Vec<(u32, u64, u128)> {
        let group = group(0, rows);
        let nodes = nodes(&group).unwrap();
        for node in &nodes {
            assert_eq!(node.history_parent, node.id.checked_sub(1));
            assert_eq!(node.parents, Vec::from_iter(node.history_parent));
        }
        nodes
            .iter()
            .map(|node| (node.id, node.row.number, node.wait.as_millis()))
            .collect()
    }

    #[test]
    fn rows_follow_one_another_as_in_the_file() {
        assert_eq!(
            chain(&[
                r#""wait_after_previous_response_s": 3"#,
                r#""wait_after_previous_response_s": 0.25"#,
                "",
            ]),
            [(0, 1, 0), (1, 2, 250), (2, 3, 0)]
        );
    }

    #[test]
    fn rows_follow_one_another_by_turn_index() {
        assert_eq!(
            chain(&[
                r#""turn_idx": 7, "wait_after_previous_response_s": 2"#,
                r#""turn_idx": -1, "wait_after_previous_response_s": 1"#,
                r#""turn_idx": 3, "wait_after_previous_response_s": 4"#,
            ]),
            [(0, 2, 0), (1, 3, 4000), (2, 1, 2000)]
        );
    }

    #[test]
    fn turns_that_make_no_order_are_named() {
        assert_eq!(
            refused(&[r#""turn_idx": 0"#, r#""turn_idx": 1"#, r#""turn_idx": 0"#]),
            "row 3: `turn_idx` is 0, as in row 1 of the same session"
        );
        assert_eq!(
            refused(&["", r#""turn_idx": 1"#]),
            "row 1: `turn_idx` is missing here and present in row 2 of the same session; give it to all rows of a session or to none"
        );
        assert!(
            refused(&["", r#""wait_after_previous_response_s": -0.5"#])
                .starts_with("row 2: `wait_after_previous_response_s` is -0.5")
        );
    }
}
