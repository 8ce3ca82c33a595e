//! Reading of scenarios: files, overrides, the environment, and the checks that need no plugin.

use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};

use veeksha_lua::{LuaLimits, LuaScenario};
use veeksha_model::REDACTED;
use veeksha_scenario::{Document, Documents, Node, Place, Scenario, ScenarioError, Value, is_secret_path};

use crate::failure::CommandFailure;
use crate::scenario::command_line_grant::CommandLineGrant;
use crate::scenario::decision_redaction::DecisionRedaction;
use crate::scenario::scenario_copy::{self, PluginDigest, ScenarioCopy};
use crate::scenario::variants::Variant;
use crate::workload::plugin_limits;
use crate::workload::plugin_registry::PluginRegistry;
use crate::workload::shipped;
use veeksha_present::terminal;

/// Maximum size of a file, in bytes. Components of interpreted languages have tens of MiB.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// A scenario that was read and validated.
#[derive(Clone)]
pub struct Loaded {
    /// The resolved scenario.
    pub scenario: Scenario,
    lua: Option<LuaScenario>,
    /// Index of the scenario in the list of its Lua file.
    index: usize,
    /// Texts that are never written, with their redacted forms.
    secrets: Vec<(String, String)>,
    /// Plugins of the recorded run that this scenario repeats.
    recorded_plugins: Vec<PluginDigest>,
    folder: PathBuf,
    /// The file, and those that it requires or includes.
    pub(crate) files: Vec<PathBuf>,
    cache: Option<PathBuf>,
    /// `evaluators` as written, with positions, because some errors in them are found only after
    /// plugins are open.
    evaluators: Node,
    /// Capabilities that the command line grants.
    pub(crate) grants: Vec<CommandLineGrant>,
    /// The plugins of its run.
    pub(crate) plugins: PluginRegistry,
}

impl Loaded {
    /// Returns the position of a key below `evaluators` (`evaluators[0].slos[1]`), if it is known.
    pub(crate) fn place(&self, path: &str) -> Option<&Place> {
        self.evaluators.nearest_to(path).place.as_ref()
    }

    /// Returns the folder of the scenario's file, to which its paths are relative.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder of cached components and tokenizers; `None` if the cache is disabled.
    pub(crate) fn cache(&self) -> Option<&Path> {
        self.cache.as_deref()
    }

    /// Returns the copy of the scenario for its run folder, given the plugins of the run.
    pub(crate) fn copy(&self, plugins: &[PluginDigest]) -> ScenarioCopy {
        ScenarioCopy::new(self.lua.as_ref(), self.index, &self.secrets, plugins)
    }

    /// Returns the redaction of the decisions that a run of the scenario records.
    pub(crate) fn redaction(&self) -> DecisionRedaction {
        let mut secrets = self.secrets.clone();
        if let Some(lua) = &self.lua {
            secrets.extend(scenario_copy::secrets_of(lua.whole()));
        }
        let key = self.scenario.client.api_key.iter();
        secrets.extend(key.map(|key| (key.expose().to_owned(), REDACTED.to_owned())));
        let granted = self.plugins.secrets().into_iter();
        secrets.extend(granted.map(|value| (value, REDACTED.to_owned())));
        DecisionRedaction::new(secrets)
    }

    /// Returns the plugins of the recorded run that this scenario repeats; empty otherwise.
    pub(crate) fn recorded_plugins(&self) -> &[PluginDigest] {
        &self.recorded_plugins
    }

    /// Returns the Lua scenario that defines the function at `key`.
    pub(crate) fn lua(&self, key: &str) -> Result<&LuaScenario, CommandFailure> {
        self.lua.as_ref().ok_or_else(|| {
            CommandFailure::usage(format!("{key}: Lua functions are only allowed in .lua scenarios"))
        })
    }
}

/// A scenario file that was read and still accepts overrides.
pub struct Source {
    documents: Documents,
    lua: Option<LuaScenario>,
    folder: PathBuf,
    /// The file, and those that it requires or includes.
    files: Vec<PathBuf>,
    /// Set if the source is a run folder.
    recorded: Option<RecordedSource>,
    grants: Vec<CommandLineGrant>,
}

