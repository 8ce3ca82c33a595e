//! The graph of a session: from its rows' contexts, or a chain.

use veeksha_plugin::Error;
use veeksha_plugin::flavor::{Group, Row};

use crate::node::{Cells, Node};
use crate::{context, linear};

/// The nodes of a session: as in its rows' contexts, or, where no row has one, a chain.
pub(crate) fn nodes(group: &Group<Cells>) -> Result<Vec<Node<'_>>, Error> {
    let (with, without): (Vec<_>, Vec<_>) = group
        .rows
        .iter()
        .partition(|row| row.cells.session_context.is_some());
    match (with.as_slice(), without.as_slice()) {
        (_, []) => context::nodes(group),
        ([], _) => linear::nodes(group),
        (_, [first, ..]) => Err(first.error(format!(
            "`session_context` is missing in rows {} of the session `{}` and present in rows {}; give it to all rows \
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
