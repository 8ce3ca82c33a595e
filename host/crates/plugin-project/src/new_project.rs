//! New projects: an example of the SDK under another name, with the SDK.

use std::path::{Path, PathBuf};

use veeksha_manifest::{FILE_NAME, Language, PluginKind, is_plugin_name};

use crate::embedded::{Example, example_of, examples, files_below};
use crate::error::ProjectError;
use crate::language::layout_of;
use crate::project::SDK_FOLDER;
use crate::project_files::{readme, workflow};

/// A project to make.
#[derive(Clone, Debug)]
pub struct NewProject<'a> {
    /// The folder to make. Its last part is the name of the plugin.
    pub folder: &'a Path,
    /// The kind of the plugin.
    pub kind: PluginKind,
    /// The language of the plugin.
    pub language: Language,
}

/// Parts of an SDK's folder that a project does not contain.
const NOT_OF_PROJECTS: [&str; 3] = ["examples/", "tests/", "node_modules/"];

/// Returns the languages with the kinds that each has a template for.
pub fn templates() -> Vec<(Language, Vec<PluginKind>)> {
    let examples = examples();
    let kinds = |language: Language| -> Vec<PluginKind> {
        let of_language = examples
            .iter()
            .filter(|example| example.manifest.language == language);
        let mut kinds: Vec<PluginKind> = of_language.map(|example| example.kind).collect();
        kinds.sort();
        kinds
    };
    Language::ALL
        .into_iter()
        .map(|language| (language, kinds(language)))
        .collect()
}

/// Makes a project. Either the whole folder is there afterwards, or nothing.
///
/// # Errors
/// If the folder exists, its name is not one of a plugin, there is no template, or a file cannot be
/// written.
pub fn new_project(project: &NewProject<'_>) -> Result<(), ProjectError> {
    let name = name_of(project.folder)?;
    let example = example_of(project.language, project.kind).ok_or_else(|| no_template(project))?;
    if project.folder.symlink_metadata().is_ok() {
        return Err(ProjectError::Usage(format!(
            "{} exists already: choose another name, or remove it",
            project.folder.display()
        )));
    }
    let parent = match project.folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let unwritable = |path: &Path, error: std::io::Error| ProjectError::Unwritable {
        path: path.to_owned(),
        why: error.to_string(),
    };
    std::fs::create_dir_all(parent).map_err(|error| unwritable(parent, error))?;
    let draft = tempfile::Builder::new()
        .prefix(".veeksha-new-")
        .tempdir_in(parent)
        .map_err(|error| unwritable(parent, error))?;
    // The folder of a project is an ordinary one, not a private one.
    let content = draft.path().join(name);
    for (path, bytes) in contents(name, project.language, &example) {
        let path = content.join(path);
        let folder = path.parent().unwrap_or(&content);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, bytes))
            .map_err(|error| unwritable(&path, error))?;
    }
    std::fs::rename(&content, project.folder).map_err(|error| unwritable(project.folder, error))
}

fn name_of(folder: &Path) -> Result<&str, ProjectError> {
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    if is_plugin_name(name) {
        return Ok(name);
    }
    Err(ProjectError::Usage(format!(
        "`{}` does not end with the name of a plugin: expected lower case letters, digits, `-` and `_`, first a \
         letter, at most 64",
        folder.display()
    )))
}

fn no_template(project: &NewProject<'_>) -> ProjectError {
    let templates = templates();
    let kinds = templates
        .iter()
        .find(|(language, _)| *language == project.language)
        .map(|(_, kinds)| kinds.as_slice())
        .unwrap_or_default();
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    let languages: Vec<&str> = templates
        .iter()
        .filter(|(_, kinds)| kinds.contains(&project.kind))
        .map(|(language, _)| language.name())
        .collect();
    let listed = |names: Vec<&str>| {
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    };
    ProjectError::Usage(format!(
        "there is no template of the kind {} in {}: {} has {}; templates of the kind exist in {}",
        project.kind,
        project.language,
        project.language,
        listed(names),
        listed(languages)
    ))
}

