//! `!include`: what another file says, in the place of the tag.
//!
//! This crate reads no files: whoever loads a scenario hands in a function that does, and by it decides which files may be
//! read. A name is relative to the file that it stands in.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use crate::{Node, ScenarioError, yaml};

/// Files that include one another, the scenario's own not counted.
const DEEPEST: usize = 10;
/// Different files of one scenario.
const MOST_FILES: usize = 1_000;

/// Reads a file as text; the error says why it cannot. The path is the name as written, joined to the folder of the file that
/// it stands in.
pub type ReadFile<'f> = dyn FnMut(&Path) -> Result<String, String> + 'f;

/// The files of one scenario, each read once.
pub(crate) struct Includes<'f> {
    read: &'f mut ReadFile<'f>,
    /// The files being read, outermost first: what a cycle is shown with.
    chain: Vec<PathBuf>,
    known: HashMap<PathBuf, Node>,
}

/// Why a file cannot stand where it is named.
pub(crate) enum Refusal {
    /// What is wrong with the name; its place is where the tag stands.
    Here(String),
    /// Something is wrong in the file, with a place of its own.
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

    /// What the file says that the one being read names.
    pub(crate) fn open(&mut self, name: &str) -> Result<Node, Refusal> {
        let refuse = |message: String| Err(Refusal::Here(message));
        if name.trim().is_empty() {
            return refuse("`!include` takes the name of a file: `!include other.yml`".to_owned());
        }
        let folder = self.chain.last().and_then(|file| file.parent());
        let path = plain(&folder.unwrap_or(Path::new("")).join(name));
        if self.chain.contains(&path) {
            return refuse(format!(
                "the files include one another: {}",
                self.shown_chain(&path)
            ));
        }
        if let Some(known) = self.known.get(&path) {
            return Ok(known.clone());
        }
        if self.chain.len() > DEEPEST {
            return refuse(format!(
                "more than {DEEPEST} files include one another: {}",
                self.shown_chain(&path)
            ));
        }
        if self.known.len() >= MOST_FILES {
            return refuse(format!("a scenario may include {MOST_FILES} files"));
        }
        let text = match (self.read)(&path) {
            Ok(text) => text,
            Err(reason) => return refuse(format!("cannot include `{}`: {reason}", path.display())),
        };
        self.chain.push(path.clone());
        let node = yaml::read(&text, &path, self).map_err(Refusal::Within)?;
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

/// The path without `.` and `x/..`, so that one file has one name.
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
