//! Copy of a scenario in its run folder, from which the run can be repeated.
//!
//! `config.yml` has every setting, but contains only the names of Lua functions. The folder
//! `scenario` of a run therefore contains the script, the files that it required, and the digests
//! of all plugins.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value as Json, json};
use veeksha_lua::{LuaLimits, LuaScenario};
use veeksha_manifest::lock::LOCK_FILE;
use veeksha_model::REDACTED;
use veeksha_ports::WorkloadInfo;
use veeksha_report::{ReportError, RunFolder};
use veeksha_scenario::{Document, Node, Place, UNPLACED_FUNCTION, Value, function_place, function_text};

use crate::failure::CommandFailure;
use crate::record::sweep_manifest;

/// Subfolder of a run folder for the copy.
const FOLDER: &str = "scenario";
/// File that describes the copy.
const MANIFEST: &str = "scenario/manifest.json";
/// Version of its format.
const VERSION: u64 = 1;
/// Minimum length of redacted secrets: shorter ones may be ordinary words of a script, which cannot
/// be redacted safely.
const MIN_SECRET: usize = 4;
/// Minimum length of redacted parts of a secret, which a script may compose (`"Bearer " .. key`).
const MIN_PART: usize = 6;
/// Words of scripts and headers that a secret may contain by chance, of at least [`MIN_PART`].
const COMMON: [&str; 5] = ["Bearer", "return", "repeat", "elseif", "function"];

/// The role of the plugin that decides when sessions arrive.
pub(crate) const ARRIVAL_PROCESS: &str = "arrival-process";

/// The digest of a plugin, identified by its role and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PluginDigest {
    role: String,
    name: String,
    digest: String,
}

impl PluginDigest {
    pub(crate) fn of(plugins: &[(String, WorkloadInfo)]) -> Vec<Self> {
        let digest = |(role, info): &(String, WorkloadInfo)| PluginDigest {
            role: role.clone(),
            name: info.name.clone(),
            digest: info.digest.clone(),
        };
        plugins.iter().map(digest).collect()
    }

    /// Returns a note for each plugin that differs from the one of the recorded run.
    pub(crate) fn changes(recorded: &[PluginDigest], now: &[PluginDigest]) -> Vec<String> {
        let differs = |known: &&PluginDigest| {
            let mut same = now
                .iter()
                .filter(|plugin| plugin.role == known.role && plugin.name == known.name);
            !same.any(|plugin| plugin.digest == known.digest)
        };
        let changed = recorded.iter().filter(differs).map(|plugin| {
            format!(
                "the {} `{}` differs from that of the recorded run: this run may send other requests",
                plugin.role, plugin.name
            )
        });
        changed.collect()
    }
}

/// Files of a copy, ready to be written.
pub(crate) struct ScenarioCopy {
    files: Vec<(String, String)>,
    manifest: Json,
    /// The lock of the plugins that the run uses.
    lock: Option<String>,
}

impl ScenarioCopy {
    /// Copies the script of a scenario, if it has one. `secrets` are texts that must not be
    /// written, each with its redacted form; `index` is the index of the scenario in the list of
    /// its file.
    pub(crate) fn new(
        lua: Option<&LuaScenario>,
        index: usize,
        secrets: &[(String, String)],
        plugins: &[PluginDigest],
    ) -> Self {
        let mut files = Vec::new();
        if let Some(lua) = lua {
            // The text also has the values that flags replaced, and those of other scenarios.
            let mut secrets = secrets.to_vec();
            secrets.extend(secrets_of(lua.whole()));
            secrets.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
            let can_redact = secrets.iter().all(|(secret, _)| secret.len() >= MIN_SECRET);
            for (path, text) in lua.files().filter(|_| can_redact) {
                files.push((path.to_owned(), redacted(text, &secrets)));
            }
        }
        let original = lua.map(LuaScenario::digest);
        // Redaction changes the script, so its functions are identified by the digest of the copy.
        let copied = files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        let copied = LuaScenario::digest_of(copied);
        let plugin = |plugin: &PluginDigest| {
            let is_lua = original.as_ref() == Some(&plugin.digest);
            let digest = if is_lua { &copied } else { &plugin.digest };
            json!({ "role": plugin.role, "name": plugin.name, "digest": digest })
        };
        let plugins: Vec<Json> = plugins.iter().map(plugin).collect();
        let mut manifest = json!({ "version": VERSION, "plugins": plugins });
        if let Some((main, _)) = files.first() {
            manifest["main"] = main.clone().into();
            manifest["index"] = index.into();
        }
        ScenarioCopy {
            files,
            manifest,
            lock: None,
        }
    }

