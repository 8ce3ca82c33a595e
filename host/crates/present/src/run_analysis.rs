//! Results that are computed from the events of a run.

use std::collections::BTreeMap;

use serde_json::Value;
use veeksha_compat::ViewReport;
use veeksha_decisions::DivergenceSummary;
use veeksha_events::RunInfo;
use veeksha_health::HealthReport;
use veeksha_metrics::{Evaluation, FidelityReport};
use veeksha_page::RequestList;
use veeksha_ports::PluginUsageReport;
use veeksha_report::ChromeTrace;

use crate::compat_export::CompatExport;
use crate::description::RunDescription;

/// Failures of one error class.
#[derive(Clone, Debug)]
pub struct FailureClass {
    /// Number of failed requests.
    pub count: u64,
    /// Message of the first failure.
    pub message: String,
    /// Id of the request that failed first.
    pub request: String,
    /// End of that request, in seconds since the start of the run.
    pub at: f64,
}

/// Results that are computed from the events of a run.
pub struct RunAnalysis {
    /// Metrics, objectives and counts.
    pub evaluation: Evaluation,
    /// Deviations of the run from its scenario.
    pub health: HealthReport,
    /// Fidelity of the replay, if the workload was a trace.
    pub fidelity: Option<FidelityReport>,
    /// The decisions of agents compared with those of `session_generator.recorded_run`, if there is
    /// one.
    pub divergence: Option<DivergenceSummary>,
    /// Content of `prefill_stats.json`.
    pub prefill_stats: Value,
    /// Times to first chunk, grouped by prompt length.
    pub prefill_groups: Vec<(u32, Vec<f64>)>,
    /// Content of `decode_window_metrics.json`, if the scenario enables it.
    pub decode_windows: Option<Value>,
    /// Requests that the page lists individually.
    pub requests: RequestList,
    /// Content of `chrome_trace.json`.
    pub chrome: ChromeTrace,
    /// The run in the definitions of other tools.
    pub views: Vec<ViewReport>,
    /// Files in the format of another tool.
    pub export: Option<CompatExport>,
    /// Failures by error class.
    pub failures: BTreeMap<&'static str, FailureClass>,
    /// The header of the record; `None` if it was lost.
    pub started: Option<RunInfo>,
    /// The use of resources by each plugin.
    pub plugin_usage: Vec<PluginUsageReport>,
    /// Facts about the run that its events do not contain.
    pub about: RunDescription,
}

impl RunAnalysis {
    /// Returns true if the run was simulated: its record then has no wall-clock start.
    pub fn is_simulated(&self) -> bool {
        self.started
            .as_ref()
            .is_some_and(|info| info.epoch_wall_nanos == 0)
    }
}
