//! How a run went: who judges it, what is said of it in a line, and the exit code.

use std::sync::Arc;

use veeksha_evaluate::{CertFinding, Certificate, Evaluation, Verdict, certify};
use veeksha_ports::{PluginFailure, RunResults, SloCheck};
use veeksha_report::Mark;

use super::{Clock, Judged, table};
use crate::{exit, say};

/// What the run says of its own accuracy.
pub(super) fn certificate(evaluation: &Evaluation, judged: &Judged) -> Certificate {
    match judged.clock {
        Clock::Real => certify(evaluation, &judged.thresholds, judged.self_test.as_ref()),
        Clock::Virtual => Certificate::simulated(evaluation, &judged.thresholds),
    }
}

/// Asks the plugins that judge the run. What went wrong is given back.
pub(super) fn judge(evaluation: &mut Evaluation, checks: &[Arc<dyn SloCheck>]) -> Vec<PluginFailure> {
    let mut failures = Vec::new();
    for check in checks {
        let results: Arc<dyn RunResults> = evaluation.samples.clone();
        match check.check(results) {
            Ok(verdicts) => evaluation.add_verdicts(&check.info().name, verdicts),
            Err(failure) => failures.push(failure),
        }
    }
    failures
}

/// Says on standard error why the exit code is what it is, also to those who want no table.
pub(super) fn say_of(evaluation: &Evaluation, certificate: &Certificate) {
    for refused in &evaluation.refused {
        say::err(format!("warning: {refused}"));
    }
    if evaluation.counts.requests == 0 {
        say::err("warning: nothing was measured: the run ended before its first request");
        return;
    }
    if was_interrupted_at_once(evaluation) {
        say::err("warning: nothing was measured: the run was interrupted before its first answer");
        return;
    }
    if evaluation.counts.all_failed() && evaluation.counts.errored == 0 {
        say::err("no request was answered before the run ended");
    }
    if certificate.verdict == Verdict::Invalid && evaluation.counts.completed > 0 {
        say::err(format!("the measurement is INVALID: {}", worst(certificate)));
    }
    let missed = missed(evaluation);
    if !missed.is_empty() {
        say::err(format!("not met: {}", missed.join("; ")));
    }
}

/// Whether the user stopped the run before anything was answered or failed: that says nothing of the target.
fn was_interrupted_at_once(evaluation: &Evaluation) -> bool {
    let counts = &evaluation.counts;
    evaluation.end.interrupted && counts.all_failed() && counts.errored == 0
}

/// The first finding that makes a run invalid, in words.
fn worst(certificate: &Certificate) -> String {
    let invalid = |finding: &&CertFinding| finding.verdict == Verdict::Invalid;
    certificate
        .findings
        .iter()
        .find(invalid)
        .map_or_else(String::new, |finding| finding.what.clone())
}

/// The objectives that were missed, each with what was observed and what was asked for.
fn missed(evaluation: &Evaluation) -> Vec<String> {
    let rows = table::slos(evaluation).rows.into_iter();
    rows.filter(|row| row.mark == Mark::Bad)
        .map(|row| match row.cells.as_slice() {
            [observed, asked] => format!("{} is {observed}, asked for {asked}", row.name),
            _ => row.name,
        })
        .collect()
}

/// The first of these that holds: nothing was measured, every request failed, the measurement is invalid, an SLO failed, done. Before them
/// come interruption, a plugin's failure, the loss of the target.
pub(super) fn code(evaluation: &Evaluation, certificate: &Certificate) -> u8 {
    if evaluation.counts.requests == 0 || was_interrupted_at_once(evaluation) {
        exit::INVALID
    } else if evaluation.counts.all_failed() {
        exit::TARGET
    } else if certificate.verdict == Verdict::Invalid {
        exit::INVALID
    } else if !evaluation.slos.all_met() {
        exit::SLO_FAILED
    } else {
        exit::DONE
    }
}
