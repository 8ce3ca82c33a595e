//! The files that the checks read.

use std::path::{Path, PathBuf};

use super::lexer::{self, Token};

/// Folders and files without prose of the project: data, generated files, built components.
const SKIPPED: [&str; 7] = [
    "target",
    "dist",
    "fixtures",
    "snapshots",
    "node_modules",
    "data",
    "benchmark_output",
];

/// The language of a file, as far as the checks differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rust.
    Rust,
    /// Markdown.
    Markdown,
    /// WIT, whose comments begin with `//`.
    Wit,
    /// Lua and Luau, whose comments begin with `--`.
    Lua,
    /// Any other text: scripts, pages, manifests.
    Other,
}

/// A file.
pub struct Source {
    /// Path below the repository's root, with `/`.
    pub path: String,
    /// Its language.
    pub kind: Kind,
    /// Its contents.
    pub text: String,
}

impl Source {
    /// Returns the tokens of a Rust file.
    pub(super) fn tokens(&self) -> Vec<Token<'_>> {
        lexer::tokens(&self.text)
    }

    /// Returns the folder of the crate that the file is a source of, and its path below `src`.
    pub(super) fn module_path(&self) -> Option<(&str, Vec<&str>)> {
        let (folder, inside) = self.path.split_once("/src/")?;
        let mut path: Vec<&str> = inside.strip_suffix(".rs")?.split('/').collect();
        match path.last() {
            Some(&"mod") => {
                path.pop();
            }
            Some(&"lib") if path.len() == 1 => {
                path.pop();
            }
            _ => {}
        }
        Some((folder, path))
    }

    /// Returns true for files that only tests and examples use.
    pub(super) fn is_test(&self) -> bool {
        let parts: Vec<&str> = self.path.split('/').collect();
        let is_test_folder = |part: &&str| ["tests", "benches", "examples"].contains(part);
        parts.iter().any(is_test_folder) || self.path.ends_with("/tests.rs")
    }
}

/// Every checked file of the repository.
pub struct Sources {
    root: PathBuf,
    files: Vec<Source>,
}

impl Sources {
    pub(super) fn read(root: &Path) -> Result<Sources, String> {
        let mut files = Vec::new();
        walk(root, root, &mut files)?;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Sources {
            root: root.to_owned(),
            files,
        })
    }

    /// The repository's root.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The files, by path.
    #[must_use]
    pub fn files(&self) -> &[Source] {
        &self.files
    }

    /// The Rust files.
    pub(super) fn rust(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|file| file.kind == Kind::Rust)
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Sources {
        let source = |&(path, text): &(&str, &str)| Source {
            path: path.to_owned(),
            kind: kind(path).expect("a known kind"),
            text: text.to_owned(),
        };
        Sources {
            root: PathBuf::new(),
            files: files.iter().map(source).collect(),
        }
    }
}

fn kind(path: &str) -> Option<Kind> {
    let (_, extension) = path.rsplit_once('.').unwrap_or(("", path));
    match extension {
        "rs" => Some(Kind::Rust),
        "md" => Some(Kind::Markdown),
        "wit" => Some(Kind::Wit),
        "lua" | "luau" => Some(Kind::Lua),
        "js" | "mjs" | "html" | "css" | "toml" | "yml" | "sh" | "py" => Some(Kind::Other),
        _ if path == ".ci/run" => Some(Kind::Other),
        _ => None,
    }
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<Source>) -> Result<(), String> {
    let failed = |path: &Path, error: std::io::Error| format!("cannot read {}: {error}", path.display());
    for entry in std::fs::read_dir(folder).map_err(|error| failed(folder, error))? {
        let path = entry.map_err(|error| failed(folder, error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_hidden = name.starts_with('.') && name != ".ci" && name != ".github";
        if is_hidden || SKIPPED.contains(&&*name) || name.starts_with("target-") {
            continue;
        }
        if path.is_dir() {
            walk(root, &path, files)?;
            continue;
        }
        let below = path.strip_prefix(root).unwrap_or(&path);
        let below = below.to_string_lossy().replace('\\', "/");
        if let Some(kind) = kind(&below) {
            let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
            files.push(Source {
                path: below,
                kind,
                text,
            });
        }
    }
    Ok(())
}

/// The code of a Rust file without its comments and without items under `#[cfg(test)]`.
pub(super) fn production<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let code: Vec<Token<'a>> = tokens
        .iter()
        .filter(|token| token.kind != lexer::Kind::Comment)
        .copied()
        .collect();
    let mut kept = Vec::with_capacity(code.len());
    let mut at = 0;
    while at < code.len() {
        if is_test_attribute(code.get(at..).unwrap_or_default()) {
            at = item_end(&code, at);
        } else {
            kept.extend(code.get(at).copied());
            at += 1;
        }
    }
    kept
}

/// Returns true if `#[cfg(test)]` or `#[test]` begins here, also `cfg(all(test, …))`.
fn is_test_attribute(tokens: &[Token]) -> bool {
    let text: Vec<&str> = tokens.iter().take(7).map(|token| token.text).collect();
    matches!(
        text.as_slice(),
        ["#", "[", "cfg", "(", "test", ")", "]", ..]
            | ["#", "[", "cfg", "(", "all", "(", "test", ..]
            | ["#", "[", "test", "]", ..]
    )
}

/// The place after the item that begins at `start`: after its `;`, or after its closing brace.
fn item_end(tokens: &[Token], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(token) = tokens.get(at) {
        at += 1;
        if token.is("{") || token.is("(") || token.is("[") {
            depth += 1;
        } else if token.is("}") || token.is(")") || token.is("]") {
            depth = depth.saturating_sub(1);
            if depth == 0 && token.is("}") {
                return at;
            }
        } else if (token.is(";") || token.is(",")) && depth == 0 {
            return at;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_out_comments_and_test_items() {
        let text = "// c\nfn a() {}\n#[cfg(test)]\nmod tests { fn b() {} }\n#[cfg(test)]\nuse x;\nfn d() {}";
        let kept: Vec<&str> = production(&lexer::tokens(text))
            .iter()
            .map(|token| token.text)
            .collect();
        assert_eq!(
            kept,
            ["fn", "a", "(", ")", "{", "}", "fn", "d", "(", ")", "{", "}"]
        );
    }

    #[test]
    fn maps_files_to_modules() {
        let sources = Sources::of(&[("c/src/lib.rs", ""), ("c/src/a/mod.rs", ""), ("c/src/a/b.rs", "")]);
        let paths: Vec<_> = sources.files().iter().map(Source::module_path).collect();
        assert_eq!(
            paths,
            [
                Some(("c", vec![])),
                Some(("c", vec!["a"])),
                Some(("c", vec!["a", "b"]))
            ]
        );
    }
}
