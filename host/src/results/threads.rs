//! What was asked for the threads that measure, and what of it was refused.

use std::sync::PoisonError;

use serde_json::{Value, json};
use veeksha_report::{Mark, Row, duration};
use veeksha_scenario::Runtime;

use super::table::row;
use crate::drive::Refused;

/// What was asked for the threads that dispatch, send and read, and what of it was refused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Threads {
    spin_microseconds: f64,
    realtime_priority: Option<u8>,
    dispatcher_cores: Vec<u32>,
    client_cores: Vec<u32>,
    refused: Vec<String>,
}

impl Threads {
    pub(crate) fn of(runtime: &Runtime, refused: &Refused) -> Self {
        let refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
        Threads {
            spin_microseconds: runtime.spin_microseconds,
            realtime_priority: runtime.realtime_priority,
            dispatcher_cores: runtime.dispatcher_cores.clone(),
            client_cores: runtime.client_cores.clone(),
            refused: refused.iter().cloned().collect(),
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "spin_microseconds": self.spin_microseconds,
            "realtime_priority": self.realtime_priority,
            "dispatcher_cores": self.dispatcher_cores,
            "client_cores": self.client_cores,
            "refused": self.refused,
        })
    }

    /// A line for each thing that was done, and for each that was refused.
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        if self.spin_microseconds > 0.0 {
            rows.push(row(
                "Spun before each arrival",
                vec![duration(self.spin_microseconds / 1e6)],
            ));
        }
        if let Some(priority) = self.realtime_priority {
            rows.push(row("Real-time priority", vec![priority.to_string()]));
        }
        for (name, cores) in [
            ("Dispatchers kept on cores", &self.dispatcher_cores),
            ("Clients kept on cores", &self.client_cores),
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
