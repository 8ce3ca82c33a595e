//! How a run went: what is said of it in a line, and the exit code.

use veeksha_certificate::{CertFinding, Certificate, Verdict, certify};
use veeksha_metrics::Evaluation;

use super::{Clock, Judged, table};
use crate::{exit, say};

/// What the run says of its own accuracy.
pub(super) fn certificate(evaluation: &Evaluation, judged: &Judged) -> Certificate {
    match judged.clock {
        Clock::Real => certify(evaluation, &judged.thresholds, judged.self_test.as_ref()),
        Clock::Virtual => Certificate::simulated(evaluation, &judged.thresholds),
    }
}

/// Says on standard error why the exit code is what it is, also to those who want no table.
pub(super) fn say_of(evaluation: &Evaluation, certificate: &Certificate) {
    for refused in &evaluation.refused {
        say::err(format!("warning: {refused}"));
    }
    if let Some(why) = evaluation.why_nothing_was_measured() {
        say::err(format!("warning: {why}"));
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
    let missed = table::missed(evaluation);
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
