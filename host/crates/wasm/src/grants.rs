//! Resources that the user grants to a plugin for one workload.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use veeksha_manifest::{InstancePolicy, OnTrap};
use veeksha_ports::PluginMeter;

use crate::granted_folder::GrantedFolder;

/// The target's tokenizer, restricted to the queries of plugins.
pub trait PluginTokenizer: Send + Sync {
    /// Returns the token ids of a text, without special tokens, or the reason why it has none.
    fn encode(&self, text: &str) -> Result<Vec<u32>, String>;

    /// Returns the size of the vocabulary.
    fn vocabulary(&self) -> u32;
}

/// Severity of a plugin's log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// Details for the plugin's author.
    Debug,
    /// Normal operation.
    Info,
    /// Unexpected conditions.
    Warn,
    /// Errors.
    Error,
}

/// A line of a plugin's log, and the call that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// The plugin's name.
    pub plugin: &'a str,
    /// The level.
    pub level: LogLevel,
    /// The function of the contract that was called.
    pub function: &'a str,
    /// The session that the call was about, or the first one of a batch.
    pub session: Option<u64>,
    /// The text, cut to a bounded length.
    pub message: &'a str,
}

/// A receiver of plugins' log lines. Called on the plugin's thread.
pub trait LogSink: Send + Sync {
    /// Receives one line of a plugin, already cut to a bounded length.
    fn line(&self, plugin: &str, level: LogLevel, message: &str);

    /// Receives one line with its call. Passes it to [`line`](Self::line) unless implemented.
    fn record(&self, line: &LogLine<'_>) {
        self.line(line.plugin, line.level, line.message);
    }
}

/// A sink that drops every line.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLog;

impl LogSink for NoLog {
    fn line(&self, _plugin: &str, _level: LogLevel, _message: &str) {}
}

/// The grants of one workload. A capability that is not granted is linked nevertheless (many
/// toolchains import all available interfaces), but its use is a trap with an explanation.
#[derive(Clone)]
pub struct Grants {
    /// The run's seed, from which `random.words` and the WASI stand-ins are derived.
    pub seed: u64,
    /// The tokenizer, for `tokens`.
    pub tokens: Option<Arc<dyn PluginTokenizer>>,
    /// The files for `blobs`, by the name under which they were granted.
    pub blobs: BTreeMap<String, PathBuf>,
    /// The files of a folder that it may read in addition, by their paths below it.
    pub folder: GrantedFolder,
    /// The environment variables that the plugin may read, with their values.
    pub environment: BTreeMap<String, String>,
    /// The sink of `log`.
    pub log: Arc<dyn LogSink>,
    /// The counters of the plugin's resources.
    pub meter: Arc<PluginMeter>,
    /// The number of instances.
    pub instances: InstancePolicy,
    /// The consequence of a trap.
    pub on_trap: OnTrap,
}

impl Grants {
    /// Grants what every plugin has: randomness from a seed, and a log.
    pub fn new(seed: u64, log: Arc<dyn LogSink>) -> Self {
        Grants {
            seed,
            tokens: None,
            blobs: BTreeMap::new(),
            folder: GrantedFolder::default(),
            environment: BTreeMap::new(),
            log,
            meter: Arc::default(),
            instances: InstancePolicy::PerWorker,
            on_trap: OnTrap::Abort,
        }
    }

    /// Returns the plugin's `imports` that are granted.
    pub(crate) fn among(&self, imports: &[String]) -> Vec<String> {
        let given = |import: &&String| match import.as_str() {
            "tokens" => self.tokens.is_some(),
            "blobs" => !self.blobs.is_empty() || !self.folder.grants.is_empty(),
            _ => true,
        };
        imports.iter().filter(given).cloned().collect()
    }
}

impl fmt::Debug for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grants")
            .field("seed", &self.seed)
            .field("tokens", &self.tokens.is_some())
            .field("blobs", &self.blobs)
            .field("folder", &self.folder)
            .field("environment", &self.environment.keys())
            .finish_non_exhaustive()
    }
}
