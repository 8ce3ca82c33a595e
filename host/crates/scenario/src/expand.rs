//! `!expand`: the scenarios of a sweep and the settings that distinguish them.

use std::collections::HashMap;

use serde_json::Value as Json;

use crate::tree::{Node, Value, function_text};
use crate::{path, yaml};

/// The number of trees that a tree with alternatives expands to, and their total weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) trees: u64,
    pub(crate) weight: u64,
}

/// Measures without expanding, so that an oversized sweep is never built.
pub(crate) fn extent(node: &Node) -> Extent {
    match &node.value {
        Value::Expand(alternatives) => {
            let none = Extent { trees: 0, weight: 0 };
            alternatives.iter().map(extent).fold(none, |sum, one| Extent {
                trees: sum.trees.saturating_add(one.trees),
                weight: sum.weight.saturating_add(one.weight),
            })
        }
        Value::List(items) => product(items.iter()),
        Value::Map(entries) => product(entries.iter().map(|(_, node)| node)),
        _ => Extent {
            trees: 1,
            weight: yaml::weight(node) as u64,
        },
    }
}

fn product<'n>(parts: impl Iterator<Item = &'n Node>) -> Extent {
    parts
        .map(extent)
        .fold(Extent { trees: 1, weight: 1 }, |all, one| Extent {
            trees: all.trees.saturating_mul(one.trees),
            weight: all
                .weight
                .saturating_mul(one.trees)
                .saturating_add(one.weight.saturating_mul(all.trees)),
        })
}

/// Returns every tree that a tree with alternatives expands to. The first `!expand` changes
/// slowest, as in nested loops.
pub(crate) fn expand(node: &Node) -> Vec<Node> {
    match &node.value {
        Value::Expand(alternatives) => alternatives
            .iter()
            .flat_map(expand)
            .map(|tree| Node {
                // A value's place is where it was written; a container's place is that of its key.
                place: tree.place.or_else(|| node.place.clone()),
                ..tree
            })
            .collect(),
        Value::List(items) => combinations(items, expand)
            .map(|items| with(node, Value::List(items)))
            .collect(),
        Value::Map(entries) => combinations(entries, |(key, node)| {
            expand(node).into_iter().map(|node| (key.clone(), node)).collect()
        })
        .map(|entries| with(node, Value::Map(entries)))
        .collect(),
        _ => vec![node.clone()],
    }
}

fn with(node: &Node, value: Value) -> Node {
    Node {
        value,
        place: node.place.clone(),
    }
}

fn combinations<T, O: Clone>(parts: &[T], expand: impl Fn(&T) -> Vec<O>) -> impl Iterator<Item = Vec<O>> {
    let mut all: Vec<Vec<O>> = vec![Vec::with_capacity(parts.len())];
    for part in parts {
        let mut alternatives = expand(part);
        if alternatives.len() == 1
            && let Some(only) = alternatives.pop()
        {
            all.iter_mut().for_each(|begun| begun.push(only.clone()));
            continue;
        }
        all = all
            .iter()
            .flat_map(|begun| {
                alternatives.iter().map(|alternative| {
                    let mut longer = Vec::with_capacity(parts.len());
                    longer.extend_from_slice(begun);
                    longer.push(alternative.clone());
                    longer
                })
            })
            .collect();
    }
    all.into_iter()
}

/// A key that differs between the scenarios of a sweep, and its value in one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The key's path, as in `traffic_scheduler.target_concurrent_sessions`.
    pub path: String,
    /// Its value as written. A function is represented by a note of its place.
    pub value: Json,
}

impl Setting {
    /// Returns the value for display: text without quotes, everything else as JSON.
    pub fn text(&self) -> String {
        match &self.value {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// Returns the keys in which the trees differ, in file order, with their values in each tree. A
/// tree without a key has no setting for it.
pub(crate) fn settings(trees: &[&Node]) -> Vec<Vec<Setting>> {
    let mut settings = vec![Vec::new(); trees.len()];
    let all: Vec<(usize, &Node)> = trees.iter().copied().enumerate().collect();
    differ("", &all, trees.len(), &mut settings);
    settings
}

/// `of` is the number of nodes if no tree lacks the key.
fn differ(path: &str, nodes: &[(usize, &Node)], of: usize, settings: &mut [Vec<Setting>]) {
    let Some((_, first)) = nodes.first() else {
        return;
    };
    if nodes.len() == of && nodes.iter().all(|(_, node)| same(first, node)) {
        return;
    }
    if nodes.iter().all(|(_, node)| matches!(node.value, Value::Map(_))) {
        for (name, below) in by_key(nodes) {
            differ(&path::join(path, name), &below, of, settings);
        }
        return;
    }
    if let Some(length) = tables_of_one_length(nodes) {
        for place in 0..length {
            let below: Vec<(usize, &Node)> = nodes
                .iter()
                .filter_map(|(index, node)| match &node.value {
                    Value::List(items) => Some((*index, items.get(place)?)),
                    _ => None,
                })
                .collect();
            differ(&path::item(path, place), &below, of, settings);
        }
        return;
    }
    for (index, node) in nodes {
        if let Some(settings) = settings.get_mut(*index) {
            settings.push(Setting {
                path: path.to_owned(),
                value: shown(node),
            });
        }
    }
}

/// Groups the values of these tables by key, in order of first appearance.
fn by_key<'n>(nodes: &[(usize, &'n Node)]) -> Vec<(&'n str, Vec<(usize, &'n Node)>)> {
    let mut keys: Vec<(&str, Vec<(usize, &Node)>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (index, node) in nodes {
        let Value::Map(entries) = &node.value else {
            continue;
        };
        for (name, below) in entries {
            let place = *places.entry(name.as_str()).or_insert_with(|| {
                keys.push((name, Vec::new()));
                keys.len() - 1
            });
            keys[place].1.push((*index, below));
        }
    }
    keys
}

/// Returns the common length of lists of tables, which are compared item by item. A list of plain
/// values counts as one value.
fn tables_of_one_length(nodes: &[(usize, &Node)]) -> Option<usize> {
    let mut length = None;
    for (_, node) in nodes {
        let Value::List(items) = &node.value else {
            return None;
        };
        let tables = items.iter().any(|item| matches!(item.value, Value::Map(_)));
        if !tables || length.is_some_and(|length| length != items.len()) {
            return None;
        }
        length = Some(items.len());
    }
    length
}

/// Returns true if two values are equal, regardless of where they were written. Functions are equal
/// if they were written at the same place.
fn same(a: &Node, b: &Node) -> bool {
    match (&a.value, &b.value) {
        (Value::List(a), Value::List(b)) | (Value::Expand(a), Value::Expand(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Map(a), Value::Map(b)) => a.len() == b.len() && same_entries(a, b),
        (Value::Function, Value::Function) => a.place == b.place,
        (a, b) => a == b,
    }
}

/// For the scenarios of one `!expand` the keys have the same order, and this is one pass without a
/// map.
fn same_entries(a: &[(String, Node)], b: &[(String, Node)]) -> bool {
    if a.iter().zip(b).all(|((name, _), (other, _))| name == other) {
        return a.iter().zip(b).all(|((_, a), (_, b))| same(a, b));
    }
    let b: HashMap<&str, &Node> = b.iter().map(|(name, node)| (name.as_str(), node)).collect();
    a.iter()
        .all(|(name, a)| b.get(name.as_str()).is_some_and(|b| same(a, b)))
}

fn shown(node: &Node) -> Json {
    match &node.value {
        Value::Function => function_text(node.place.as_ref()).into(),
        _ => node.to_json(),
    }
}
