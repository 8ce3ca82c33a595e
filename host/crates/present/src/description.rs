//! Facts about a run that are known before its first event.

use std::path::PathBuf;

use veeksha_ports::WorkloadInfo;

/// Facts about a run that are known before its first event, such as its scenario and plugins.
#[derive(Clone, Default)]
pub struct RunDescription {
    /// Name of the scenario.
    pub name: Option<String>,
    /// Description of the scenario.
    pub description: Option<String>,
    /// Tags of the scenario.
    pub tags: Vec<String>,
    /// Folder of the run.
    pub folder: PathBuf,
    /// Resolved scenario as YAML.
    pub config: String,
    /// Name and value of each fact about the scenario: target, model, traffic.
    pub facts: Vec<(String, String)>,
    /// Role and description of each plugin.
    pub plugins: Vec<(String, WorkloadInfo)>,
    /// Remarks that the reader of the results needs.
    pub remarks: Vec<String>,
    /// Maximum duration of the run, in seconds.
    pub planned: Option<f64>,
    /// Number of processor cores that the process may use.
    pub cores: usize,
}
