//! Calls of the plugins that check a whole run, and conversion of their verdicts to events.

use std::sync::Arc;

use veeksha_events::{Event, FailedPlugin, PluginRole};
use veeksha_metrics::{Catalogue, Evaluation};
use veeksha_ports::{PluginFailure, PluginFailureKind, RunResults, SloCheck};
use veeksha_present::RunAnalysis;

use crate::evaluator_plugins::tracked_results::TrackedResults;
use crate::failure::CommandFailure;

/// Calls every SLO check and adds verdicts and failures to `results`. Returns the failures; a check
/// that failed, or that asked for an unknown metric, has no verdict.
pub(crate) fn run_slo_checks(results: &mut RunAnalysis, checks: &[Arc<dyn SloCheck>]) -> Vec<PluginFailure> {
    let RunAnalysis {
        evaluation, health, ..
    } = results;
    let mut failures = Vec::new();
    for check in checks {
        let samples = evaluation.samples.clone();
        let catalogue = samples.catalogue().clone();
        let tracked = Arc::new(TrackedResults::new(samples, catalogue));
        let results: Arc<dyn RunResults> = tracked.clone();
        let verdicts = check.check(results);
        let verdicts = match tracked.unknown_names() {
            None => verdicts,
            Some(unknown) => Err(unknown_metric(check.as_ref(), unknown)),
        };
        match verdicts {
            Ok(verdicts) => evaluation.set_verdicts(&check.info().name, verdicts),
            Err(failure) => {
                let failed = failed_plugin(&failure, PluginRole::SloCheck);
                health.add_failed_plugin(&failed);
                evaluation.failed.push(failed);
                failures.push(failure);
            }
        }
    }
    failures
}

/// Calls every SLO check once with results without samples, so that a misspelled metric is found
/// before the run and not after it.
///
/// Only the names that a check requests matter here: without samples it may fail, or return before
/// its other requests, which are then checked after the run.
///
/// # Errors
/// If a check requests a metric that the run does not define.
pub(crate) fn reject_unknown_metrics(
    checks: &[Arc<dyn SloCheck>],
    catalogue: &Catalogue,
) -> Result<(), CommandFailure> {
    for check in checks {
        let tracked = Arc::new(TrackedResults::without_samples(catalogue.clone()));
        let results: Arc<dyn RunResults> = tracked.clone();
        let _no_verdicts = check.check(results);
        if let Some(unknown) = tracked.unknown_names() {
            let failure = unknown_metric(check.as_ref(), unknown);
            return Err(
                CommandFailure::usage(failure.to_string()).hinted("`veeksha-host metrics` lists all metrics")
            );
        }
    }
    Ok(())
}

fn unknown_metric(check: &dyn SloCheck, unknown: String) -> PluginFailure {
    PluginFailure::new(&check.info().name, "check", PluginFailureKind::Result, unknown)
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
