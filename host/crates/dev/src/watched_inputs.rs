//! The files that a cycle depends on.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Folders of a project that its build writes, or that contain no source of its component.
const OUTPUT_FOLDERS: [&str; 6] = ["target", "build", "sdk", "tests", "node_modules", "__pycache__"];
/// Files that tools and editors write: the lock of cargo, and the probe file of vim.
const OUTPUT_FILES: [&str; 2] = ["Cargo.lock", "4913"];
/// Endings of Lua files.
const LUA: [&str; 2] = ["lua", "luau"];

/// The reason why a changed file matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// The scenario reads it, or could require it.
    Input,
    /// It is a source of the project in this folder.
    Source(PathBuf),
}

/// The files that a cycle depends on. All paths are absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedInputs {
    /// The folder of the scenario.
    pub scenario_folder: PathBuf,
    /// The scenario, and all files that it required or named.
    pub files: BTreeSet<PathBuf>,
    /// The folders of the projects that build its plugins.
    pub projects: BTreeSet<PathBuf>,
}

impl WatchedInputs {
    /// Returns the reason why a change of `path` matters; none if it does not.
    pub fn change(&self, path: &Path) -> Option<FileChange> {
        if self.files.contains(path) {
            return Some(FileChange::Input);
        }
        if path
            .file_name()
            .is_none_or(|name| is_ignored_file(&name.to_string_lossy()))
        {
            return None;
        }
        // An inner project is more specific than one around it.
        let inner = self
            .projects
            .iter()
            .filter(|project| path.starts_with(project))
            .max_by_key(|project| project.components().count());
        if let Some(project) = inner
            && let Ok(below) = path.strip_prefix(project)
            && below.parent().is_some_and(has_only_source_folders)
            && !is_lua(path)
        {
            return Some(FileChange::Source(project.clone()));
        }
        // A module that could not be read is not among the files; its fix must start a cycle.
        let is_module = is_lua(path)
            && path
                .strip_prefix(&self.scenario_folder)
                .is_ok_and(|below| below.parent().is_some_and(has_only_source_folders));
        is_module.then_some(FileChange::Input)
    }

    /// Returns the folders to watch. A file is watched through its folder, because editors replace
    /// files.
    pub fn folders(&self) -> BTreeSet<PathBuf> {
        let parents = self.files.iter().filter_map(|file| file.parent());
        parents
            .map(Path::to_owned)
            .chain([self.scenario_folder.clone()])
            .chain(self.projects.iter().cloned())
            .collect()
    }
}

fn is_lua(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| LUA.iter().any(|lua| ending == *lua))
}

fn is_ignored_file(name: &str) -> bool {
    name.starts_with('.')
        || name.starts_with('#')
        || name.ends_with('~')
        || [".tmp", ".swp", ".wasm"]
            .iter()
            .any(|ending| name.ends_with(ending))
        || OUTPUT_FILES.contains(&name)
}

/// Returns true if a folder of a project can contain sources.
pub fn is_source_folder(name: &str) -> bool {
    !name.starts_with('.') && !OUTPUT_FOLDERS.contains(&name)
}

fn has_only_source_folders(folder: &Path) -> bool {
    folder.components().all(|part| match part {
        Component::Normal(name) => is_source_folder(&name.to_string_lossy()),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs() -> WatchedInputs {
        WatchedInputs {
            scenario_folder: "/work".into(),
            files: ["/work/s.lua", "/data/trace.jsonl", "/work/coder/build/coder.wasm"]
                .map(PathBuf::from)
                .into(),
            projects: ["/work/coder".into()].into(),
        }
    }

    #[test]
    fn inputs_and_sources_matter() {
        let source = Some(FileChange::Source("/work/coder".into()));
        for (path, expected) in [
            ("/work/s.lua", Some(FileChange::Input)),
            ("/data/trace.jsonl", Some(FileChange::Input)),
            ("/work/coder/build/coder.wasm", Some(FileChange::Input)),
            ("/work/lib/sizes.lua", Some(FileChange::Input)),
            ("/work/coder/src/lib.rs", source.clone()),
            ("/work/coder/src/a/b.rs", source.clone()),
            ("/work/coder/plugin.toml", source.clone()),
            ("/work/coder/Cargo.toml", source),
        ] {
            assert_eq!(inputs().change(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn outputs_and_temporary_files_do_not_matter() {
        for path in [
            "/work/notes.txt",
            "/work/.s.lua.swp",
            "/work/4913",
            "/work/s.lua~",
            "/data/other.jsonl",
            "/work/coder/target/wasm32/x.d",
            "/work/coder/build/.tmp3",
            "/work/coder/build/x.wasm",
            "/work/coder/Cargo.lock",
            "/work/coder/.git/index",
            "/work/coder/src/.lib.rs.swp",
            "/work/.cache/a.lua",
        ] {
            assert_eq!(inputs().change(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn folders_of_all_files_are_watched() {
        let expected = ["/data", "/work", "/work/coder", "/work/coder/build"];
        assert_eq!(inputs().folders(), expected.map(PathBuf::from).into());
    }
}
