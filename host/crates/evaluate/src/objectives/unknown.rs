//! What cannot be known because a plugin failed: a request that nobody judged is neither good nor bad.

use veeksha_events::{FailedPlugin, PluginPart};

use super::Objectives;
use crate::Catalogue;

/// The plugins that failed over a run's requests.
pub(crate) struct Unknown<'a> {
    pub(crate) failed: &'a [FailedPlugin],
    pub(crate) catalogue: &'a Catalogue,
}

impl<'a> Unknown<'a> {
    /// Why it is not known which requests were good, in words: a check failed, or what measures a metric that a condition is on.
    pub(crate) fn goodput(&self, objectives: &Objectives) -> Option<String> {
        let check = self
            .failed
            .iter()
            .find(|failed| failed.part == PluginPart::RequestCheck);
        if let Some(check) = check {
            return Some(format!(
                "the plugin `{}` failed while it judged requests",
                check.plugin
            ));
        }
        let conditions = objectives.conditions.iter();
        let metric = conditions
            .filter_map(|condition| self.of_metric(&condition.samples.metric))
            .next()?;
        Some(while_it_measured(metric))
    }

    /// Why samples of a metric are missing, in words.
    pub(crate) fn samples(&self, metric: &str) -> Option<String> {
        self.of_metric(metric).map(while_it_measured)
    }

    fn of_metric(&self, metric: &str) -> Option<&'a FailedPlugin> {
        let plugin = self.catalogue.get(metric)?.plugin.as_ref()?;
        let mut failed = self.failed.iter();
        failed.find(|failed| failed.part == PluginPart::Metric && failed.plugin == *plugin)
    }
}

fn while_it_measured(failed: &FailedPlugin) -> String {
    format!("the plugin `{}` failed while it measured", failed.plugin)
}
