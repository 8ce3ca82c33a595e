//! The dependencies between the rows of a session.

use std::collections::HashMap;
use std::time::Duration;

use veeksha_plugin::Error;
use veeksha_plugin::flavor::Group;

use crate::row::Cells;

/// The dependencies of a row, and its wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The rows, by where they stand in the session; a conversation is continued from the first of
    /// them.
    pub(crate) parents: Vec<u32>,
    /// The wait after the last of them; of a root, after the session began.
    pub(crate) wait: Duration,
}

/// The place of each row, and when the session begins.
///
/// Where no row has `wait_for`, the rows are turns: each waits for the one before it, and then for
/// its `delay` and its tools (if it has neither, as long as its timestamp is after that row's).
/// Else the rows are a graph: each waits for those that it names; one that names none begins at its
/// timestamp.
pub(crate) fn places(group: &Group<Cells>) -> Result<(Option<u64>, Vec<Place>), Error> {
    let graph = group.rows.iter().any(|row| row.cells.wait_for.is_some());
    if graph {
        return in_a_graph(group);
    }
    let mut places: Vec<Place> = Vec::with_capacity(group.rows.len());
    for (node, row) in (0u32..).zip(&group.rows) {
        let before = node.checked_sub(1);
        let gap = before.map(|before| gap(group.rows[before as usize].at, row.at));
        places.push(Place {
            parents: before.into_iter().collect(),
            wait: Cells::wait(row)?.or(gap).unwrap_or_default(),
        });
    }
    Ok((group.rows.first().and_then(|row| row.at), places))
}

fn in_a_graph(group: &Group<Cells>) -> Result<(Option<u64>, Vec<Place>), Error> {
    let mut named = HashMap::new();
    for (node, row) in (0u32..).zip(&group.rows) {
        if let Some(id) = &row.cells.request_id
            && named.insert(id.clone(), node).is_some()
        {
            return Err(row.error(format!("`request_id` {id} appears twice in the session")));
        }
    }
    let roots = group.rows.iter().filter(|row| waits_for_nothing(&row.cells));
    let begin = roots.filter_map(|row| row.at).min();
    let mut places = Vec::with_capacity(group.rows.len());
    for row in &group.rows {
        let mut place = Place {
            wait: Cells::wait(row)?.unwrap_or_default(),
            ..Place::default()
        };
        for id in row.cells.wait_for.iter().flatten() {
            let Some(parent) = named.get(&id.to_string()) else {
                let error = row.error(format!(
                    "`wait_for` names {id}, which no row of its session has as `request_id`"
                ));
                return Err(error.hint("a request can wait only for requests of the same session"));
            };
            if !place.parents.contains(parent) {
                place.parents.push(*parent);
            }
        }
        if place.parents.is_empty() {
            place.wait += gap(begin, row.at);
        }
        places.push(place);
    }
    Ok((begin, places))
}

fn waits_for_nothing(cells: &Cells) -> bool {
    cells.wait_for.as_ref().is_none_or(Vec::is_empty)
}

fn gap(before: Option<u64>, at: Option<u64>) -> Duration {
    match (before, at) {
        (Some(before), Some(at)) => Duration::from_nanos(at.saturating_sub(before)),
        _ => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::group;

    fn place(parents: &[u32], millis: u64) -> Place {
        Place {
            parents: parents.to_vec(),
            wait: Duration::from_millis(millis),
        }
    }

    #[test]
    fn turns_wait_for_the_answer_before_them_and_their_delay() {
        let turns = group(&[
            (Some(100), r#"{"delay": 7}"#),
            (None, r#"{"delay": 250}"#),
            (Some(900), "{}"),
            (Some(1500), "{}"),
            (Some(1600), r#"{"delay": 20}"#),
            (Some(1500), "{}"),
            (Some(1900), r#"{"tool_wait_ms": 30}"#),
        ]);
        let (begin, places) = places(&turns).unwrap();
        assert_eq!(begin, Some(100_000_000));
        let expected = [
            place(&[], 7),
            place(&[0], 250),
            // The row before it has no timestamp.
            place(&[1], 0),
            place(&[2], 600),
            place(&[3], 20),
            place(&[4], 0),
            place(&[5], 30),
        ];
        assert_eq!(places, expected);
    }

    /// A fork of two and a join, after which a tool runs; next to them, a second root.
    #[test]
    fn a_graph_is_what_the_rows_name() {
        let graph = group(&[
            (Some(500), r#"{"request_id": "a", "wait_for": []}"#),
            (
                Some(600),
                r#"{"request_id": "b", "wait_for": ["a"], "delay": 10}"#,
            ),
            (None, r#"{"request_id": "c", "wait_for": ["a"]}"#),
            (
                Some(900),
                r#"{"request_id": "d", "wait_for": ["c", "b", "c"], "delay": 1, "tool_wait_ms": 40}"#,
            ),
            (Some(550), r#"{"request_id": "7"}"#),
            (None, r#"{"wait_for": [7]}"#),
        ]);
        let (begin, places) = places(&graph).unwrap();
        assert_eq!(begin, Some(500_000_000));
        let expected = [
            place(&[], 0),
            place(&[0], 10),
            place(&[0], 0),
            place(&[2, 1], 41),
            place(&[], 50),
            place(&[4], 0),
        ];
        assert_eq!(places, expected);
    }

    #[test]
    fn names_must_exist_and_be_unique() {
        let unknown = group(&[(None, r#"{"request_id": "a"}"#), (None, r#"{"wait_for": ["b"]}"#)]);
        let error = places(&unknown).unwrap_err();
        assert_eq!(
            error.message,
            "row 2: `wait_for` names b, which no row of its session has as `request_id`"
        );
        let twice = group(&[
            (None, r#"{"request_id": "a", "wait_for": []}"#),
            (None, r#"{"request_id": "a"}"#),
        ]);
        assert_eq!(
            places(&twice).unwrap_err().message,
            "row 2: `request_id` a appears twice in the session"
        );
    }
}
