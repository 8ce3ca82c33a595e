//! Loading of components: compilation or lookup in the cache, validation of their configuration,
//! and grants of host functions and files.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use veeksha_decisions::Redact;
use veeksha_ports::WorkloadFactory;
use veeksha_prompt::Tokenizer;
use veeksha_scenario::{ComponentUse, Document};
use veeksha_wasm::{EngineLimits, EngineOptions, Grants, LogLevel, PluginComponent, PluginEngine};

use crate::failure::CommandFailure;
use crate::scenario::decision_redaction::DecisionRedaction;
use crate::scenario::source::Loaded;
use crate::workload::component_source;
use veeksha_present::terminal;

/// Returns the session generator of a component.
pub(crate) fn workload(
    loaded: &Loaded,
    name: &str,
    bytes: &[u8],
    config: String,
    files: &BTreeMap<String, PathBuf>,
    tokenizer: &Tokenizer,
) -> Result<Arc<dyn WorkloadFactory>, CommandFailure> {
    Ok(load(loaded, name, bytes)?.workload(config, grants(loaded, files, tokenizer))?)
}

/// A component of the scenario, ready to be opened, with its checked configuration.
pub(crate) struct LoadedComponent {
    /// Its name in messages and results.
    pub(crate) name: String,
    /// The compiled component.
    pub(crate) plugin: PluginComponent,
    /// Its configuration as JSON.
    pub(crate) config: String,
    /// The host functions and files that it may use.
    pub(crate) grants: Grants,
}

/// Reads, compiles and checks a component that the scenario uses at `key`.
pub(crate) fn open(
    loaded: &Loaded,
    component: &ComponentUse,
    key: &str,
    tokenizer: &Tokenizer,
) -> Result<LoadedComponent, CommandFailure> {
    open_named(loaded, component, key, tokenizer, str::to_owned)
}

/// Like [`open`], with a function that makes the name from that of the file.
pub(crate) fn open_named(
    loaded: &Loaded,
    component: &ComponentUse,
    key: &str,
    tokenizer: &Tokenizer,
    name: impl FnOnce(&str) -> String,
) -> Result<LoadedComponent, CommandFailure> {
    let resolved = component_source::resolve(loaded, component, key)?;
    let name = name(&resolved.name);
    let plugin = load(loaded, &name, &resolved.bytes)?;
    let config = component.config_text();
    check_config(&plugin, &config, &format!("{key}.config"))?;
    Ok(LoadedComponent {
        name,
        plugin,
        config,
        grants: grants(loaded, &component.files, tokenizer),
    })
}

/// Compiles a component or takes it from the cache.
pub(crate) fn load(loaded: &Loaded, name: &str, bytes: &[u8]) -> Result<PluginComponent, CommandFailure> {
    let limits = &loaded.scenario.runtime.plugin_limits;
    let limits = EngineLimits {
        call_deadline: limits.call_deadline(),
        compile_deadline: limits.compile_deadline(),
        memory_bytes: limits.memory_bytes(),
        ..EngineLimits::default()
    };
    let engine = PluginEngine::new(EngineOptions {
        cache_dir: loaded.cache().map(Path::to_owned),
        limits,
        on_compile: Some(Arc::new(report_compilation)),
    })
    .map_err(|error| CommandFailure::internal(format!("the plugin engine cannot start: {error}")))?;
    Ok(engine.load(name, bytes)?)
}

/// Reports on a terminal that a component is still being compiled.
fn report_compilation(name: &str, bytes: usize, taken: Duration) {
    if std::io::stderr().is_terminal() {
        let kib = bytes >> 10;
        let seconds = taken.as_secs();
        terminal::err(format!("compiling plugin {name} ({kib} KiB), {seconds} s so far"));
    }
}

/// Returns the host functions and files that a component may use.
pub(crate) fn grants(loaded: &Loaded, files: &BTreeMap<String, PathBuf>, tokenizer: &Tokenizer) -> Grants {
    Grants {
        seed: loaded.scenario.seed,
        tokens: Some(Arc::new(Counter(tokenizer.clone()))),
        blobs: files
            .iter()
            .map(|(name, path)| (name.clone(), loaded.folder().join(path)))
            .collect(),
        log: Arc::new(ComponentLog {
            redaction: loaded.redaction(),
        }),
    }
}

/// Validates the configuration of a third-party component, at `key` of the scenario, against the
/// schema that the component provides.
pub(crate) fn check_config(plugin: &PluginComponent, config: &str, key: &str) -> Result<(), CommandFailure> {
    match serde_json::from_str::<serde_json::Value>(config) {
        Ok(serde_json::Value::Object(_) | serde_json::Value::Null) => {}
        Ok(_) => {
            return Err(CommandFailure::usage(format!(
                "{key}: expected an object, as in {{\"key\": 1}}"
            )));
        }
        Err(error) => return Err(CommandFailure::usage(format!("{key}: not valid JSON: {error}"))),
    }
    let schema = plugin.describe()?.config_schema;
    let Ok(schema) = serde_json::from_str(&schema) else {
        return Err(CommandFailure::new(
            veeksha_exit::PLUGIN,
            "the component's config-schema is not JSON",
        ));
    };
    let document = Document::from_yaml(config, key).map_err(CommandFailure::usage)?;
    let mut problems = veeksha_scenario::check_value(&schema, &document.root, key);
    // The paths begin with the key; a line number within the JSON is not useful.
    problems.iter_mut().for_each(|problem| problem.place = None);
    if problems.is_empty() {
        Ok(())
    } else {
        Err(CommandFailure::usage(veeksha_scenario::Problems::from(problems)))
    }
}

struct Counter(Tokenizer);

impl veeksha_wasm::PluginTokenizer for Counter {
    fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        self.0.encode(text).map_err(|error| error.to_string())
    }

    fn vocabulary(&self) -> u32 {
        self.0.vocabulary()
    }
}

struct ComponentLog {
    redaction: DecisionRedaction,
}

impl veeksha_wasm::LogSink for ComponentLog {
    fn line(&self, plugin: &str, level: LogLevel, line: &str) {
        let level = match level {
            LogLevel::Debug => return,
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        };
        let line = self.redaction.text(line);
        terminal::err(format!("[{plugin} {level}] {line}"));
    }
}