/// The files of a project by their paths in it.
fn contents(name: &str, language: Language, example: &Example) -> Vec<(PathBuf, Vec<u8>)> {
    let layout = layout_of(language);
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for (from, to) in layout.copies {
        let of_project = |path: &str| {
            !NOT_OF_PROJECTS.iter().any(|part| path.starts_with(part)) && is_of_kind(path, example.kind)
        };
        for (path, bytes) in files_below(from).filter(|(path, _)| of_project(path)) {
            files.push((Path::new(SDK_FOLDER).join(to).join(path), bytes.to_vec()));
        }
    }
    let renaming = Renaming::new(name, example, layout.replacements);
    for (path, bytes) in files_below(&example.folder) {
        let bytes = match std::str::from_utf8(bytes) {
            Ok(text) => renaming.apply(path, text).into_bytes(),
            Err(_) => bytes.to_vec(),
        };
        files.push((PathBuf::from(renaming.apply("", path)), bytes));
    }
    let generated = [
        ("README.md", readme(name, language, &example.manifest)),
        (".github/workflows/plugin.yml", workflow(language)),
    ];
    for (path, text) in generated {
        if !files.iter().any(|(found, _)| found == Path::new(path)) {
            files.push((path.into(), text.into_bytes()));
        }
    }
    files
}

/// Returns false for bindings of another kind: the SDK of C has a folder of them for each.
fn is_of_kind(path: &str, kind: PluginKind) -> bool {
    let folder = path
        .strip_prefix("generated/")
        .and_then(|path| path.split_once('/'));
    folder.is_none_or(|(folder, _)| folder == snake(kind.name()))
}

/// The texts of an example that differ in a project.
struct Renaming {
    /// In manifests, which have the name as it is.
    of_manifests: Vec<(String, String)>,
    /// Elsewhere, where the name may be an identifier.
    of_sources: Vec<(String, String)>,
}

/// Files that state the name of the plugin.
const MANIFESTS: [&str; 4] = [FILE_NAME, "Cargo.toml", "package.json", "pyproject.toml"];

impl Renaming {
    /// The name of the example in each form of it, and what the layout of the SDK replaces.
    fn new(name: &str, example: &Example, layout: &[(&str, &str)]) -> Self {
        let old = example.manifest.name.as_str();
        let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        let layout: Vec<(String, String)> = layout.iter().map(|(from, to)| pair(from, to)).collect();
        let mut type_name = pascal(name);
        // A plugin with the name `metric` must not define another `Metric`.
        if is_word_of(example, &type_name) {
            type_name.push_str("Plugin");
        }
        let mut of_sources = layout.clone();
        of_sources.extend([
            // The component is named after the manifest.
            pair(&format!("build/{old}."), &format!("build/{name}.")),
            pair(&snake(old), &snake(name)),
            pair(&kebab(old), &kebab(name)),
            pair(&pascal(old), &type_name),
        ]);
        let mut of_manifests = layout;
        of_manifests.push(pair(old, name));
        Renaming {
            of_manifests,
            of_sources,
        }
    }

    fn apply(&self, path: &str, text: &str) -> String {
        let pairs = if MANIFESTS.contains(&path) {
            &self.of_manifests
        } else {
            &self.of_sources
        };
        let replace = |text: String, (from, to): &(String, String)| text.replace(from, to);
        pairs.iter().fold(text.to_owned(), replace)
    }
}

/// Returns true if a source of the example contains this word.
fn is_word_of(example: &Example, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    files_below(&example.folder).any(|(_, bytes)| {
        let text = String::from_utf8_lossy(bytes);
        text.split(|letter| !is_part(letter)).any(|found| found == word)
    })
}

fn snake(name: &str) -> String {
    name.replace('-', "_")
}

fn kebab(name: &str) -> String {
    name.replace('_', "-")
}

