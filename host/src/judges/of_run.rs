//! Asks the plugins that judge a run by its figures, and tells what they say as events.

use std::sync::Arc;

use veeksha_events::{Event, FailedPlugin, PluginPart};
use veeksha_metrics::Evaluation;
use veeksha_ports::{PluginFailure, RunResults, SloCheck};

use super::questions::Questions;

/// Asks the plugins that judge the run. What went wrong is given back; one that failed has no verdict.
pub(crate) fn judge_run(evaluation: &mut Evaluation, checks: &[Arc<dyn SloCheck>]) -> Vec<PluginFailure> {
    let mut failures = Vec::new();
    for check in checks {
        let questions = Arc::new(Questions::about(evaluation.samples.clone()));
        let results: Arc<dyn RunResults> = questions.clone();
        let verdicts = check.check(results);
        let slips = questions.slips();
        let slips = slips.map(|slips| format!("the plugin `{}`: {slips}", check.info().name));
        evaluation.slos.slips.extend(slips);
        let verdicts = verdicts.unwrap_or_else(|failure| {
            evaluation.failed.push(failed(&failure, PluginPart::SloCheck));
            failures.push(failure);
            Vec::new()
        });
        evaluation.judged_by(&check.info().name, verdicts);
    }
    failures
}

/// A failure, for the record.
pub(super) fn failed(failure: &PluginFailure, part: PluginPart) -> FailedPlugin {
    let why = failure.message.lines().next().unwrap_or_default();
    FailedPlugin {
        plugin: failure.plugin.clone(),
        part,
        message: format!("in `{}`: {why}", failure.function),
    }
}

/// What plugins said of a run, and which failed over it, for its record.
pub(crate) fn verdicts_as_events(evaluation: &Evaluation) -> impl Iterator<Item = Event> + '_ {
    let failed = evaluation.failed.iter();
    let failed = failed.filter(|failed| failed.part == PluginPart::SloCheck);
    let verdicts = evaluation.slos.verdicts.iter().map(|said| Event::RunJudged {
        plugin: said.plugin.clone(),
        name: said.verdict.name.clone(),
        met: said.verdict.met,
        observed: said.verdict.observed,
        threshold: said.verdict.threshold,
        detail: said.verdict.detail.clone(),
    });
    verdicts.chain(failed.cloned().map(Event::PluginFailed))
}
