//! Failures of workload plugins.

use std::fmt;

use serde_json::{Value, json};
use veeksha_events::{FailedPlugin, PluginRole};
use veeksha_model::SessionId;

/// The number of sessions that are listed by id.
const LISTED: usize = 20;

/// The failures of a workload plugin. Each failure loses the session that the plugin could not
/// create or continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadFailures {
    /// The plugin.
    pub plugin: String,
    /// Number of failures.
    pub count: u64,
    /// The message of the first failure.
    pub first: String,
    /// The sessions of the first 20 failures.
    pub sessions: Vec<SessionId>,
}

impl WorkloadFailures {
    /// Adds a failure to the entry of its plugin.
    pub(crate) fn add(all: &mut Vec<WorkloadFailures>, failed: &FailedPlugin) {
        let place = all.iter().position(|known| known.plugin == failed.plugin);
        let place = place.unwrap_or_else(|| {
            all.push(WorkloadFailures {
                plugin: failed.plugin.clone(),
                count: 0,
                first: failed.message.clone(),
                sessions: Vec::new(),
            });
            all.len() - 1
        });
        let failures = &mut all[place];
        failures.count += 1;
        if failures.sessions.len() < LISTED {
            failures.sessions.extend(failed.session);
        }
    }

    pub(crate) fn json(&self) -> Value {
        let sessions: Vec<u64> = self.sessions.iter().map(|session| session.0).collect();
        json!({
            "plugin": self.plugin,
            "part": PluginRole::Workload.name(),
            "message": self.first,
            "failures": self.count,
            "sessions": sessions,
        })
    }
}

/// One line: the plugin, the number of failures, and the message of the first one.
impl fmt::Display for WorkloadFailures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = if self.count == 1 { "time" } else { "times" };
        write!(
            f,
            "the plugin `{}` failed {} {times}; the first",
            self.plugin, self.count
        )?;
        if let Some(session) = self.sessions.first() {
            write!(f, ", session {session}")?;
        }
        write!(f, ": {}", self.first)
    }
}