fn pascal(name: &str) -> String {
    let parts = name.split(['-', '_']).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let mut letters = part.chars();
            let first = letters.next().map(|letter| letter.to_ascii_uppercase());
            first.into_iter().chain(letters).collect::<String>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use veeksha_manifest::PluginManifest;

    use super::*;

    fn rust(folder: &Path) -> NewProject<'_> {
        NewProject {
            folder,
            kind: PluginKind::SessionGenerator,
            language: Language::Rust,
        }
    }

    #[test]
    fn a_project_has_the_name_in_every_form_and_the_sdk() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("deep/my-questions");
        new_project(&rust(&project)).unwrap();
        let read = |path: &str| std::fs::read_to_string(project.join(path)).unwrap();
        let manifest = PluginManifest::parse(&read("plugin.toml")).unwrap();
        assert_eq!(manifest.name, "my-questions");
        assert!(read("Cargo.toml").contains("name = \"my-questions\""));
        assert!(read("Cargo.toml").contains("path = \"sdk/rust\""));
        assert!(read("src/lib.rs").contains("export_session_generator!(MyQuestions)"));
        assert!(read("scenario.lua").contains("build/my-questions.wasm"));
        for path in [
            "README.md",
            ".gitignore",
            ".github/workflows/plugin.yml",
            "sdk/rust/src/lib.rs",
            "sdk/rust/wit/worlds.wit",
            "sdk/coroutines/src/lib.rs",
        ] {
            assert!(project.join(path).is_file(), "{path}");
        }
        assert!(!project.join("sdk/rust/examples").exists());
        let left: Vec<_> = std::fs::read_dir(project.parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing else is left: {left:?}");
    }

    #[test]
    fn no_project_mentions_its_example() {
        for example in examples() {
            let language = example.manifest.language;
            let old = [example.manifest.name.clone(), pascal(&example.manifest.name)];
            for (path, bytes) in contents("zebra", language, &example) {
                if path.starts_with(SDK_FOLDER) {
                    continue;
                }
                let text = String::from_utf8_lossy(&bytes);
                for old in &old {
                    assert!(
                        !text.contains(old),
                        "{}: {} mentions {old}",
                        example.folder,
                        path.display()
                    );
                }
                assert!(
                    !text.contains("\"../.."),
                    "{}: {}",
                    example.folder,
                    path.display()
                );
            }
        }
    }

    #[test]
    fn a_project_in_c_has_the_bindings_of_its_kind_only() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("gaps");
        let metric = NewProject {
            folder: &project,
            kind: PluginKind::Metric,
            language: Language::C,
        };
        new_project(&metric).unwrap();
        assert!(project.join("sdk/veeksha.h").is_file());
        assert!(project.join("sdk/generated/metric/contract.h").is_file());
        let generated = std::fs::read_dir(project.join("sdk/generated")).unwrap();
        assert_eq!(generated.count(), 1);
    }

    #[test]
    fn refuses_existing_folders_and_other_names() {
        let folder = tempfile::tempdir().unwrap();
        let message = |path: &Path| new_project(&rust(path)).unwrap_err().to_string();
        assert!(message(folder.path()).contains("does not end with the name of a plugin"));
        let existing = folder.path().join("existing");
        std::fs::create_dir(&existing).unwrap();
        assert!(message(&existing).contains("exists already"));
        assert!(message(Path::new("..")).contains("does not end with the name"));
        assert!(message(&folder.path().join("Big")).contains("does not end with the name"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_type_of_the_project_does_not_hide_one_of_the_sdk() {
        let example = example_of(Language::Rust, PluginKind::Metric).unwrap();
        let renaming = |name: &str| {
            Renaming::new(name, &example, &[]).apply("src/lib.rs", "struct StalledTime; // stalled_time")
        };
        assert_eq!(renaming("metric"), "struct MetricPlugin; // metric");
        assert_eq!(renaming("my-cost"), "struct MyCost; // my_cost");
    }

    #[test]
    fn names_have_three_forms() {
        assert_eq!(pascal("shared_document"), "SharedDocument");
        assert_eq!(pascal("a-b_c2"), "ABC2");
        assert_eq!(snake("a-b"), "a_b");
        assert_eq!(kebab("a_b"), "a-b");
    }
}