impl Source {
    /// Reads the file of a scenario, or the scenario of a run folder.
    ///
    /// # Errors
    /// If it cannot be read, or is not valid Lua, YAML or JSON.
    pub fn read(path: &Path) -> Result<Source, CommandFailure> {
        if path.is_dir() {
            return Source::read_run(path);
        }
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let is_lua = path
            .extension()
            .is_some_and(|extension| extension == "lua" || extension == "luau");
        if is_lua {
            let lua = LuaScenario::load(path, LuaLimits::default()).map_err(CommandFailure::usage)?;
            return Ok(Source {
                documents: lua.documents.clone(),
                files: lua.files().map(|(file, _)| folder.join(file)).collect(),
                lua: Some(lua),
                folder,
                recorded: None,
                grants: Vec::new(),
            });
        }
        let text = read_text(path).map_err(|reason| {
            CommandFailure::usage(format!("cannot read the scenario {}: {reason}", path.display()))
        })?;
        let mut files = vec![path.to_owned()];
        let documents = Documents::from_yaml(&text, path, &mut |path: &Path| {
            files.push(path.to_owned());
            read_text(path)
        });
        Ok(Source {
            documents: documents.map_err(CommandFailure::usage)?,
            lua: None,
            files,
            folder,
            recorded: None,
            grants: Vec::new(),
        })
    }

    /// Reads the scenario of a run folder, so that the run can be repeated.
    fn read_run(folder: &Path) -> Result<Source, CommandFailure> {
        let config = folder.join("config.yml");
        let text = read_text(&config).map_err(|reason| {
            CommandFailure::usage(format!("cannot read the scenario {}: {reason}", config.display()))
                .hinted("give the file of a scenario, or the folder of a run")
        })?;
        let recorded = scenario_copy::read(folder, &text)?;
        Ok(Source {
            documents: Documents::new(recorded.document.root),
            lua: recorded.lua,
            folder: folder.to_owned(),
            files: vec![config],
            recorded: Some(RecordedSource {
                index: recorded.index,
                plugins: recorded.plugins,
            }),
            grants: Vec::new(),
        })
    }

    /// Creates a scenario that is not in a file; its paths are relative to `folder`.
    pub fn of(document: Document, folder: PathBuf) -> Source {
        Source {
            documents: Documents::new(document.root),
            lua: None,
            folder,
            files: Vec::new(),
            recorded: None,
            grants: Vec::new(),
        }
    }

    /// Creates an empty scenario with all defaults.
    pub fn nothing() -> Result<Source, CommandFailure> {
        Source::empty(PathBuf::new())
    }

    /// Creates an empty scenario with all defaults, whose paths are relative to `folder`.
    pub(crate) fn empty(folder: PathBuf) -> Result<Source, CommandFailure> {
        let nothing = Document::from_yaml("", "nothing").map_err(CommandFailure::internal)?;
        Ok(Source::of(nothing, folder))
    }

    /// Grants capabilities to plugins, for one invocation.
    pub fn granting(mut self, grants: &[CommandLineGrant]) -> Self {
        self.grants.extend_from_slice(grants);
        self
    }

    /// Applies overrides (`KEY=VALUE`, then the flags), validates the scenario, and adds values
    /// from the environment.
    ///
    /// # Errors
    /// If the scenario has an error, or the file contains several scenarios.
    pub fn settle(
        mut self,
        set: &[String],
        overrides: &[(String, String)],
        no_cache: bool,
    ) -> Result<Loaded, CommandFailure> {
        self.override_with(set, overrides)?;
        let document = self.documents.single().map_err(CommandFailure::usage)?;
        let lua = self
            .lua
            .map(|lua| lua.of(0))
            .transpose()
            .map_err(CommandFailure::usage)?;
        let mut loaded = settled(document, lua, self.folder, no_cache, 0, self.recorded.as_ref())?;
        loaded.grants = self.grants;
        loaded.files = self.files;
        Ok(loaded)
    }

