//! A scenario as read: unchecked and open for overrides.

use crate::error::ScenarioError;
use crate::path::{self, Step};
use crate::plan::Scenario;
use crate::problem::Problems;
use crate::schema::Shipped;
use crate::tree::{Node, Value};
use crate::yaml;

/// An unchecked scenario: the tree of typed values.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The tree.
    pub root: Node,
}

impl Document {
    /// Wraps a tree that a loader has read. An empty Lua table is an empty scenario, in which every
    /// key has its default.
    pub fn new(root: Node) -> Self {
        Document { root }
    }

    /// Overrides one value: `path` is for example
    /// `session_generator.channels[0].body_length_generator.value`, `value` a word, or a YAML list,
    /// table or quoted text.
    ///
    /// Missing tables on the path are created; a list grows by one when its next index is named. A
    /// word takes the type of its key when the scenario is checked, so that `--set client.model=7`
    /// is text and `yes` is true.
    ///
    /// # Errors
    /// A malformed path, a path through a value that has no keys, to an index beyond the list or to
    /// a client or tool that the scenario does not have, a missing value, or a value that begins
    /// like a YAML list, table or quoted text but is not one.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), ScenarioError> {
        if value.starts_with("!expand") {
            return Err(ScenarioError::Value {
                path: path.to_owned(),
                value: value.to_owned(),
                message: "a sweep is not allowed here; give a single value".to_owned(),
            });
        }
        set(vec![&mut self.root], path, value)
    }

    /// Checks the scenario and fills in the defaults. `shipped` holds the components inside the
    /// program.
    ///
    /// # Errors
    /// Every problem found, not only the first one.
    pub fn check(self, shipped: &Shipped) -> Result<Scenario, Problems> {
        crate::plan::check(&self.root, shipped)
    }
}

/// Applies [`Document::set`] to each of these trees. A path leads through all alternatives of a
/// sweep.
pub(crate) fn set(roots: Vec<&mut Node>, path: &str, value: &str) -> Result<(), ScenarioError> {
    let refuse = |message: String| ScenarioError::Path {
        path: path.to_owned(),
        message,
    };
    let steps = path::parse(path).map_err(|message| refuse(message.to_owned()))?;
    if value.is_empty() {
        return Err(ScenarioError::Value {
            path: path.to_owned(),
            value: String::new(),
            message: "the value is missing; an empty text is written '\"\"'".to_owned(),
        });
    }
    let new = if value.starts_with(['[', '{', '"', '\'']) || value.starts_with("!expand") {
        yaml::read_value(value).map_err(|message| ScenarioError::Value {
            path: path.to_owned(),
            value: value.to_owned(),
            message,
        })?
    } else {
        Node::new(Value::Word(value.to_owned()))
    };
    let mut nodes = roots;
    let mut walked = String::new();
    for step in steps {
        let mut next = Vec::with_capacity(nodes.len());
        for node in alternatives(nodes) {
            next.push(follow(node, &step, &walked).map_err(refuse)?);
        }
        nodes = next;
        walked = match step {
            Step::Key(name) => path::join(&walked, &name),
            Step::Bracket(name) => format!("{walked}[{name}]"),
        };
    }
    for node in nodes {
        *node = new.clone();
    }
    Ok(())
}

/// Replaces each `!expand` by its values.
fn alternatives(nodes: Vec<&mut Node>) -> Vec<&mut Node> {
    let mut found = Vec::with_capacity(nodes.len());
    let mut open: Vec<&mut Node> = nodes.into_iter().rev().collect();
    while let Some(node) = open.pop() {
        if matches!(node.value, Value::Expand(_)) {
            if let Value::Expand(items) = &mut node.value {
                open.extend(items.iter_mut().rev());
            }
        } else {
            found.push(node);
        }
    }
    found
}

/// The keys of the scenario whose tables have names that the user chose.
const NAMED: [&str; 2] = ["clients", "tools"];

/// Refuses an override of an entry that a table of [`NAMED`] does not have: it is a misspelled
/// name, and no later check could find it.
fn check_name(entries: &[(String, Node)], name: &str, walked: &str) -> Result<(), String> {
    let known = || entries.iter().map(|(key, _)| key.as_str());
    if entries.is_empty() || !NAMED.contains(&walked) || known().any(|key| key == name) {
        return Ok(());
    }
    let names: Vec<String> = known().map(|key| format!("`{key}`")).collect();
    let names = names.join(", ");
    Err(match veeksha_slo::nearest(name, known()) {
        Some(nearest) => format!("unknown name `{name}`; did you mean `{nearest}`? `{walked}` has {names}"),
        None => format!("unknown name `{name}`: `{walked}` has {names}; add further ones to the file"),
    })
}

/// Follows one step of a path from the node at `walked`, creating what is missing.
fn follow<'n>(node: &'n mut Node, step: &Step, walked: &str) -> Result<&'n mut Node, String> {
    let here = if walked.is_empty() {
        "the scenario".to_owned()
    } else {
        format!("`{walked}`")
    };
    let (Step::Key(name) | Step::Bracket(name)) = step;
    let index = match step {
        Step::Bracket(text) => text.parse::<usize>().ok(),
        Step::Key(_) => None,
    };
    // A missing value becomes what the path needs; an empty Lua table may become either.
    let missing = match &node.value {
        Value::Null => true,
        Value::Map(entries) => entries.is_empty() && index.is_some(),
        _ => false,
    };
    if missing {
        node.value = if index.is_some() {
            Value::List(Vec::new())
        } else {
            Value::Map(Vec::new())
        };
    }
    match (&mut node.value, index) {
        (Value::List(items), Some(index)) => {
            let length = items.len();
            if index > length {
                return Err(format!("{here} has {length} items; the next is [{length}]"));
            }
            if index == length {
                items.push(Node::new(Value::Null));
            }
            Ok(&mut items[index])
        }
        (Value::List(_), None) => Err(format!("{here} is a list; name an item, as in `{walked}[0]`")),
        (Value::Map(entries), _) => {
            check_name(entries, name, walked)?;
            let position = entries
                .iter()
                .position(|(key, _)| key == name)
                .unwrap_or_else(|| {
                    entries.push((name.clone(), Node::new(Value::Null)));
                    entries.len() - 1
                });
            Ok(&mut entries[position].1)
        }
        (other, _) => Err(format!("{here} is {other}, which has no keys")),
    }
}
