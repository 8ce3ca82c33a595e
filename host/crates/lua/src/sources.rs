//! The files of a scenario: read once, below its folder, stored as text.
//!
//! A run opens many virtual machines. All of them execute the text that was read when the scenario
//! was loaded, so a file that changes during a run has no effect.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::error::LuaError;
use crate::shape::At;

/// Maximum size of a Lua file, in bytes.
const MAX_FILE: u64 = 4 * 1024 * 1024;
/// Maximum number of files that a scenario may require.
const MAX_FILES: usize = 256;
/// Maximum length of a chunk name. Luau truncates longer ones, and a truncated name cannot be
/// mapped to its file.
const MAX_NAME: usize = 200;

/// One Lua file of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct LuaSource {
    /// The name in messages.
    pub(crate) name: Arc<str>,
    /// The content of the file.
    pub(crate) text: Arc<str>,
}

/// The scenario's file and those that it required.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// The scenario's file.
    pub(crate) main: LuaSource,
    /// The file name without folders: the plugin's name.
    pub(crate) title: String,
    folder: PathBuf,
    /// Modules by path below the folder.
    modules: BTreeMap<String, LuaSource>,
}

impl Sources {
    /// Reads the scenario's main file.
    pub(crate) fn read(path: &Path) -> Result<Self, LuaError> {
        let text = read_text(path)?;
        let title = path.file_name().map_or_else(
            || path.display().to_string(),
            |name| name.to_string_lossy().into(),
        );
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
            _ => PathBuf::from("."),
        };
        let main = LuaSource {
            name: display_name(path, &title),
            text,
        };
        Ok(Sources {
            main,
            title,
            folder,
            modules: BTreeMap::new(),
        })
    }

    /// Returns the stored module with this key.
    pub(crate) fn module(&self, key: &str) -> Option<&LuaSource> {
        self.modules.get(key)
    }

    /// Stores a module that [`Sources::find`] returned.
    pub(crate) fn keep(&mut self, key: String, source: LuaSource) {
        self.modules.insert(key, source);
    }

    /// Reads the file `key` below the scenario's folder. The error is a message for the author.
    pub(crate) fn find(&self, key: &str) -> Result<LuaSource, String> {
        if self.modules.len() >= MAX_FILES {
            return Err(format!("a scenario may require {MAX_FILES} files"));
        }
        let path = self.folder.join(key);
        let shown = path.display();
        let root = self
            .folder
            .canonicalize()
            .map_err(|error| format!("cannot read `{shown}`: {error}"))?;
        let real = path
            .canonicalize()
            .map_err(|error| format!("cannot read `{shown}`: {error}"))?;
        if !real.starts_with(&root) {
            return Err(format!(
                "`{shown}` leads out of the scenario's folder (through a link); required files must lie below it"
            ));
        }
        let text = read_text(&real).map_err(|error| error.to_string())?;
        Ok(LuaSource {
            name: display_name(&path, key),
            text,
        })
    }

    /// Returns the text of the file with this name in messages.
    pub(crate) fn text_of(&self, name: &str) -> Option<&str> {
        let mut all = std::iter::once(&self.main).chain(self.modules.values());
        all.find(|source| *source.name == *name)
            .map(|source| &*source.text)
    }

    /// Returns the path and the text of each file, the scenario first.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let modules = self.modules.iter();
        let modules = modules.map(|(key, source)| (key.as_str(), &*source.text));
        std::iter::once((self.title.as_str(), &*self.main.text)).chain(modules)
    }

    /// Returns the BLAKE3 digest of the names and texts of all files, in hex.
    pub(crate) fn digest(&self) -> String {
        digest_of(self.files())
    }
}

/// Returns the BLAKE3 digest of the names and texts of files, in hex. The name of the first, the
/// scenario, is excluded.
pub(crate) fn digest_of<'f>(files: impl Iterator<Item = (&'f str, &'f str)>) -> String {
    let mut hasher = blake3::Hasher::new();
    for (index, (name, text)) in files.enumerate() {
        let name = if index == 0 { "" } else { name };
        for part in [name, text] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
    }
    hasher.finalize().to_hex().to_string()
}

/// Returns the path of `require(name)` below the scenario's folder: always with `.lua`, with
/// forward slashes, and never outside the folder.
pub(crate) fn module_key(call: &str, name: &str) -> Result<String, mlua::Error> {
    let at = At::Root(call);
    let refuse = |why: &str| Err(at.shape(format!("`{}`: {why}", name.escape_debug())).into());
    if name.is_empty() || name.contains(['\0', '\\']) {
        return refuse("expected the name of a file below the scenario's folder, with forward slashes");
    }
    let mut parts = Vec::new();
    for part in Path::new(name).components() {
        match part {
            Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
            Component::CurDir => {}
            Component::ParentDir => {
                return refuse("`..` is not allowed; required files must lie below the scenario's folder");
            }
            Component::RootDir | Component::Prefix(_) => {
                return refuse(
                    "an absolute path is not allowed; required files must lie below the scenario's folder",
                );
            }
        }
    }
    let mut key = parts.join("/");
    if key.is_empty() {
        return refuse("expected the name of a file");
    }
    if !key.ends_with(".lua") && !key.ends_with(".luau") {
        key.push_str(".lua");
    }
    Ok(key)
}

fn display_name(path: &Path, short: &str) -> Arc<str> {
    let name = path.display().to_string();
    let name = if name.len() <= MAX_NAME {
        name
    } else {
        short.chars().take(MAX_NAME / 4).collect()
    };
    // Line breaks in a name would break the lines of a traceback.
    name.replace(['\n', '\r'], "?").into()
}

fn read_text(path: &Path) -> Result<Arc<str>, LuaError> {
    let failed = |error: std::io::Error| LuaError::Read {
        path: path.to_path_buf(),
        reason: error.to_string(),
    };
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        let reason = "it is not a regular file".to_owned();
        return Err(LuaError::Read {
            path: path.to_path_buf(),
            reason,
        });
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE {
        let bytes = metadata.len().max(bytes.len() as u64);
        return Err(LuaError::TooLarge {
            path: path.to_path_buf(),
            bytes,
            allowed: MAX_FILE,
        });
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).into()),
        Err(error) => {
            let offset = error.utf8_error().valid_up_to();
            Err(LuaError::NotText {
                path: path.to_path_buf(),
                offset,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::module_key;

    #[test]
    fn names_become_paths_below_the_folder() {
        for (name, key) in [
            ("x", "x.lua"),
            ("x.lua", "x.lua"),
            ("./lib/x", "lib/x.lua"),
            ("a/b.luau", "a/b.luau"),
        ] {
            assert_eq!(module_key("require", name).unwrap(), key);
        }
    }

    #[test]
    fn no_name_leads_out() {
        for name in [
            "../x",
            "a/../../x",
            "/etc/passwd",
            "",
            "a\\b",
            "a\0b",
            ".",
            "..",
            "x/..",
        ] {
            assert!(module_key("require", name).is_err(), "{name:?}");
        }
    }
}
