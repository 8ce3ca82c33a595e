//! Scheduling of the measuring threads: requested settings and refusals.

use serde_json::{Value, json};
use veeksha_report::{Mark, Row, duration};
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

/// Scheduling requested for the threads that dispatch, send and read, with the refusals of the
/// system.
#[derive(Clone, Debug, Default)]
pub struct ThreadSettings {
    spin_microseconds: f64,
    realtime_priority: RealtimePriority,
    dispatcher_cores: Vec<u32>,
    client_cores: Vec<u32>,
    refused: Vec<String>,
}

impl ThreadSettings {
    /// Creates the settings of a scenario, with the priority that the run requested and the
    /// reasons why the system refused some settings.
    pub fn new(runtime: &Runtime, realtime_priority: RealtimePriority, refused: Vec<String>) -> Self {
        ThreadSettings {
            spin_microseconds: runtime.spin_microseconds,
            realtime_priority,
            dispatcher_cores: runtime.dispatcher_cores.clone(),
            client_cores: runtime.client_cores.clone(),
            refused,
        }
    }

    /// Returns the requested priority.
    pub(crate) fn realtime_priority(&self) -> RealtimePriority {
        self.realtime_priority
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "spin_microseconds": self.spin_microseconds,
            "realtime_priority": self.realtime_priority.level(),
            "realtime_not_permitted": self.realtime_priority == RealtimePriority::NotPermitted,
            "dispatcher_cores": self.dispatcher_cores,
            "client_cores": self.client_cores,
            "refused": self.refused,
        })
    }

    /// Returns one row for each applied setting and one for each refused setting.
    pub(crate) fn rows(&self) -> Vec<Row> {
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
                rows.push(row("Real-time priority", vec![level.to_string()]));
            }
        }
        for (name, cores) in [
            ("Dispatcher cores", &self.dispatcher_cores),
            ("Client cores", &self.client_cores),
        ] {
            if !cores.is_empty() {
                let cores: Vec<String> = cores.iter().map(u32::to_string).collect();
                rows.push(row(name, vec![cores.join(", ")]));
            }
        }
        rows.extend(self.refused.iter().map(|reason| Row {
            name: reason.clone(),
            mark: Mark::Warning,
            ..Row::default()
        }));
        rows
    }
}
