//! `!expand`: the scenarios of a sweep, and what tells them apart.

use std::collections::HashMap;

use serde_json::Value as Json;

use crate::{Node, Value, path, yaml};

/// How many trees one tree with alternatives stands for, and what they weigh together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) trees: u64,
    pub(crate) weight: u64,
}

/// Measures without expanding, so that what is too large is never made.
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

/// Every tree that a tree with alternatives stands for. What stands first changes slowest, as in nested loops.
pub(crate) fn expand(node: &Node) -> Vec<Node> {
    match &node.value {
        Value::Expand(alternatives) => alternatives
            .iter()
            .flat_map(expand)
            .map(|tree| Node {
                // The value is where it was written; what holds it is where its key stands.
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

/// A key that is not the same in all scenarios of a sweep, and its value in one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The key's path, as in `traffic_scheduler.target_concurrent_sessions`.
    pub path: String,
    /// Its value as written. A function is a note of where it stands.
    pub value: Json,
}

impl Setting {
    /// The value as people write it: a text without quotes, everything else as JSON.
    pub fn text(&self) -> String {
        match &self.value {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// The keys in which trees differ, in the order in which they stand, with their values in each tree. A tree that does not have
/// a key has no setting for it.
pub(crate) fn settings(trees: &[&Node]) -> Vec<Vec<Setting>> {
    let mut settings = vec![Vec::new(); trees.len()];
    let all: Vec<(usize, &Node)> = trees.iter().copied().enumerate().collect();
    differ("", &all, trees.len(), &mut settings);
    settings
}

/// `of` is how many there would be if none lacked the key.
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

/// The values of each key of these tables, the keys in the order in which they first stand.
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

/// The length of lists that hold tables and are equally long: those are compared item by item. A list of plain values is one
/// value.
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

/// Whether two values are the same, wherever they were written. Functions are the same if they stand at the same place.
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

/// Written in the same order, as in the scenarios of one `!expand`, this is one pass without a map.
fn same_entries(a: &[(String, Node)], b: &[(String, Node)]) -> bool {
    if a.iter().zip(b).all(|((name, _), (other, _))| name == other) {
        return a.iter().zip(b).all(|((_, a), (_, b))| same(a, b));
    }
    let b: HashMap<&str, &Node> = b.iter().map(|(name, node)| (name.as_str(), node)).collect();
    a.iter()
        .all(|(name, a)| b.get(name.as_str()).is_some_and(|b| same(a, b)))
}

fn shown(node: &Node) -> Json {
    match (&node.value, &node.place) {
        (Value::Function, Some(place)) => format!("function at {place}").into(),
        (Value::Function, None) => "function".into(),
        _ => node.to_json(),
    }
}
