//! Calls of the plugins that check a whole run, and conversion of their verdicts to events.

use std::sync::Arc;

use veeksha_events::{Event, FailedPlugin, PluginRole};
use veeksha_metrics::Evaluation;
use veeksha_ports::{PluginFailure, RunResults, SloCheck};

use crate::evaluator_plugins::tracked_results::TrackedResults;

/// Calls every SLO check and adds the verdicts to `evaluation`. Returns the failures; a check that
/// failed has no verdict.
pub(crate) fn run_slo_checks(
    evaluation: &mut Evaluation,
    checks: &[Arc<dyn SloCheck>],
) -> Vec<PluginFailure> {
    let mut failures = Vec::new();
    for check in checks {
        let tracked = Arc::new(TrackedResults::new(evaluation.samples.clone()));
        let results: Arc<dyn RunResults> = tracked.clone();
        let verdicts = check.check(results);
        let unknown = tracked.unknown_names();
        let unknown = unknown.map(|unknown| format!("the plugin `{}`: {unknown}", check.info().name));
        evaluation.slos.slips.extend(unknown);
        let verdicts = verdicts.unwrap_or_else(|failure| {
            evaluation
                .failed
                .push(failed_plugin(&failure, PluginRole::SloCheck));
            failures.push(failure);
            Vec::new()
        });
        evaluation.judged_by(&check.info().name, verdicts);
    }
    failures
}

/// Converts a failure to its form in the record.
pub(super) fn failed_plugin(failure: &PluginFailure, part: PluginRole) -> FailedPlugin {
    let why = failure.message.lines().next().unwrap_or_default();
    FailedPlugin {
        plugin: failure.plugin.clone(),
        part,
        message: format!("in `{}`: {why}", failure.function),
        session: None,
        at: None,
    }
}

/// Returns the verdicts on a run and the failures of its SLO checks as events for the record.
pub(crate) fn verdict_events(evaluation: &Evaluation) -> impl Iterator<Item = Event> + '_ {
    let failed = evaluation.failed.iter();
    let failed = failed.filter(|failed| failed.part == PluginRole::SloCheck);
    let verdicts = evaluation.slos.verdicts.iter().map(|of_plugin| Event::RunJudged {
        plugin: of_plugin.plugin.clone(),
        name: of_plugin.verdict.name.clone(),
        met: of_plugin.verdict.met,
        observed: of_plugin.verdict.observed,
        threshold: of_plugin.verdict.threshold,
        detail: of_plugin.verdict.detail.clone(),
    });
    verdicts.chain(failed.cloned().map(Event::PluginFailed))
}
