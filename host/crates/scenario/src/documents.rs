//! What a file says: one scenario, or a sweep of several.

use std::path::Path;

use crate::expand::{Setting, expand, extent, settings};
use crate::include::{Includes, ReadFile};
use crate::{Document, Node, Place, ScenarioError, Value, document, yaml};

/// The most scenarios of one sweep.
const MOST_CELLS: u64 = 10_000;
/// What the scenarios of one sweep may weigh together (a value is one).
const MOST_WEIGHT: u64 = 4_000_000;

/// What a file says, or a Lua scenario returns: one scenario or several, with alternatives in them.
///
/// A list at the top is a list of scenarios. Wherever `!expand [a, b]` stands (in lists, in included files, in the values of
/// other `!expand`s), there is a scenario for each of its values; several of them give every combination, what stands first
/// changing slowest, as in nested loops.
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
    /// What tells it from the other scenarios of the sweep; empty where there is only one.
    pub settings: Vec<Setting>,
    /// Which scenario of a list at the top it comes from, counted from 0.
    pub scenario: usize,
}

impl Documents {
    /// Reads YAML or JSON. `file` is where the text stands, and how messages name it; `read` reads the files that it includes.
    ///
    /// # Errors
    /// As [`Document::from_yaml`], in this file or an included one; files that cannot be read, include one another or are nested
    /// more than 10 deep; an `!expand` or a list of scenarios without an item.
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

    /// What a loader has read: a scenario, or a list of them. Nothing at all is an empty scenario: everything at its default.
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

    /// Overrides one value in every scenario, as [`Document::set`] does in one. A path leads through every alternative of an
    /// `!expand`; one that ends at an `!expand` takes its place. `!expand [1, 2]` is a value here: it makes a sweep.
    ///
    /// # Errors
    /// As [`Document::set`].
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), ScenarioError> {
        document::set(self.roots.iter_mut().collect(), path, value)
    }

    /// How many scenarios there are; what cannot be counted is the largest number.
    pub fn count(&self) -> u64 {
        self.roots
            .iter()
            .map(|root| extent(root).trees)
            .fold(0, u64::saturating_add)
    }

    /// Where the first `!expand` stands, or the list of scenarios begins.
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

    /// The only scenario.
    ///
    /// # Errors
    /// If there are several.
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

    /// All scenarios, in order: those of the first item of a list before those of the second, and of each one what stands
    /// first changing slowest.
    ///
    /// # Errors
    /// If there are more than 10 000, or if they have more than four million values together.
    pub fn cells(&self) -> Result<Vec<SweepCell>, ScenarioError> {
        let scenarios = self.count();
        if scenarios > MOST_CELLS {
            return Err(ScenarioError::TooManyScenarios {
                place: self.sweep_place(),
                scenarios,
                most: MOST_CELLS,
            });
        }
        let weights = self.roots.iter().map(|root| extent(root).weight);
        let values = weights.fold(0, u64::saturating_add);
        // One scenario is as large as it was allowed to be when it was read.
        if scenarios > 1 && values > MOST_WEIGHT {
            return Err(ScenarioError::SweepTooLarge {
                place: self.sweep_place(),
                scenarios,
                values,
                most: MOST_WEIGHT,
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

/// The first value that is an `!expand` of several.
fn first_alternatives(node: &Node) -> Option<&Node> {
    match &node.value {
        Value::Expand(items) if items.len() > 1 => Some(node),
        Value::Expand(items) | Value::List(items) => items.iter().find_map(first_alternatives),
        Value::Map(entries) => entries.iter().find_map(|(_, node)| first_alternatives(node)),
        _ => None,
    }
}