    /// Adds the text of the lock of the plugins that the run uses.
    pub(crate) fn with_lock(mut self, lock: Option<String>) -> Self {
        self.lock = lock;
        self
    }

    /// Writes the copy into a run folder.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(crate) fn write(&self, folder: &RunFolder) -> Result<(), ReportError> {
        let paths: BTreeSet<_> = self
            .files
            .iter()
            .filter_map(|(path, _)| Path::new(path).parent())
            .chain([Path::new("")])
            .map(|parent| folder.path().join(FOLDER).join(parent))
            .collect();
        for path in paths {
            std::fs::create_dir_all(&path).map_err(|source| ReportError::CreateFolder { path, source })?;
        }
        for (path, text) in &self.files {
            folder.write_text(&format!("{FOLDER}/{path}"), text)?;
        }
        if let Some(lock) = &self.lock {
            folder.write_text(LOCK_FILE, lock)?;
        }
        folder.write_json(MANIFEST, &self.manifest)
    }
}

/// Redacts secrets in a script, and words of it that are a part of a secret.
fn redacted(script: &str, secrets: &[(String, String)]) -> String {
    let redact = |text: String, (secret, shown): &(String, String)| text.replace(secret, shown);
    let text = secrets.iter().fold(script.to_owned(), redact);
    let is_part = |word: &str| {
        let is_of = |(secret, shown): &(String, String)| secret.contains(word) && !shown.contains(word);
        word.len() >= MIN_PART && !COMMON.contains(&word) && secrets.iter().any(is_of)
    };
    let is_of_word = |letter: char| letter.is_alphanumeric() || "_-.~+/=".contains(letter);
    let mut copy = String::with_capacity(text.len());
    // Each piece is a word and the character that ends it.
    for piece in text.split_inclusive(|letter: char| !is_of_word(letter)) {
        let word = piece.trim_end_matches(|letter: char| !is_of_word(letter));
        copy.push_str(if is_part(word) { REDACTED } else { word });
        copy.push_str(&piece[word.len()..]);
    }
    copy
}

/// Returns the texts of a scenario that are redacted before they are written, each with its
/// redacted form.
pub(crate) fn secrets_of(scenario: &Node) -> Vec<(String, String)> {
    let raw = scenario.to_json();
    let redacted = veeksha_scenario::without_secrets(&raw);
    let mut found = Vec::new();
    collect_secrets(&raw, &redacted, &mut found);
    // A secret may contain another one.
    found.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
    found
}

fn collect_secrets(raw: &Json, redacted: &Json, found: &mut Vec<(String, String)>) {
    match (raw, redacted) {
        (Json::Object(raw), Json::Object(redacted)) => {
            for (key, value) in raw {
                collect_secrets(value, redacted.get(key).unwrap_or(&Json::Null), found);
            }
        }
        (Json::Array(raw), Json::Array(redacted)) => {
            for (raw, redacted) in raw.iter().zip(redacted) {
                collect_secrets(raw, redacted, found);
            }
        }
        (Json::Object(raw), redacted) => raw.values().for_each(|raw| collect_secrets(raw, redacted, found)),
        (Json::Array(raw), redacted) => raw.iter().for_each(|raw| collect_secrets(raw, redacted, found)),
        (raw, redacted) if raw != redacted => {
            let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            found.push((text(raw), text(redacted)));
        }
        _ => {}
    }
}

/// The scenario of a recorded run.
pub(crate) struct RecordedScenario {
    /// `config.yml`, with the functions of the script restored.
    pub(crate) document: Document,
    /// The script.
    pub(crate) lua: Option<LuaScenario>,
    /// Index of the scenario in the list of its script.
    pub(crate) index: usize,
    /// Plugins of the recorded run.
    pub(crate) plugins: Vec<PluginDigest>,
}

/// Reads the scenario of a run folder. `config` is the text of its `config.yml`.
///
/// # Errors
/// If it is not a scenario, or has Lua functions and the folder has no copy of the script.
pub(crate) fn read(folder: &Path, config: &str) -> Result<RecordedScenario, CommandFailure> {
    let shown = folder.join("config.yml").display().to_string();
    let mut document = Document::from_yaml(config, &shown).map_err(CommandFailure::usage)?;
    let manifest = CopyManifest::read(folder)?;
    let index = manifest.index;
    let lua = match &manifest.main {
        Some(main) => {
            let script = folder.join(FOLDER).join(main);
            let lua = LuaScenario::load(&script, LuaLimits::default()).map_err(CommandFailure::usage)?;
            Some(lua.of(index).map_err(CommandFailure::usage)?)
        }
        None => None,
    };
    restore_functions(&mut document.root, lua.as_ref().map(LuaScenario::root)).map_err(|path| {
        CommandFailure::usage(format!(
            "{shown}: {path}: the Lua function is not in the folder `{FOLDER}` of the run"
        ))
        .hinted("run the original scenario")
    })?;
    Ok(RecordedScenario {
        document,
        lua,
        index,
        plugins: manifest.plugins,
    })
}

