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
use veeksha_scenario::{ComponentUse, Document, PluginLimits};
use veeksha_wasm::{EngineOptions, Grants, LogLevel, LogLine, LogSink, PluginComponent, PluginEngine};

use crate::failure::CommandFailure;
use crate::scenario::decision_redaction::DecisionRedaction;
use crate::scenario::source::Loaded;
use crate::workload::component_source;
use crate::workload::plugin_grants::{self, GrantSubject};
use crate::workload::plugin_limits;
use crate::workload::plugin_registry::{PluginLogEntry, PluginRegistry};
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
    let mut grants = grants(loaded, files, tokenizer);
    let limits = plugin_limits::of_components(&loaded.scenario.runtime.plugin_limits);
    grants.meter = loaded.plugins.meter(name, limits.allowance());
    Ok(load(loaded, name, bytes)?.workload(config, grants)?)
}

/// A component of the scenario, ready to be opened, with its checked configuration.
pub(crate) struct OpenedComponent {
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
) -> Result<OpenedComponent, CommandFailure> {
    open_named(loaded, component, key, tokenizer, str::to_owned)
}

/// Like [`open`], with a function that makes the name from that of the file.
pub(crate) fn open_named(
    loaded: &Loaded,
    component: &ComponentUse,
    key: &str,
    tokenizer: &Tokenizer,
    name: impl FnOnce(&str) -> String,
) -> Result<OpenedComponent, CommandFailure> {
    let resolved = component_source::resolve(loaded, component, key)?;
    let name = name(&resolved.name);
    let limits = component
        .limits_over(&loaded.scenario.runtime.plugin_limits)
        .map_err(|error| CommandFailure::usage(format!("{key}.limits: {error}")))?;
    let plugin = load_within(loaded, &name, &resolved.bytes, &limits)?;
    let config = component.config_text();
    check_config(&plugin, &config, &format!("{key}.config"))?;
    let manifest = plugin_grants::manifest(&name, &resolved.bytes)?;
    let allowance = plugin_limits::of_components(&limits).allowance();
    let mut grants = grants(loaded, &component.files, tokenizer);
    grants.meter = loaded.plugins.meter(&name, allowance);
    let subject = GrantSubject {
        name: &name,
        bytes: &resolved.bytes,
        key,
    };
    plugin_grants::apply(loaded, component, &subject, manifest.as_ref(), &mut grants)?;
    // The values of granted variables are known only now.
    grants.log = log(loaded);
    Ok(OpenedComponent {
        name,
        plugin,
        config,
        grants,
    })
}

/// Compiles a component or takes it from the cache.
pub(crate) fn load(loaded: &Loaded, name: &str, bytes: &[u8]) -> Result<PluginComponent, CommandFailure> {
    load_within(loaded, name, bytes, &loaded.scenario.runtime.plugin_limits)
}

/// Like [`load`], with limits other than those of the run.
fn load_within(
    loaded: &Loaded,
    name: &str,
    bytes: &[u8],
    limits: &PluginLimits,
) -> Result<PluginComponent, CommandFailure> {
    let engine = PluginEngine::new(EngineOptions {
        cache_dir: loaded.cache().map(Path::to_owned),
        limits: plugin_limits::of_components(limits),
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
        tokens: Some(Arc::new(Counter(tokenizer.clone()))),
        blobs: files
            .iter()
            .map(|(name, path)| (name.clone(), loaded.folder().join(path)))
            .collect(),
        ..Grants::new(loaded.scenario.seed, log(loaded))
    }
}

/// Returns the grants of a component that no scenario names, with the counters of its use.
pub(crate) fn metered_grants(loaded: &Loaded, name: &str, tokenizer: &Tokenizer) -> Grants {
    let limits = plugin_limits::of_components(&loaded.scenario.runtime.plugin_limits);
    let mut grants = grants(loaded, &BTreeMap::new(), tokenizer);
    grants.meter = loaded.plugins.meter(name, limits.allowance());
    grants
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

fn log(loaded: &Loaded) -> Arc<dyn LogSink> {
    Arc::new(ComponentLog {
        redaction: loaded.redaction(),
        plugins: loaded.plugins.clone(),
    })
}

struct ComponentLog {
    redaction: DecisionRedaction,
    plugins: PluginRegistry,
}

impl LogSink for ComponentLog {
    fn line(&self, plugin: &str, level: LogLevel, message: &str) {
        self.record(&LogLine {
            plugin,
            level,
            function: "",
            session: None,
            message,
        });
    }

    fn record(&self, line: &LogLine<'_>) {
        let level = match line.level {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        };
        let text = self.redaction.text(line.message);
        self.plugins.write(&PluginLogEntry {
            plugin: line.plugin,
            level,
            function: Some(line.function),
            session: line.session,
            text: &text,
        });
        if line.level != LogLevel::Debug {
            terminal::err(format!("[{} {level}] {text}", line.plugin));
        }
    }
}
