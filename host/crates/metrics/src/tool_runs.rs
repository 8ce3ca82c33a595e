//! The tool runs of a run: their rows, and their counts by class.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use veeksha_definitions::ToolTimes;
use veeksha_events::ToolDropReason;
use veeksha_model::{Label, RequestId, ToolRunRecord};

use crate::label_sets::LabelSet;

/// The label with the class of a tool run, unless the workload gave the run one of this name.
const CLASS_LABEL: &str = "tool";

/// A tool run that ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ToolRow {
    pub(crate) id: RequestId,
    pub(crate) times: ToolTimes,
    /// The index of its first parent in the list of all parents, and the number of parents.
    pub(crate) parents: (u32, u32),
    /// Its labels, with its class.
    pub(crate) labels: LabelSet,
    pub(crate) measured: bool,
    /// True for a timer: a node of its session, and no tool.
    pub(crate) is_timer: bool,
}

/// Returns the labels of a tool run, with its class.
pub(crate) fn labels(record: &ToolRunRecord) -> Vec<Label> {
    let mut labels = record.labels.to_vec();
    if labels.iter().all(|(name, _)| name != CLASS_LABEL) {
        labels.push((CLASS_LABEL.to_owned(), record.class.to_string()));
    }
    labels
}

/// Counts of the tool runs of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCounts {
    /// Measured runs that ended. The next two are of these.
    pub runs: u64,
    /// Runs that failed.
    pub failures: u64,
    /// Runs that found no warm server.
    pub cold_starts: u64,
    /// Runs that were known and did not end, by reason.
    pub dropped: BTreeMap<ToolDropReason, u64>,
}

impl ToolCounts {
    pub(crate) fn add(&mut self, record: &ToolRunRecord) {
        self.runs += 1;
        self.failures += u64::from(record.failed);
        self.cold_starts += u64::from(record.is_cold);
    }

    /// Returns the number of runs that did not end.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.values().sum()
    }

    pub(crate) fn json(&self) -> Value {
        let dropped = self.dropped.iter();
        let dropped: Map<String, Value> = dropped
            .map(|(reason, count)| (reason.name().to_owned(), (*count).into()))
            .collect();
        json!({
            "tool_runs": self.runs,
            "tool_failures": self.failures,
            "cold_starts": self.cold_starts,
            "dropped": dropped,
        })
    }
}

/// The counts of each class.
pub(crate) type ToolCountsByClass = BTreeMap<Arc<str>, ToolCounts>;