    /// Does the same for a file with one or more scenarios; each has a separate result.
    pub fn variants(
        mut self,
        set: &[String],
        overrides: &[(String, String)],
        no_cache: bool,
    ) -> Result<Vec<Variant<Result<Loaded, CommandFailure>>>, CommandFailure> {
        self.override_with(set, overrides)?;
        let cells = self.documents.cells().map_err(CommandFailure::usage)?;
        let mut settled_variants = Vec::new();
        for cell in cells {
            let lua = self.lua.as_ref().map(|lua| lua.of(cell.scenario));
            let lua = lua.transpose().map_err(CommandFailure::usage);
            let loaded = lua.and_then(|lua| {
                let (folder, recorded) = (self.folder.clone(), self.recorded.as_ref());
                let mut loaded = settled(cell.document, lua, folder, no_cache, cell.scenario, recorded)?;
                loaded.grants.clone_from(&self.grants);
                loaded.files.clone_from(&self.files);
                Ok(loaded)
            });
            settled_variants.push((cell.settings, loaded));
            // The output of the top level is shown only once.
            if let Some(lua) = &mut self.lua {
                lua.messages.clear();
            }
        }
        Ok(Variant::all(settled_variants))
    }

    fn override_with(
        &mut self,
        set: &[String],
        overrides: &[(String, String)],
    ) -> Result<(), CommandFailure> {
        for assignment in set {
            let Some((key, value)) = assignment.split_once('=') else {
                return Err(
                    CommandFailure::usage(format!("--set {assignment}: expected KEY=VALUE"))
                        .hinted("for example --set runtime.max_sessions=100"),
                );
            };
            self.documents
                .set(key, &path_of_shell(key, value))
                .map_err(|error| refused_override(&format!("--set {key}="), key, value, &error))?;
        }
        for (key, value) in overrides {
            // A key is always text, and messages never repeat it.
            if key.ends_with("api_key") {
                let quoted = serde_json::Value::from(value.as_str()).to_string();
                self.documents
                    .set(key, &quoted)
                    .map_err(|_| CommandFailure::usage(format!("--{key}: cannot be set")))?;
                continue;
            }
            self.documents
                .set(key, &path_of_shell(key, value))
                .map_err(|error| refused_override(&format!("--{key} "), key, value, &error))?;
        }
        Ok(())
    }
}

/// Returns the failure of an override. `argument` is the argument up to its value, which is not
/// repeated if it may be secret.
fn refused_override(argument: &str, key: &str, value: &str, error: &ScenarioError) -> CommandFailure {
    if !is_secret_path(key) {
        return CommandFailure::usage(format!("{argument}{value}: {error}"));
    }
    let reason = match error {
        ScenarioError::Value { message, .. } => message,
        other => &other.to_string(),
    };
    // A parser's message may repeat the value.
    let reason = if reason.contains(value.trim()) {
        "the value cannot be read"
    } else {
        reason
    };
    CommandFailure::usage(format!("{argument}{REDACTED}: cannot set `{key}`: {reason}"))
}

/// Keys of files that a command line gives relative to the working directory, not the scenario's
/// folder.
const SHELL_PATHS: [&str; 2] = ["session_generator.recorded_run", "session_generator.run"];

/// The same for keys of each client.
const CLIENT_SHELL_PATHS: [&str; 3] = [".tls.ca_file", ".tls.client_certificate", ".tls.client_key"];

/// Returns the value of an override: a path in [`SHELL_PATHS`] becomes absolute.
fn path_of_shell<'a>(key: &str, value: &'a str) -> Cow<'a, str> {
    let is_of_client =
        |rest: &str| key == format!("client{rest}") || key.starts_with("clients.") && key.ends_with(rest);
    let is_path = (SHELL_PATHS.contains(&key) || CLIENT_SHELL_PATHS.into_iter().any(is_of_client))
        && !["", "null", "~"].contains(&value.trim());
    match std::path::absolute(value).ok().filter(|_| is_path) {
        Some(path) => Cow::Owned(serde_json::Value::from(path.to_string_lossy()).to_string()),
        None => Cow::Borrowed(value),
    }
}

/// Data of the run that a source repeats.
#[derive(Clone)]
struct RecordedSource {
    index: usize,
    plugins: Vec<PluginDigest>,
}

