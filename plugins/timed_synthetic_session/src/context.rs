//! Sessions whose rows say where they stand: `session_context`.

use veeksha_plugin::Error;
use veeksha_plugin::flavor::{Group, Row};

use crate::node::{Cells, Node};

/// The graph that the contexts of a session draw, checked.
pub(crate) fn nodes(group: &Group<Cells>) -> Result<Vec<Node<'_>>, Error> {
    let mut nodes = Vec::with_capacity(group.rows.len());
    for row in &group.rows {
        if let Some(context) = &row.cells.session_context {
            nodes.push(Node {
                row,
                id: context.node_id,
                parents: context.parent_nodes.clone().unwrap_or_default(),
                history_parent: context.history_parent,
                wait: row.seconds(
                    "session_context.wait_after_ready",
                    context.wait_after_ready.unwrap_or(0.0),
                )?,
            });
        }
    }
    let places = places(&nodes)?;
    for node in &nodes {
        check_edges(node, &places)?;
    }
    check_acyclic(&nodes, &places)?;
    Ok(nodes)
}

/// The nodes by their id, and the row of each.
struct Places(Vec<(u32, usize)>);

impl Places {
    fn of(&self, node: u32) -> Option<usize> {
        let found = self.0.binary_search_by_key(&node, |(id, _)| *id).ok()?;
        Some(self.0[found].1)
    }
}

fn places(nodes: &[Node<'_>]) -> Result<Places, Error> {
    let mut places: Vec<_> = (0..).zip(nodes).map(|(place, node)| (node.id, place)).collect();
    places.sort_unstable();
    match places.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => {
            let (first, second) = (nodes[pair[0].1].row, nodes[pair[1].1].row);
            Err(invalid(
                second,
                "node_id",
                format!("is {}, as in row {}", pair[0].0, first.number),
            ))
        }
        None => Ok(Places(places)),
    }
}

fn check_edges(node: &Node<'_>, places: &Places) -> Result<(), Error> {
    let mut sorted = node.parents.clone();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(invalid(
            node.row,
            "parent_nodes",
            format!("names node {} twice", pair[0]),
        ));
    }
    if let Some(parent) = node.parents.iter().find(|parent| places.of(**parent).is_none()) {
        let message = format!("names node {parent}, which no row of the session has");
        return Err(invalid(node.row, "parent_nodes", message));
    }
    match node.history_parent {
        Some(parent) if !node.parents.contains(&parent) => {
            let message = format!("is {parent}, which is not one of the `parent_nodes`");
            Err(invalid(node.row, "history_parent", message))
        }
        _ => Ok(()),
    }
}

