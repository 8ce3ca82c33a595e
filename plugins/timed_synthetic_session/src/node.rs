//! Where each row of a session stands in its graph.

use std::time::Duration;

use serde::Deserialize;
use veeksha_plugin::Error;
use veeksha_plugin::flavor::{Group, Row};

use crate::{context, linear};

/// A row.
#[derive(Debug, Deserialize)]
pub struct Cells {
    pub(crate) input_length: u32,
    pub(crate) new_input_length: u32,
    pub(crate) output_length: u32,
    pub(crate) session_context: Option<SessionContext>,
    pub(crate) turn_idx: Option<i64>,
    pub(crate) wait_after_previous_response_s: Option<f64>,
}

/// A row's place in the graph of its session.
#[derive(Debug, Deserialize)]
pub(crate) struct SessionContext {
    pub(crate) node_id: u32,
    pub(crate) parent_nodes: Option<Vec<u32>>,
    pub(crate) history_parent: Option<u32>,
    pub(crate) wait_after_ready: Option<f64>,
}

/// A node of the session's graph.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) row: &'a Row<Cells>,
    pub(crate) id: u32,
    pub(crate) parents: Vec<u32>,
    pub(crate) history_parent: Option<u32>,
    pub(crate) wait: Duration,
}

/// The nodes of a session: as its rows' contexts say, or, where no row has one, a chain.
pub(crate) fn nodes(group: &Group<Cells>) -> Result<Vec<Node<'_>>, Error> {
    let (with, without): (Vec<_>, Vec<_>) = group
        .rows
        .iter()
        .partition(|row| row.cells.session_context.is_some());
    match (with.as_slice(), without.as_slice()) {
        (_, []) => context::nodes(group),
        ([], _) => linear::nodes(group),
        (_, [first, ..]) => Err(first.error(format!(
            "`session_context` is missing in rows {} of the session `{}`, and stands in rows {}; give it to all rows \
             of a session or to none",
            numbers(&without),
            group.key,
            numbers(&with)
        ))),
    }
}

/// The numbers of rows, the first few of them.
fn numbers(rows: &[&Row<Cells>]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = rows
        .iter()
        .take(SHOWN)
        .map(|row| row.number.to_string())
        .collect();
    let more = if rows.len() > SHOWN { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}
