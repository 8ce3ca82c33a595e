//! Edges and labels as lists of cells, in either table.

use parquet::{data_type::ByteArray, errors::Result};
use veeksha_model::{Edge, Label, NodeId, Trigger};

use crate::{
    cells::{invalid_cell, name, small, text},
    element::{Int, Utf8},
    read::shapes as read,
    write::shapes as write,
};

/// Appends edges. Triggers and delays are empty lists where all are the usual ones.
pub(crate) fn push_edges(
    edges: &[Edge],
    parents: &mut write::List<Int>,
    triggers: &mut write::List<Utf8>,
    delays: &mut write::List<Int>,
) {
    parents.push(edges.iter().map(|edge| edge.parent.0.into()));
    let special = edges.iter().any(|edge| edge.trigger != Trigger::Completed);
    let listed = edges.iter().filter(|_| special);
    triggers.push(listed.map(|edge| name(edge.trigger.name())));
    let delayed = edges.iter().any(|edge| edge.delay > 0);
    let listed = edges.iter().filter(|_| delayed);
    delays.push(listed.map(|edge| edge.delay as i64));
}

/// Reads the edges of a row into a list whose memory is reused.
pub(crate) fn read_edges(
    row: usize,
    parents: &read::List<Int>,
    triggers: &read::List<Utf8>,
    delays: &read::List<Int>,
    edges: &mut Vec<Edge>,
) -> Result<()> {
    edges.clear();
    let (parents, triggers, delays) = (parents.get(row), triggers.get(row), delays.get(row));
    for (column, length) in [
        ("parent_triggers", triggers.len()),
        ("parent_delays_ns", delays.len()),
    ] {
        if length != 0 && length != parents.len() {
            return Err(invalid_cell(column, format_args!("a list of {length} values")));
        }
    }
    for (index, &parent) in parents.iter().enumerate() {
        let mut edge = Edge::from(NodeId(small("parents", parent)?));
        if let Some(cell) = triggers.get(index) {
            let trigger = text("parent_triggers", cell)?;
            edge.trigger = Trigger::named(trigger).ok_or_else(|| invalid_cell("parent_triggers", trigger))?;
        }
        edge.delay = delays.get(index).map_or(0, |&delay| delay as u64);
        edges.push(edge);
    }
    Ok(())
}

/// Appends labels.
pub(crate) fn push_labels(labels: &[Label], names: &mut write::List<Utf8>, values: &mut write::List<Utf8>) {
    names.push(labels.iter().map(|(name, _)| ByteArray::from(name.as_str())));
    values.push(labels.iter().map(|(_, value)| ByteArray::from(value.as_str())));
}

/// Reads the labels of a row into a list whose memory is reused.
pub(crate) fn read_labels(
    row: usize,
    names: &read::List<Utf8>,
    values: &read::List<Utf8>,
    labels: &mut Vec<Label>,
) -> Result<()> {
    let (names, values) = (names.get(row), values.get(row));
    if names.len() != values.len() {
        return Err(invalid_cell(
            "label_values",
            "another number of values than of names",
        ));
    }
    labels.resize_with(names.len(), Default::default);
    for ((name, value), label) in names.iter().zip(values).zip(labels) {
        replace(&mut label.0, text("label_names", name)?);
        replace(&mut label.1, text("label_values", value)?);
    }
    Ok(())
}

/// Copies a text into one that may have memory to reuse.
fn replace(old: &mut String, new: &str) {
    old.clear();
    old.push_str(new);
}