/// The code of a recorded run, which identifies its plugins and Lua functions independently of the
/// folders that they were read from.
pub struct RecordedCode {
    folder: PathBuf,
    plugins: Vec<PluginDigest>,
}

impl RecordedCode {
    /// Reads the manifest of a run folder. Without a readable one, no plugin is known.
    pub fn read(folder: &Path) -> Self {
        RecordedCode {
            folder: folder.join(FOLDER),
            plugins: CopyManifest::read(folder).unwrap_or_default().plugins,
        }
    }

    /// Returns the role and name of each plugin, and the digest of its code.
    pub fn plugins(&self) -> impl Iterator<Item = (String, &str)> {
        self.plugins
            .iter()
            .map(|plugin| (format!("{} {}", plugin.role, plugin.name), plugin.digest.as_str()))
    }

    /// Returns the digest of the code of the arrival process, if the run had one.
    pub fn arrival_process(&self) -> Option<&str> {
        let mut plugins = self.plugins.iter();
        let process = plugins.find(|plugin| plugin.role == ARRIVAL_PROCESS)?;
        Some(&process.digest)
    }

    /// Returns a text that has a Lua function's place with the file relative to the folder of the
    /// script: `function at s.lua:7`, wherever the script was. Other texts are unchanged.
    pub fn function_text(&self, text: String) -> String {
        let Some(place) = function_place(&text) else {
            return text;
        };
        let file = Path::new(&*place.file);
        let parts: Vec<Component<'_>> = file.components().collect();
        let mut below = (0..parts.len()).map(|skipped| parts[skipped..].iter().collect::<PathBuf>());
        let is_copied =
            |path: &PathBuf| path.to_str().is_some_and(is_below) && self.folder.join(path).is_file();
        match below.find(is_copied) {
            Some(path) => function_text(Some(&Place {
                file: path.to_string_lossy().into(),
                ..place
            })),
            None => text,
        }
    }
}

/// The manifest of a copy; the default is that of a run by a version without copies.
#[derive(Debug, Default, PartialEq)]
struct CopyManifest {
    /// The script, a file of the folder [`FOLDER`].
    main: Option<String>,
    index: usize,
    plugins: Vec<PluginDigest>,
}

