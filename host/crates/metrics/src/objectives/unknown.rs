//! What cannot be known because a plugin failed, or had not said all of it when a record was cut: a
//! request that nobody judged is neither good nor bad.

use std::collections::BTreeSet;

use veeksha_events::{FailedPlugin, PluginRole};

use crate::catalogue::Catalogue;
use crate::objectives::check::Objectives;

/// What plugins have said of a run's requests, and what they have not.
pub(crate) struct Unknown<'a> {
    /// Those that failed.
    pub(crate) failed: &'a [FailedPlugin],
    /// Whether the record is whole.
    pub(crate) complete: bool,
    /// Metrics of plugins that saw all requests of the record, whole or not.
    pub(crate) measured_anew: &'a BTreeSet<String>,
}

impl Unknown<'_> {
    /// Why it is not known which requests were good, in words, as far as that rests on a check that
    /// failed or on conditions.
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

    /// Why samples of a metric are missing, in words.
    pub(crate) fn samples(&self, metric: &str, catalogue: &Catalogue) -> Option<String> {
        let plugin = catalogue.get(metric)?.plugin.as_ref()?;
        let mut failed = self.failed.iter();
        let failed = failed.find(|failed| failed.part == PluginRole::Metric && failed.plugin == *plugin)?;
        Some(format!("the plugin `{}` failed while it measured", failed.plugin))
    }

    /// A request without a sample keeps a condition; one that was not measured yet does not.
    fn cut(&self, metric: &str, catalogue: &Catalogue) -> Option<String> {
        let plugin = catalogue.get(metric)?.plugin.as_ref()?;
        let is_whole = self.complete || self.measured_anew.contains(metric);
        (!is_whole).then(|| {
            format!(
                "the record is not whole, and the plugin `{plugin}` may have had more to say of `{metric}`"
            )
        })
    }
}
