//! `!include`: the contents of another file, in place of the tag.
//!
//! This crate reads no files: the loader passes a function that does, and so decides which files
//! may be read. A name is relative to the folder of the including file.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use crate::error::ScenarioError;
use crate::tree::Node;

/// Maximum nesting of included files, not counting the scenario itself.
const MAX_DEPTH: usize = 10;
/// Maximum number of distinct files in one scenario.
const MAX_FILES: usize = 1_000;

/// Reads a file as text, or returns the reason why it cannot be read. The path is the name as
/// written, joined to the folder of the including file.
pub type ReadFile<'f> = dyn FnMut(&Path) -> Result<String, String> + 'f;

/// Parses the text of a file, whose path messages name, with the files that it includes.
pub(crate) type Parse = fn(&str, &Path, &mut Includes<'_>) -> Result<Node, ScenarioError>;

/// The files of one scenario, each read once.
pub(crate) struct Includes<'f> {
    read: &'f mut ReadFile<'f>,
    /// The files being read, outermost first, for the message about a cycle.
    chain: Vec<PathBuf>,
    known: HashMap<PathBuf, Node>,
}

/// The reason why a file cannot be included.
pub(crate) enum Refusal {
    /// The name is at fault; the error's place is that of the tag.
    Here(String),
    /// The included file is at fault; the error has its place.
    Within(ScenarioError),
}

impl<'f> Includes<'f> {
    pub(crate) fn new(main: &Path, read: &'f mut ReadFile<'f>) -> Self {
        Includes {
            read,
            chain: vec![plain(main)],
            known: HashMap::new(),
        }
    }

    /// Returns the contents of the file `name`, resolved against the file being read. `parse`
    /// reads its text.
    pub(crate) fn open(&mut self, name: &str, parse: Parse) -> Result<Node, Refusal> {
        let refuse = |message: String| Err(Refusal::Here(message));
        if name.trim().is_empty() {
            return refuse("`!include` takes the name of a file: `!include other.yml`".to_owned());
        }
        let folder = self.chain.last().and_then(|file| file.parent());
        let path = plain(&folder.unwrap_or(Path::new("")).join(name));
        if self.chain.contains(&path) {
            return refuse(format!(
                "the files include each other: {}",
                self.shown_chain(&path)
            ));
        }
        if let Some(known) = self.known.get(&path) {
            return Ok(known.clone());
        }
        if self.chain.len() > MAX_DEPTH {
            return refuse(format!(
                "more than {MAX_DEPTH} files include each other: {}",
                self.shown_chain(&path)
            ));
        }
        if self.known.len() >= MAX_FILES {
            return refuse(format!("a scenario may include {MAX_FILES} files"));
        }
        let text = match (self.read)(&path) {
            Ok(text) => text,
            Err(reason) => return refuse(format!("cannot include `{}`: {reason}", path.display())),
        };
        self.chain.push(path.clone());
        let node = parse(&text, &path, self).map_err(Refusal::Within)?;
        self.chain.pop();
        self.known.insert(path, node.clone());
        Ok(node)
    }

    fn shown_chain(&self, last: &Path) -> String {
        let names: Vec<String> = self
            .chain
            .iter()
            .map(PathBuf::as_path)
            .chain([last])
            .map(|file| file.display().to_string())
            .collect();
        names.join(" → ")
    }
}

/// Removes `.` and `x/..` from a path, so that each file has one name.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(plain.components().next_back(), Some(Component::Normal(_))) => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}