impl CopyManifest {
    /// Reads the manifest of a run folder.
    fn read(folder: &Path) -> Result<Self, CommandFailure> {
        let path = folder.join(MANIFEST);
        if sweep_manifest::is_sweep(folder) {
            return Err(sweep_manifest::not_a_run(folder));
        }
        if !path.exists() {
            return Ok(CopyManifest::default());
        }
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        let manifest = text.and_then(|text| CopyManifest::parse(&text));
        manifest.map_err(|reason| {
            CommandFailure::usage(format!("cannot read {}: {reason}", path.display()))
                .hinted("run the original scenario")
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let manifest: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let version = manifest.get("version").unwrap_or(&Json::Null);
        if *version != json!(VERSION) {
            return Err(format!("`version` must be {VERSION}, got {version}"));
        }
        let main = match manifest.get("main") {
            None => None,
            Some(Json::String(main)) if is_below(main) => Some(main.clone()),
            Some(other) => {
                return Err(format!(
                    "`main` must be a file in the folder `{FOLDER}`, got {other}"
                ));
            }
        };
        let index = match manifest.get("index") {
            None => 0,
            Some(index) => index
                .as_u64()
                .and_then(|index| usize::try_from(index).ok())
                .ok_or_else(|| format!("`index` must be a whole number, got {index}"))?,
        };
        let Some(Json::Array(plugins)) = manifest.get("plugins") else {
            return Err("`plugins` must be a list".to_owned());
        };
        let text = |plugin: &Json, key: &str| plugin.get(key)?.as_str().map(str::to_owned);
        let plugin = |plugin: &Json| {
            let digest = PluginDigest {
                role: text(plugin, "role")?,
                name: text(plugin, "name")?,
                digest: text(plugin, "digest")?,
            };
            Some(digest)
        };
        let plugins: Option<Vec<_>> = plugins.iter().map(plugin).collect();
        Ok(CopyManifest {
            main,
            index,
            plugins: plugins.ok_or("each of `plugins` must have `role`, `name` and `digest`")?,
        })
    }
}

/// Returns true if a relative path does not leave its folder.
fn is_below(path: &str) -> bool {
    let mut parts = Path::new(path).components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Replaces the names of functions by the functions at the same paths of the script, unless the
/// script has a text there. The error is the path of a missing function.
fn restore_functions(node: &mut Node, script: Option<&Node>) -> Result<(), String> {
    let below = |key: &str, path: String| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{key}.{path}")
        }
    };
    match &mut node.value {
        Value::Text(text) if function_place(text).is_some() => {
            let script = script.ok_or_else(String::new)?;
            if !matches!(script.value, Value::Text(_)) {
                *node = script.clone();
            }
        }
        // The place of a function in a table that a function or a loop makes is not known.
        Value::Text(text) if text == UNPLACED_FUNCTION => {
            if let Some(script) = script.filter(|script| !matches!(script.value, Value::Text(_))) {
                *node = script.clone();
            }
        }
        Value::Map(entries) => {
            let is_function =
                |node: &Node| matches!(&node.value, Value::Text(text) if function_place(text).is_some());
            let has_function = entries.iter().any(|(_, value)| is_function(value));
            for (key, value) in entries {
                let script = script.and_then(|script| script.get(key));
                restore_functions(value, script).map_err(|path| below(key, path))?;
            }
            // Functions of an evaluator are named by the place of its table.
            if let Some(script) = script.filter(|_| has_function) {
                node.place.clone_from(&script.place);
            }
        }
        Value::List(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let script = script.and_then(|script| match &script.value {
                    Value::List(items) => items.get(index),
                    _ => None,
                });
                restore_functions(item, script).map_err(|path| below(&index.to_string(), path))?;
            }
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_own_manifest() {
        let digest = PluginDigest {
            role: "workload".to_owned(),
            name: "a".to_owned(),
            digest: "0f".to_owned(),
        };
        let copy = ScenarioCopy::new(None, 0, &[], std::slice::from_ref(&digest));
        assert_eq!(
            CopyManifest::parse(&copy.manifest.to_string()),
            Ok(CopyManifest {
                plugins: vec![digest],
                ..CopyManifest::default()
            })
        );
    }

    #[test]
    fn functions_are_named_by_the_files_of_the_copy() {
        let run = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(run.path().join("scenario/lib")).unwrap();
        for file in ["scenario/s.lua", "scenario/lib/sizes.lua"] {
            std::fs::write(run.path().join(file), "").unwrap();
        }
        let code = RecordedCode::read(run.path());
        for (text, expected) in [
            ("function at s.lua:7", "function at s.lua:7"),
            ("function at /home/x/s.lua:7", "function at s.lua:7"),
            ("function at ../x/lib/sizes.lua:3", "function at lib/sizes.lua:3"),
            ("function at other.lua:1", "function at other.lua:1"),
            ("function at work", "function at work"),
        ] {
            assert_eq!(code.function_text(text.to_owned()), expected);
        }
    }

    #[test]
    fn restores_functions_but_no_texts_that_resemble_them() {
        let text = |text: &str| Node::new(Value::Text(text.to_owned()));
        let mut node = text("function at work");
        assert_eq!(restore_functions(&mut node, None), Ok(()));
        assert_eq!(node, text("function at work"));

        let mut node = text("function at s.lua:12");
        assert_eq!(
            restore_functions(&mut node, Some(&text("function at s.lua:12"))),
            Ok(())
        );
        assert_eq!(node, text("function at s.lua:12"));
        assert_eq!(restore_functions(&mut node, None), Err(String::new()));
        let function = Node::new(Value::Function);
        assert_eq!(restore_functions(&mut node, Some(&function)), Ok(()));
        assert_eq!(node, function);
    }

    #[test]
    fn refuses_invalid_manifests() {
        for (text, reason) in [
            ("{}", "`version` must be 1, got null"),
            (r#"{"version": 2, "plugins": []}"#, "`version` must be 1, got 2"),
            (
                r#"{"version": 1, "plugins": [], "main": "../a.lua"}"#,
                "`main` must be a file in the folder `scenario`, got \"../a.lua\"",
            ),
            (
                r#"{"version": 1, "plugins": [], "main": "/a.lua"}"#,
                "`main` must be a file in the folder `scenario`, got \"/a.lua\"",
            ),
            (
                r#"{"version": 1, "plugins": [], "main": 7}"#,
                "`main` must be a file in the folder `scenario`, got 7",
            ),
            (
                r#"{"version": 1, "plugins": [], "index": -1}"#,
                "`index` must be a whole number, got -1",
            ),
            (r#"{"version": 1}"#, "`plugins` must be a list"),
            (
                r#"{"version": 1, "plugins": [{"role": "a"}]}"#,
                "each of `plugins` must have `role`, `name` and `digest`",
            ),
        ] {
            assert_eq!(CopyManifest::parse(text), Err(reason.to_owned()), "{text}");
        }
    }
}