/// Kahn's algorithm: what cannot be released at last is on a cycle, or behind one.
fn check_acyclic(nodes: &[Node<'_>], places: &Places) -> Result<(), Error> {
    let mut waiting: Vec<usize> = nodes.iter().map(|node| node.parents.len()).collect();
    let mut children = vec![Vec::new(); nodes.len()];
    for (child, node) in nodes.iter().enumerate() {
        for parent in node.parents.iter().filter_map(|parent| places.of(*parent)) {
            children[parent].push(child);
        }
    }
    let mut free: Vec<usize> = (0..nodes.len()).filter(|place| waiting[*place] == 0).collect();
    while let Some(place) = free.pop() {
        for &child in &children[place] {
            waiting[child] -= 1;
            if waiting[child] == 0 {
                free.push(child);
            }
        }
    }
    let stuck: Vec<&Node<'_>> = nodes
        .iter()
        .zip(&waiting)
        .filter(|(_, left)| **left > 0)
        .map(|(node, _)| node)
        .collect();
    match stuck.as_slice() {
        [] => Ok(()),
        [first, ..] => {
            let ids: Vec<String> = stuck.iter().take(8).map(|node| node.id.to_string()).collect();
            let message = format!("makes a cycle: the nodes {} wait for one another", ids.join(", "));
            Err(invalid(first.row, "parent_nodes", message))
        }
    }
}

fn invalid(row: &Row<Cells>, field: &str, message: String) -> Error {
    row.error(format!("`session_context.{field}` {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{group, refused};

    fn contexts(contexts: &[&str]) -> Vec<String> {
        contexts
            .iter()
            .map(|context| format!(r#""session_context": {{{context}}}"#))
            .collect()
    }

    fn refusal(rows: &[&str]) -> String {
        let rows = contexts(rows);
        refused(&rows.iter().map(String::as_str).collect::<Vec<_>>())
    }

    #[test]
    fn a_diamond_in_any_order_of_rows() {
        let rows = contexts(&[
            r#""node_id": 9, "parent_nodes": [4, 7], "history_parent": 7, "wait_after_ready": 1.5"#,
            r#""node_id": 4, "parent_nodes": [2], "history_parent": null"#,
            r#""node_id": 7, "parent_nodes": [2], "history_parent": 2"#,
            r#""node_id": 2, "parent_nodes": null, "wait_after_ready": null"#,
        ]);
        let group = group(0, &rows.iter().map(String::as_str).collect::<Vec<_>>());
        let nodes = nodes(&group).unwrap();
        let made: Vec<_> = nodes
            .iter()
            .map(|node| {
                (
                    node.id,
                    node.parents.as_slice(),
                    node.history_parent,
                    node.wait.as_millis(),
                )
            })
            .collect();
        assert_eq!(
            made,
            [
                (9, &[4, 7][..], Some(7), 1500),
                (4, &[2], None, 0),
                (7, &[2], Some(2), 0),
                (2, &[], None, 0)
            ]
        );
    }

    #[test]
    fn every_defect_is_named_with_its_row_and_field() {
        let cases: [(&[&str], &str); 7] = [
            (
                &[r#""node_id": 1"#, r#""node_id": 0"#, r#""node_id": 1"#],
                "row 3: `session_context.node_id` is 1, as in row 1",
            ),
            (
                &[r#""node_id": 0"#, r#""node_id": 1, "parent_nodes": [0, 0]"#],
                "row 2: `session_context.parent_nodes` names node 0 twice",
            ),
            (
                &[r#""node_id": 0, "parent_nodes": [5]"#],
                "row 1: `session_context.parent_nodes` names node 5, which no row of the session has",
            ),
            (
                &[
                    r#""node_id": 0"#,
                    r#""node_id": 1"#,
                    r#""node_id": 2, "parent_nodes": [1], "history_parent": 0"#,
                ],
                "row 3: `session_context.history_parent` is 0, which is not one of the `parent_nodes`",
            ),
            (
                &[
                    r#""node_id": 0"#,
                    r#""node_id": 1, "parent_nodes": [0, 2]"#,
                    r#""node_id": 2, "parent_nodes": [1]"#,
                ],
                "row 2: `session_context.parent_nodes` makes a cycle: the nodes 1, 2 wait for one another",
            ),
            (
                &[r#""node_id": 3, "parent_nodes": [3]"#],
                "row 1: `session_context.parent_nodes` makes a cycle: the nodes 3 wait for one another",
            ),
            (
                &[r#""parent_nodes": []"#],
                "row 1: `session_context`: the key `node_id` is missing",
            ),
        ];
        for (rows, message) in cases {
            assert_eq!(refusal(rows), message);
        }
        assert!(
            refusal(&[r#""node_id": 0, "wait_after_ready": -1"#])
                .starts_with("row 1: `session_context.wait_after_ready` is -1")
        );
        assert!(refusal(&[r#""node_id": -1"#]).starts_with("row 1: `session_context.node_id`: "));
    }

    /// All 512 graphs of three nodes: refused exactly where following parents from some node leads
    /// back to it.
    #[test]
    fn cycles_are_found_in_every_graph_of_three() {
        for graph in 0..512u32 {
            let edge = |child: u32, parent: u32| graph >> (3 * child + parent) & 1 == 1;
            let rows: Vec<String> = (0..3)
                .map(|child| {
                    let parents: Vec<u32> = (0..3).filter(|parent| edge(child, *parent)).collect();
                    format!(r#""session_context": {{"node_id": {child}, "parent_nodes": {parents:?}}}"#)
                })
                .collect();
            let mut reach = [[false; 3]; 3];
            for (child, row) in (0..).zip(&mut reach) {
                for (parent, cell) in (0..).zip(row) {
                    *cell = edge(child, parent);
                }
            }
            for _ in 0..3 {
                for (a, b, c) in (0..27).map(|n| (n / 9, n / 3 % 3, n % 3)) {
                    reach[a][c] |= reach[a][b] && reach[b][c];
                }
            }
            let group = group(0, &rows.iter().map(String::as_str).collect::<Vec<_>>());
            let cyclic = (0..3).any(|node| reach[node][node]);
            assert_eq!(nodes(&group).is_err(), cyclic, "{rows:?}");
        }
    }
}
