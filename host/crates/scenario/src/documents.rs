//! The contents of a scenario file: one scenario, or a sweep of several.

use std::path::Path;

use crate::document::Document;
use crate::error::ScenarioError;
use crate::expand::{Setting, expand, extent, settings};
use crate::include::{Includes, ReadFile};
use crate::tree::{Node, Place, Value};
use crate::{document, yaml};

/// Maximum number of scenarios in one sweep.
const MAX_CELLS: u64 = 10_000;
/// Maximum total weight of a sweep's scenarios (a value weighs one).
const MAX_WEIGHT: u64 = 4_000_000;

/// The contents of a file, or the return value of a Lua scenario: one scenario or several, possibly
/// with alternatives.
///
/// A list at the top level is a list of scenarios. Each `!expand [a, b]` (in lists, in included
/// files, inside the values of other `!expand`s) yields one scenario per value. Several of them
/// yield every combination; the first one in the file changes slowest, as in nested loops.
#[derive(Clone, Debug, PartialEq)]
pub struct Documents {
    roots: Vec<Node>,
    place: Option<Place>,
}

/// One scenario of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepCell {
    /// The scenario, open for overrides.
    pub document: Document,
    /// The values that distinguish it from the other scenarios of the sweep; empty if there is only
    /// one.
    pub settings: Vec<Setting>,
    /// Zero-based index of its source in a top-level list of scenarios.
    pub scenario: usize,
}

impl Document {
    /// Reads YAML or JSON that contains a single scenario without includes; `file` is its name in
    /// messages. [`Documents::from_yaml`] also reads sweeps and includes.
    ///
    /// # Errors
    /// Text that is not YAML, is larger than 10 MiB, repeats a key, uses an unknown tag, has
    /// several documents, or whose aliases expand beyond a million values; a sweep; an `!include`.
    pub fn from_yaml(text: &str, file: &str) -> Result<Self, ScenarioError> {
        let mut nothing = |_: &Path| Err("files cannot be included here".to_owned());
        Documents::from_yaml(text, Path::new(file), &mut nothing)?.single()
    }
}

impl Documents {
    /// Reads YAML or JSON. `file` is the path of the text, which messages name; `read` reads the
    /// files that it includes.
    ///
    /// # Errors
    /// As for [`Document::from_yaml`], in this file or an included one; included files that cannot
    /// be read, include each other or are nested more than 10 deep; an empty `!expand` or list of
    /// scenarios.
    pub fn from_yaml<'f>(text: &str, file: &Path, read: &'f mut ReadFile<'f>) -> Result<Self, ScenarioError> {
        let root = yaml::read(text, file, &mut Includes::new(file, read))?;
        if let (Value::List(items), Some(place)) = (&root.value, &root.place)
            && items.is_empty()
        {
            return Err(ScenarioError::Form {
                file: place.file.to_string(),
                line: place.line,
                message: "the list of scenarios is empty".to_owned(),
            });
        }
        Ok(Documents::new(root))
    }

    /// Wraps the tree that a loader has read: a scenario, or a list of scenarios. Null is an empty
    /// scenario, in which every key has its default.
    pub fn new(root: Node) -> Self {
        let place = root.place;
        let roots = match root.value {
            Value::List(items) if !items.is_empty() => items,
            Value::Null => vec![Node {
                value: Value::Map(Vec::new()),
                place: place.clone(),
            }],
            value => vec![Node {
                value,
                place: place.clone(),
            }],
        };
        Documents { roots, place }
    }

    /// Overrides one value in every scenario, as [`Document::set`] does in one. A path leads
    /// through every alternative of an `!expand`; one that ends at an `!expand` replaces it. The
    /// value `!expand [1, 2]` makes a sweep.
    ///
    /// # Errors
    /// As [`Document::set`].
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), ScenarioError> {
        document::set(self.roots.iter_mut().collect(), path, value)
    }

    /// Returns the number of scenarios, saturating at the largest number.
    pub fn count(&self) -> u64 {
        self.roots
            .iter()
            .map(|root| extent(root).trees)
            .fold(0, u64::saturating_add)
    }

    /// Returns the place of the first `!expand` or of the list of scenarios.
    fn sweep_place(&self) -> Option<Place> {
        let expanded = || {
            self.roots
                .iter()
                .find_map(first_alternatives)
                .and_then(|node| node.place.clone())
        };
        match self.roots.len() {
            1 => expanded().or_else(|| self.place.clone()),
            _ => self.place.clone(),
        }
    }

    /// Returns the only scenario.
    ///
    /// # Errors
    /// There are several scenarios.
    pub fn single(self) -> Result<Document, ScenarioError> {
        match self.count() {
            1 => Ok(Document::new(
                self.roots
                    .first()
                    .and_then(|root| expand(root).pop())
                    .unwrap_or_else(|| Node::new(Value::Map(Vec::new()))),
            )),
            scenarios => Err(ScenarioError::Sweep {
                place: self.sweep_place(),
                scenarios,
            }),
        }
    }

    /// Returns all scenarios in order: list items in the order of the list, and for each item the
    /// first `!expand` changes slowest.
    ///
    /// # Errors
    /// There are more than 10,000 scenarios, or more than four million values in them.
    pub fn cells(&self) -> Result<Vec<SweepCell>, ScenarioError> {
        let scenarios = self.count();
        if scenarios > MAX_CELLS {
            return Err(ScenarioError::TooManyScenarios {
                place: self.sweep_place(),
                scenarios,
                most: MAX_CELLS,
            });
        }
        let weights = self.roots.iter().map(|root| extent(root).weight);
        let values = weights.fold(0, u64::saturating_add);
        // A single scenario was already limited when it was read.
        if scenarios > 1 && values > MAX_WEIGHT {
            return Err(ScenarioError::SweepTooLarge {
                place: self.sweep_place(),
                scenarios,
                values,
                most: MAX_WEIGHT,
            });
        }
        let trees: Vec<(usize, Node)> = self
            .roots
            .iter()
            .enumerate()
            .flat_map(|(scenario, root)| expand(root).into_iter().map(move |tree| (scenario, tree)))
            .collect();
        let settings = settings(&trees.iter().map(|(_, tree)| tree).collect::<Vec<_>>());
        Ok(trees
            .into_iter()
            .zip(settings)
            .map(|((scenario, tree), settings)| SweepCell {
                document: Document::new(tree),
                settings,
                scenario,
            })
            .collect())
    }
}

/// Returns the first `!expand` with several values.
fn first_alternatives(node: &Node) -> Option<&Node> {
    match &node.value {
        Value::Expand(items) if items.len() > 1 => Some(node),
        Value::Expand(items) | Value::List(items) => items.iter().find_map(first_alternatives),
        Value::Map(entries) => entries.iter().find_map(|(_, node)| first_alternatives(node)),
        _ => None,
    }
}
