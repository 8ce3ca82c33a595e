//! Check that the plugins of the run worked.

use veeksha_events::{Event, FailedPlugin, PluginRole};

use crate::report::{HealthCheck, SHOWN};

pub(crate) const NAME: &str = "Plugins";

/// The next step if a plugin failed.
const FIX_PLUGIN: &str = "fix the plugin, and repeat the run";

/// Failures of plugins that measure metrics or check requests. Sessions that a workload's plugin
/// lost are counted by the check of sent requests. A plugin that judges the run is called after the
/// checks.
#[derive(Default)]
pub(crate) struct PluginCheck {
    called: bool,
    failed: Vec<FailedPlugin>,
}

impl PluginCheck {
    pub(crate) fn on(&mut self, event: &Event) {
        match event {
            Event::MetricDefined(_) | Event::Judged { .. } => self.called = true,
            Event::PluginFailed(failed)
                if matches!(failed.part, PluginRole::Metric | PluginRole::RequestCheck) =>
            {
                self.failed.push(failed.clone());
            }
            _ => {}
        }
    }

    pub(crate) fn finish(self) -> HealthCheck {
        if !self.called && self.failed.is_empty() {
            return HealthCheck::skipped(NAME, "no plugin measured a metric or checked requests");
        }
        let mut check = HealthCheck::new(NAME);
        for failed in self.failed.iter().take(SHOWN) {
            check.fail(
                format!(
                    "the plugin `{}` ({}) failed, and its later results are missing: {}",
                    failed.plugin,
                    failed.part.name(),
                    failed.message
                ),
                FIX_PLUGIN,
            );
        }
        let more = self.failed.len().saturating_sub(SHOWN);
        if more > 0 {
            check.fail(
                format!("{} more failed", veeksha_stats::counted(more as u64, "plugin")),
                FIX_PLUGIN,
            );
        }
        check
    }
}
