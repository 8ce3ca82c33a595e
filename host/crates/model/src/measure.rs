//! Metrics that plugins define, and their samples.

use crate::ids::RequestId;

/// The direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Less,
    /// Neither: it describes the load.
    Neither,
}

impl Better {
    /// Returns the name used in files and in the contract.
    pub fn name(self) -> &'static str {
        match self {
            Better::Higher => "higher",
            Better::Less => "less",
            Better::Neither => "neither",
        }
    }
}

/// A plugin's definition of a metric that it measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricDefinition {
    /// Name in files, plots and SLOs: `[a-z][a-z0-9_]*`, different from all built-in metrics.
    pub name: String,
    /// Unit (`s`, `tokens`, `1` for a ratio): free text.
    pub unit: String,
    /// The direction in which it improves.
    pub better: Better,
    /// One line: what it is and how it is computed.
    pub summary: String,
    /// The plugin that measures it.
    pub plugin: String,
}

/// One sample of a plugin's metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSample {
    /// The metric's name.
    pub metric: String,
    /// In the metric's unit; finite.
    pub value: f64,
    /// Weight of the sample; positive and finite, 1 for an ordinary one.
    pub weight: f64,
    /// The request that it describes; its labels are the sample's. `None` for a sample of the whole
    /// run.
    pub request: Option<RequestId>,
}
