//! Functions of a scenario that can never return a value, found from their source.
//!
//! A forgotten `return` is the most common mistake in Lua, and its effect is far from its cause: an
//! empty workload, a metric without samples, requests that are never good.

use std::collections::BTreeMap;

use mlua::Value as Lua;
use veeksha_scenario::{Node, Value};

use crate::opening::lookup;
use crate::places::lacks_return;
use crate::sources::Sources;
use crate::tokens::{PlacedToken, tokenize};

/// The place of a function's definition.
#[derive(Clone, Debug)]
pub(crate) struct DefinedAt {
    pub(crate) file: String,
    pub(crate) line: u32,
}

/// The functions of the returned table that have no `return`, by their paths.
pub(crate) type WithoutReturn = BTreeMap<String, DefinedAt>;

/// Finds the functions without `return` in the table `table`, whose document is `root`.
pub(crate) fn without_return(root: &Node, table: &Lua, sources: &Sources) -> WithoutReturn {
    let mut search = Search {
        table,
        sources,
        tokens: BTreeMap::new(),
        known: BTreeMap::new(),
        found: BTreeMap::new(),
    };
    search.visit(root, "");
    search.found
}

struct Search<'a> {
    table: &'a Lua,
    sources: &'a Sources,
    /// The tokens of each file by its name in messages.
    tokens: BTreeMap<String, Vec<PlacedToken>>,
    /// The result for each definition: a sweep has one function in many scenarios.
    known: BTreeMap<(String, u32), bool>,
    found: WithoutReturn,
}

impl Search<'_> {
    fn visit(&mut self, node: &Node, path: &str) {
        match &node.value {
            Value::Map(entries) => {
                for (key, value) in entries {
                    self.visit(value, &below(path, key));
                }
            }
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.visit(item, &below(path, &index.to_string()));
                }
            }
            Value::Function => self.function(path),
            _ => {}
        }
    }

    fn function(&mut self, path: &str) {
        let Ok(function) = lookup(self.table, path) else {
            return;
        };
        let info = function.info();
        let line = info.line_defined.and_then(|line| u32::try_from(line).ok());
        let (Some(file), Some(line)) = (info.short_src, line) else {
            return;
        };
        if self.lacks_return(&file, line) {
            self.found.insert(path.to_owned(), DefinedAt { file, line });
        }
    }

    fn lacks_return(&mut self, file: &str, line: u32) -> bool {
        let key = (file.to_owned(), line);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let sources = self.sources;
        let tokens = self
            .tokens
            .entry(file.to_owned())
            .or_insert_with(|| sources.text_of(file).map(tokenize).unwrap_or_default());
        let lacks = lacks_return(tokens, line);
        self.known.insert(key, lacks);
        lacks
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}
