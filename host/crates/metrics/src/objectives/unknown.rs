//! Results that are unknown because a plugin failed, or because a record was cut before the plugin
//! had finished: a request that was not judged is neither good nor bad.

use std::collections::BTreeSet;

use veeksha_events::{FailedPlugin, PluginRole};

use crate::catalogue::Catalogue;
use crate::objectives::check::Objectives;

/// The plugins' missing information about a run's requests.
pub(crate) struct Unknown<'a> {
    /// The plugins that failed.
    pub(crate) failed: &'a [FailedPlugin],
    /// True if the record is complete.
    pub(crate) complete: bool,
    /// Metrics of plugins that processed all requests of the record, even if it is incomplete.
    pub(crate) repeated_metrics: &'a BTreeSet<String>,
}

impl Unknown<'_> {
    /// Returns the reason why the good requests are unknown, as far as it follows from a failed
    /// check or from conditions.
    pub(crate) fn goodput(&self, objectives: &Objectives, catalogue: &Catalogue) -> Option<String> {
        let check = self
            .failed
            .iter()
            .find(|failed| failed.part == PluginRole::RequestCheck);
        if let Some(check) = check {
            return Some(format!(
                "the plugin `{}` failed while it judged requests",
                check.plugin
            ));
        }
        let conditions = objectives.conditions.iter();
        let mut metrics = conditions.map(|condition| condition.samples.metric.as_str());
        metrics.find_map(|metric| {
            self.samples(metric, catalogue)
                .or_else(|| self.cut(metric, catalogue))
        })
    }

    /// Returns the reason why samples of a metric are missing.
    pub(crate) fn samples(&self, metric: &str, catalogue: &Catalogue) -> Option<String> {
        let plugin = catalogue.get(metric)?.plugin.as_ref()?;
        let mut failed = self.failed.iter();
        let failed = failed.find(|failed| failed.part == PluginRole::Metric && failed.plugin == *plugin)?;
        Some(format!("the plugin `{}` failed while it measured", failed.plugin))
    }

    /// Returns the reason for a cut record. A request without a sample meets a condition; one that
    /// has not been measured yet does not.
    fn cut(&self, metric: &str, catalogue: &Catalogue) -> Option<String> {
        let plugin = catalogue.get(metric)?.plugin.as_ref()?;
        let is_whole = self.complete || self.repeated_metrics.contains(metric);
        (!is_whole).then(|| {
            format!("the record is not whole, and the plugin `{plugin}` may have more samples of `{metric}`")
        })
    }
}
