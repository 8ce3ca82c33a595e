//! What the user gives a plugin for one workload.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The target's tokenizer, as far as a plugin may ask it.
pub trait TokenCounter: Send + Sync {
    /// Tokens in a text, special tokens not added.
    fn count(&self, text: &str) -> u32;

    /// Size of the vocabulary.
    fn vocabulary(&self) -> u32;
}

/// How loud a plugin's line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// For the plugin's author.
    Debug,
    /// Worth knowing.
    Info,
    /// Something is odd.
    Warn,
    /// Something is wrong.
    Error,
}

/// Where a plugin's lines go. Called on the plugin's thread.
pub trait LogSink: Send + Sync {
    /// One line of a plugin, already cut to a bounded length.
    fn line(&self, plugin: &str, level: LogLevel, message: &str);
}

/// A sink that drops every line.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLog;

impl LogSink for NoLog {
    fn line(&self, _plugin: &str, _level: LogLevel, _message: &str) {}
}

/// What one workload is given. A capability that is not given is linked all the same (many
/// toolchains import all that there is), but using it is a trap that says so.
#[derive(Clone)]
pub struct Grants {
    /// The run's seed: `random.words` and the WASI stand-ins follow from it.
    pub seed: u64,
    /// The tokenizer, for `tokens`.
    pub tokens: Option<Arc<dyn TokenCounter>>,
    /// The files for `blobs`, by the name under which they were granted.
    pub blobs: BTreeMap<String, PathBuf>,
    /// Where `log` goes.
    pub log: Arc<dyn LogSink>,
}

impl Grants {
    /// Only what every plugin has: randomness from a seed, and a log.
    pub fn new(seed: u64, log: Arc<dyn LogSink>) -> Self {
        Grants {
            seed,
            tokens: None,
            blobs: BTreeMap::new(),
            log,
        }
    }

    /// Those of a plugin's `imports` that are given here.
    pub(crate) fn among(&self, imports: &[String]) -> Vec<String> {
        let given = |import: &&String| match import.as_str() {
            "tokens" => self.tokens.is_some(),
            "blobs" => !self.blobs.is_empty(),
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
            .finish_non_exhaustive()
    }
}
