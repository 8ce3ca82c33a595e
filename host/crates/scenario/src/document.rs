//! A scenario as read, open for overrides, not checked yet.

use crate::path::{self, Step};
use crate::{Node, Problems, Scenario, ScenarioError, Shipped, Value, yaml};

/// A scenario as read: a tree of what was typed.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The tree.
    pub root: Node,
}

impl Document {
    /// A scenario that a loader has read. An empty Lua table is an empty scenario: everything at its default.
    pub fn new(root: Node) -> Self {
        Document { root }
    }

    /// Reads YAML or JSON; `file` is how messages name it.
    ///
    /// # Errors
    /// Text that is not YAML, above 10 MiB, with a key given twice, with a tag, with more than one document, or whose
    /// aliases expand beyond a million values.
    pub fn from_yaml(text: &str, file: &str) -> Result<Self, ScenarioError> {
        yaml::read(text, file).map(Document::new)
    }

    /// Overrides one value: `path` as in `session_generator.channels[0].body_length_generator.value`, `value` a word, or
    /// a YAML list, table or quoted text.
    ///
    /// Tables on the way are made where they are missing; a list grows by one when its next index is named. A word takes
    /// the type of its key when the scenario is checked, so that `--set client.model=7` is text and `yes` is true.
    ///
    /// # Errors
    /// A path that cannot be read, that leads through a value that has no keys, or to an index beyond the list; a value
    /// that is missing, or begins like a YAML list, table or quoted text and is none.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), ScenarioError> {
        let refuse = |message: String| ScenarioError::Path {
            path: path.to_owned(),
            message,
        };
        let steps = path::parse(path).map_err(|message| refuse(message.to_owned()))?;
        if value.is_empty() {
            return Err(ScenarioError::Value {
                path: path.to_owned(),
                value: String::new(),
                message: "a value is missing; an empty text is written '\"\"'".to_owned(),
            });
        }
        let new = if value.starts_with(['[', '{', '"', '\'']) {
            yaml::read_value(value).map_err(|message| ScenarioError::Value {
                path: path.to_owned(),
                value: value.to_owned(),
                message,
            })?
        } else {
            Node::new(Value::Word(value.to_owned()))
        };
        let mut node = &mut self.root;
        let mut walked = String::new();
        for step in steps {
            let here = if walked.is_empty() {
                "the scenario".to_owned()
            } else {
                format!("`{walked}`")
            };
            let (Step::Key(name) | Step::Bracket(name)) = &step;
            let index = match &step {
                Step::Bracket(text) => text.parse::<usize>().ok(),
                Step::Key(_) => None,
            };
            // What is missing becomes what the path needs; an empty Lua table may become either.
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
            node = match (&mut node.value, index) {
                (Value::List(items), Some(index)) => {
                    let length = items.len();
                    if index > length {
                        return Err(refuse(format!(
                            "{here} has {length} items; the next is [{length}]"
                        )));
                    }
                    if index == length {
                        items.push(Node::new(Value::Null));
                    }
                    &mut items[index]
                }
                (Value::List(_), None) => {
                    return Err(refuse(format!(
                        "{here} is a list; name an item, as in `{walked}[0]`"
                    )));
                }
                (Value::Map(entries), _) => {
                    let position = entries
                        .iter()
                        .position(|(key, _)| key == name)
                        .unwrap_or_else(|| {
                            entries.push((name.clone(), Node::new(Value::Null)));
                            entries.len() - 1
                        });
                    &mut entries[position].1
                }
                (other, _) => return Err(refuse(format!("{here} is {other}, which has no keys"))),
            };
            walked = match step {
                Step::Key(name) => path::join(&walked, &name),
                Step::Bracket(name) => format!("{walked}[{name}]"),
            };
        }
        *node = new;
        Ok(())
    }

    /// Checks everything and fills in the defaults. `shipped` are the components inside the program.
    ///
    /// # Errors
    /// Everything that is wrong, not only the first thing.
    pub fn check(self, shipped: &Shipped) -> Result<Scenario, Problems> {
        crate::plan::check(&self.root, shipped)
    }
}
