//! The plugins of a run: the resources that they use, and the file of their log.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;
use veeksha_ports::{PluginAllowance, PluginMeter, PluginUsageReport};

/// The file of a run with the log of its plugins.
const LOG_FILE: &str = "plugin_logs.jsonl";

/// The shortest value that is redacted, in bytes: shorter ones are part of many words.
const SHORTEST_SECRET: usize = 6;

/// The plugins of a run. Clones share their content.
#[derive(Clone, Debug, Default)]
pub(crate) struct PluginRegistry(Arc<Mutex<Registered>>);

#[derive(Debug, Default)]
struct Registered {
    plugins: Vec<(String, PluginAllowance, Arc<PluginMeter>)>,
    log: Option<File>,
    /// Values of granted environment variables.
    secrets: Vec<String>,
}

/// A line of a plugin's log, without secrets.
pub(crate) struct PluginLogEntry<'a> {
    pub(crate) plugin: &'a str,
    pub(crate) level: &'a str,
    /// The function of the contract; none for Lua.
    pub(crate) function: Option<&'a str>,
    pub(crate) session: Option<u64>,
    pub(crate) text: &'a str,
}

impl PluginRegistry {
    fn lock(&self) -> MutexGuard<'_, Registered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the plugins of an earlier run of the scenario.
    pub(crate) fn clear(&self) {
        *self.lock() = Registered::default();
    }

    /// Returns the counters of a plugin. Plugins of one name share them.
    pub(crate) fn meter(&self, name: &str, allowed: PluginAllowance) -> Arc<PluginMeter> {
        let mut registered = self.lock();
        let known = registered.plugins.iter().find(|(known, ..)| known == name);
        if let Some((_, _, meter)) = known {
            return Arc::clone(meter);
        }
        let meter = Arc::new(PluginMeter::default());
        let entry = (name.to_owned(), allowed, Arc::clone(&meter));
        registered.plugins.push(entry);
        meter
    }

    /// Returns the use of resources by each plugin so far.
    pub(crate) fn reports(&self) -> Vec<PluginUsageReport> {
        let registered = self.lock();
        let plugins = registered.plugins.iter();
        let reports = plugins.map(|(name, allowed, meter)| PluginUsageReport {
            plugin: name.clone(),
            usage: meter.usage(),
            allowed: *allowed,
            notes: meter.notes(),
        });
        reports.collect()
    }

    /// Keeps the value of a granted environment variable out of logs and records.
    pub(crate) fn keep_secret(&self, value: &str) {
        let mut registered = self.lock();
        if value.len() >= SHORTEST_SECRET && !registered.secrets.iter().any(|known| known == value) {
            registered.secrets.push(value.to_owned());
        }
    }

    /// Returns the values that are never written.
    pub(crate) fn secrets(&self) -> Vec<String> {
        self.lock().secrets.clone()
    }

    /// Writes log lines to a file of the run's folder from now on.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub(crate) fn log_to(&self, folder: &Path) -> std::io::Result<()> {
        let file = File::create(folder.join(LOG_FILE))?;
        self.lock().log = Some(file);
        Ok(())
    }

    /// Writes a line to the file of the log, if there is one. A full disk does not stop a run for
    /// its logs, which the terminal shows as well.
    pub(crate) fn write(&self, entry: &PluginLogEntry<'_>) {
        let mut registered = self.lock();
        let Some(log) = &mut registered.log else { return };
        let line = json!({
            "plugin": entry.plugin,
            "level": entry.level,
            "function": entry.function,
            "session": entry.session,
            "line": entry.text,
        });
        // One call, so that a line is written whole.
        let _ = log.write_all(format!("{line}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn allowed() -> PluginAllowance {
        PluginAllowance {
            call: Duration::from_secs(10),
            memory_bytes: 1,
            output_bytes: 1,
        }
    }

    #[test]
    fn plugins_of_one_name_share_their_counters() {
        let registry = PluginRegistry::default();
        registry.meter("a", allowed()).called(5, 0);
        registry.clone().meter("a", allowed()).called(5, 0);
        registry.meter("b", allowed());
        let reports = registry.reports();
        assert_eq!((reports.len(), reports[0].usage.calls), (2, 2));
        registry.clear();
        assert!(registry.reports().is_empty());
    }

    #[test]
    fn lines_are_json_with_their_call() {
        let folder = tempfile::tempdir().unwrap();
        let registry = PluginRegistry::default();
        let entry = PluginLogEntry {
            plugin: "a",
            level: "warn",
            function: Some("agent.answered"),
            session: Some(7),
            text: "two\nlines",
        };
        registry.write(&entry);
        registry.log_to(folder.path()).unwrap();
        registry.write(&entry);
        let text = std::fs::read_to_string(folder.path().join(LOG_FILE)).unwrap();
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            line,
            json!({"plugin": "a", "level": "warn", "function": "agent.answered", "session": 7, "line": "two\nlines"})
        );
    }
}
