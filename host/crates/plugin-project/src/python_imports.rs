//! The capabilities of the host that a Python project imports.

use std::path::Path;

use crate::error::ProjectError;

/// The modules of the SDK that represent an interface of the host with the same name.
const MODULES: [&str; 2] = ["tokens", "blobs"];

/// Returns the interfaces of the host whose modules the sources in a folder import, in the order of
/// the contract.
///
/// A component of Python imports every interface of its world, so the world must be known before
/// the plugin runs.
///
/// # Errors
/// If a source cannot be read.
pub(crate) fn host_modules(source: &Path) -> Result<Vec<&'static str>, ProjectError> {
    let mut found = [false; MODULES.len()];
    search(source, &mut found)?;
    let named = MODULES.into_iter().zip(found);
    Ok(named.filter(|(_, found)| *found).map(|(name, _)| name).collect())
}

fn search(folder: &Path, found: &mut [bool; MODULES.len()]) -> Result<(), ProjectError> {
    let unreadable = |path: &Path, error: &std::io::Error| ProjectError::Unreadable {
        path: path.to_owned(),
        why: error.to_string(),
    };
    for entry in std::fs::read_dir(folder).map_err(|error| unreadable(folder, &error))? {
        let path = entry.map_err(|error| unreadable(folder, &error))?.path();
        if path.is_dir() {
            search(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "py") {
            let text = std::fs::read(&path).map_err(|error| unreadable(&path, &error))?;
            let text = String::from_utf8_lossy(&text);
            for (module, found) in MODULES.into_iter().zip(found.iter_mut()) {
                *found |= imports(&text, module);
            }
        }
    }
    Ok(())
}

/// Returns true if a source imports `veeksha.MODULE`.
fn imports(text: &str, module: &str) -> bool {
    let dotted = format!("veeksha.{module}");
    let mut lines = text.lines().map(without_comment);
    while let Some(line) = lines.next() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("import"), Some(_)) => {
                let names = line.trim_start().trim_start_matches("import");
                if first_words(names).any(|name| name == dotted) {
                    return true;
                }
            }
            (Some("from"), Some(package)) if package == dotted => return true,
            (Some("from"), Some("veeksha")) => {
                let Some((_, names)) = line.split_once("import") else {
                    continue;
                };
                let mut names = names.to_owned();
                // A list in parentheses may continue on further lines.
                while names.contains('(') && !names.contains(')') {
                    let Some(more) = lines.next() else { break };
                    names.push(' ');
                    names.push_str(more);
                }
                if first_words(names.trim_matches(|letter| " ()".contains(letter))).any(|name| name == module)
                {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

fn without_comment(line: &str) -> &str {
    line.split_once('#').map_or(line, |(code, _)| code)
}

/// Returns the imported names of a list: `a, b as c` has `a` and `b`.
fn first_words(names: &str) -> impl Iterator<Item = &str> {
    names.split(',').filter_map(|name| name.split_whitespace().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_each_form_of_an_import() {
        for source in [
            "import veeksha.blobs",
            "import json, veeksha.blobs as files",
            "    from veeksha.blobs import read",
            "from veeksha import Agent, blobs",
            "from veeksha import blobs as files  # the corpus",
            "from veeksha import (\n    Agent,  # one\n    blobs,\n)\n",
        ] {
            assert!(imports(source, "blobs"), "{source}");
            assert!(!imports(source, "tokens"), "{source}");
        }
    }

    #[test]
    fn other_mentions_of_a_name_are_not_imports() {
        for source in [
            "tokens = 5",
            "# import veeksha.tokens",
            "from veeksha import Request\nfrom other import tokens",
            "import veeksha\nimport tokens",
            "from veeksha import token_ids",
        ] {
            assert!(!imports(source, "tokens"), "{source}");
        }
    }
}
