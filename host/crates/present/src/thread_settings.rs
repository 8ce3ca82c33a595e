//! Scheduling of the measuring threads: requested settings and refusals.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use veeksha_report::{RowMark, SummaryRow, duration};
use veeksha_scenario::Runtime;

use crate::rows::row;

/// Priority that the threads that dispatch, send and read request from the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RealtimePriority {
    /// The normal priority.
    #[default]
    Normal,
    /// The normal priority, because the default real-time priority is not permitted.
    NotPermitted,
    /// A real-time priority, 1 to 99.
    Level(u8),
}

impl RealtimePriority {
    /// Returns the real-time priority; `None` for the normal priority.
    pub fn level(self) -> Option<u8> {
        match self {
            RealtimePriority::Level(level) => Some(level),
            RealtimePriority::Normal | RealtimePriority::NotPermitted => None,
        }
    }
}

/// A setting of the cores of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoreSetting {
    /// `runtime.dispatcher_cores`.
    Dispatcher,
    /// `runtime.client_cores`.
    Client,
}

/// Settings of threads that the system refused.
#[derive(Clone, Debug, Default)]
pub struct RefusedSettings {
    /// True if the real-time priority was refused.
    pub priority: bool,
    /// The refused cores.
    pub cores: BTreeSet<CoreSetting>,
    /// The reasons, without duplicates.
    pub reasons: BTreeSet<String>,
}

/// Scheduling of the threads that dispatch, send and read: the requested settings, and those that
/// the system refused.
#[derive(Clone, Debug, Default)]
pub struct ThreadSettings {
    spin_microseconds: f64,
    realtime_priority: RealtimePriority,
    dispatcher_cores: Vec<u32>,
    client_cores: Vec<u32>,
    refused: RefusedSettings,
}

impl ThreadSettings {
    /// Creates the settings of a scenario, with the priority that the run requested and the
    /// settings that the system refused.
    pub fn new(runtime: &Runtime, realtime_priority: RealtimePriority, refused: RefusedSettings) -> Self {
        ThreadSettings {
            spin_microseconds: runtime.spin_microseconds,
            realtime_priority,
            dispatcher_cores: runtime.dispatcher_cores.clone(),
            client_cores: runtime.client_cores.clone(),
            refused,
        }
    }

    /// Returns the priority of the threads: not permitted if the system refused it.
    pub(crate) fn realtime_priority(&self) -> RealtimePriority {
        match self.realtime_priority {
            RealtimePriority::Level(_) if self.refused.priority => RealtimePriority::NotPermitted,
            priority => priority,
        }
    }

    /// Returns the priority that was applied; `None` for the normal priority.
    fn applied_priority(&self) -> Option<u8> {
        self.realtime_priority.level().filter(|_| !self.refused.priority)
    }

    fn requested_cores(&self, setting: CoreSetting) -> &[u32] {
        match setting {
            CoreSetting::Dispatcher => &self.dispatcher_cores,
            CoreSetting::Client => &self.client_cores,
        }
    }

    /// Returns the cores that were applied.
    pub(crate) fn applied_cores(&self, setting: CoreSetting) -> &[u32] {
        if self.refused.cores.contains(&setting) {
            &[]
        } else {
            self.requested_cores(setting)
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "spin_microseconds": self.spin_microseconds,
            "realtime_priority": self.applied_priority(),
            "realtime_not_permitted": self.realtime_priority() == RealtimePriority::NotPermitted,
            "dispatcher_cores": self.applied_cores(CoreSetting::Dispatcher),
            "client_cores": self.applied_cores(CoreSetting::Client),
            "refused": self.refused.reasons,
        })
    }

    /// Returns one row for each requested setting, refused ones marked, and one for each reason of
    /// a refusal.
    pub(crate) fn rows(&self) -> Vec<SummaryRow> {
        let mut rows = Vec::new();
        if self.spin_microseconds > 0.0 {
            rows.push(row(
                "Spin before each arrival",
                vec![duration(self.spin_microseconds / 1e6)],
            ));
        }
        match self.realtime_priority {
            RealtimePriority::Normal => {}
            RealtimePriority::NotPermitted => {
                rows.push(row("Real-time priority", vec!["not permitted".to_owned()]));
            }
            RealtimePriority::Level(level) => {
                let applied = self.applied_priority();
                let applied = applied.map_or_else(|| format!("{level} (refused)"), |level| level.to_string());
                rows.push(row("Real-time priority", vec![applied]));
            }
        }
        for (name, setting) in [
            ("Dispatcher cores", CoreSetting::Dispatcher),
            ("Client cores", CoreSetting::Client),
        ] {
            let cores = self.requested_cores(setting);
            if cores.is_empty() {
                continue;
            }
            let cores: Vec<String> = cores.iter().map(u32::to_string).collect();
            let mut shown = cores.join(", ");
            if self.refused.cores.contains(&setting) {
                shown.push_str(" (refused)");
            }
            rows.push(row(name, vec![shown]));
        }
        rows.extend(self.refused.reasons.iter().map(|reason| SummaryRow {
            name: reason.clone(),
            mark: RowMark::Warning,
            ..SummaryRow::default()
        }));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_refused_settings_as_not_applied() {
        let settings = |refused| ThreadSettings {
            realtime_priority: RealtimePriority::Level(20),
            client_cores: vec![0, 1],
            refused,
            ..ThreadSettings::default()
        };
        let texts = |settings: &ThreadSettings| -> Vec<String> {
            let rows = settings.rows().into_iter();
            rows.map(|row| format!("{} {}", row.name, row.cells.join(" ")).trim().to_owned())
                .collect()
        };
        let applied = settings(RefusedSettings::default());
        assert_eq!(applied.json()["realtime_priority"], 20);
        assert_eq!(applied.json()["client_cores"], json!([0, 1]));
        assert_eq!(texts(&applied), ["Real-time priority 20", "Client cores 0, 1"]);

        let refused = settings(RefusedSettings {
            priority: true,
            cores: [CoreSetting::Client].into(),
            reasons: ["the kernel refused".to_owned()].into(),
        });
        assert_eq!(refused.json()["realtime_priority"], Value::Null);
        assert_eq!(refused.json()["realtime_not_permitted"], true);
        assert_eq!(refused.json()["client_cores"], json!([]));
        assert_eq!(
            texts(&refused),
            [
                "Real-time priority 20 (refused)",
                "Client cores 0, 1 (refused)",
                "the kernel refused"
            ]
        );
    }
}