fn settled(
    document: Document,
    mut lua: Option<LuaScenario>,
    folder: PathBuf,
    no_cache: bool,
    index: usize,
    recorded: Option<&RecordedSource>,
) -> Result<Loaded, CommandFailure> {
    let secrets = scenario_copy::secrets_of(&document.root);
    let evaluators = document.root.get("evaluators").cloned();
    let evaluators = evaluators.map(|node| ("evaluators".to_owned(), node));
    let mut scenario = document
        .check(&shipped::schemas())
        .map_err(CommandFailure::usage)?;
    fill_from_environment(&mut scenario);
    if let Some(lua) = &mut lua {
        for (level, line) in &lua.messages {
            terminal::err(format!("[lua {level}] {line}"));
        }
        lua.set_limits(plugin_limits::of_lua(&scenario.runtime.plugin_limits));
    }
    let cache = if no_cache { None } else { cache_folder() };
    Ok(Loaded {
        scenario,
        lua,
        index: recorded.map_or(index, |recorded| recorded.index),
        secrets,
        recorded_plugins: recorded.map_or_else(Vec::new, |recorded| recorded.plugins.clone()),
        folder,
        files: Vec::new(),
        cache,
        evaluators: Node::new(Value::Map(evaluators.into_iter().collect())),
        grants: Vec::new(),
        plugins: PluginRegistry::default(),
    })
}

fn read_text(path: &Path) -> Result<String, String> {
    String::from_utf8(read(path)?).map_err(|_| "it is not UTF-8".to_owned())
}

/// Reads a regular file; a device or a pipe might never end.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let file = veeksha_record::open_plain(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    // One additional byte reveals a file that is too large, even one that grows.
    let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
    match read.map_err(|error| error.to_string())? as u64 {
        ..=MAX_FILE_BYTES => Ok(bytes),
        _ => Err(format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20)),
    }
}

fn fill_from_environment(scenario: &mut Scenario) {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let Scenario { client, clients, .. } = scenario;
    if client.api_base.is_none() && client.targets.is_empty() {
        client.api_base = variable("OPENAI_API_BASE");
    }
    if client.api_key.is_none() {
        client.api_key = variable("OPENAI_API_KEY").map(veeksha_scenario::Secret::new);
    }
    for named in clients.values_mut() {
        if named.api_base.is_none() && named.targets.is_empty() {
            named.api_base = client.api_base.clone();
        }
        // The key of one server is not sent to another.
        if named.api_key.is_none() && named.api_base == client.api_base && named.targets == client.targets {
            named.api_key = client.api_key.clone();
        }
    }
}

/// Returns `$XDG_CACHE_HOME/veeksha-host`, else `~/.cache/veeksha-host`; `None` if neither is
/// known.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        Some(base) => PathBuf::from(base),
        None => PathBuf::from(std::env::var_os("HOME").filter(|value| !value.is_empty())?).join(".cache"),
    };
    Some(base.join("veeksha-host"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_overrides_do_not_repeat_secrets() {
        let refused = |key: &str, value: &str| {
            let mut source = Source::nothing().expect("an empty scenario");
            let set = [format!("{key}={value}")];
            source.override_with(&set, &[]).expect_err("refused").to_string()
        };
        let message = refused("client.headers", "{x-api-key: hidden-17");
        assert!(!message.contains("hidden-17"), "{message}");
        assert!(
            message.starts_with("error: --set client.headers=***: cannot set `client.headers`: "),
            "{message}"
        );
        assert!(refused("client.model", "[a").contains("[a"));
    }

    #[test]
    fn certificate_files_of_the_command_line_are_relative_to_the_shell() {
        let here = std::env::current_dir().expect("a folder");
        let expected = here.join("certs/ca.pem");
        let value = path_of_shell("client.tls.ca_file", "certs/ca.pem");
        assert_eq!(
            serde_json::from_str::<String>(&value).expect("a JSON text"),
            expected.to_string_lossy()
        );
        let run = path_of_shell("session_generator.run", "out/latest");
        assert!(run.contains(&*here.join("out/latest").to_string_lossy()), "{run}");
        assert_eq!(path_of_shell("client.tls.ca_file", "null"), "null");
        assert_eq!(path_of_shell("client.model", "a/b"), "a/b");
    }
}
