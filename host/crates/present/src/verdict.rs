//! The certificate of a run and its closing messages.

use std::cmp::Reverse;

use veeksha_certificate::{CertFinding, Certificate, Verdict, certify};
use veeksha_metrics::Evaluation;

use crate::accuracy::{AccuracyContext, Clock};
use crate::run_analysis::RunAnalysis;
use crate::{listed, table};

/// Computes the certificate of a run.
pub fn certificate(evaluation: &Evaluation, accuracy: &AccuracyContext) -> Certificate {
    let mut certificate = match accuracy.clock {
        Clock::Real => certify(
            evaluation,
            &accuracy.thresholds,
            &accuracy.conditions,
            accuracy.self_test.measured(),
        ),
        Clock::Virtual => Certificate::simulated(evaluation, &accuracy.thresholds),
    };
    certificate.findings.extend(accuracy.remarks());
    certificate
}

/// Returns the lines that explain the exit code of a run, for standard error: failed requests by
/// class, `events` that ended or disturbed the run, an INVALID certificate, and objectives that are
/// unknown or missed.
pub fn messages(results: &RunAnalysis, certificate: &Certificate, events: Vec<String>) -> Vec<String> {
    let mut classes: Vec<_> = results.failures.iter().collect();
    classes.sort_by_key(|(_, failed)| Reverse(failed.count));
    let failures: Vec<String> = classes
        .into_iter()
        .map(|(class, failed)| {
            format!(
                "{} failed ({class}); the first: {}",
                veeksha_stats::counted(failed.count, "request"),
                failed.message
            )
        })
        .collect();
    let failures = listed::lines(&failures, "kinds of failures").into_iter();
    let explanations = explanations(&results.evaluation, certificate);
    failures.chain(events).chain(explanations).collect()
}

fn explanations(evaluation: &Evaluation, certificate: &Certificate) -> Vec<String> {
    let mut lines: Vec<String> = listed::lines(&evaluation.refused, "kinds of samples left out")
        .into_iter()
        .map(|refused| format!("warning: {refused}"))
        .collect();
    if let Some(why) = evaluation.why_nothing_was_measured() {
        lines.push(format!("warning: {why}"));
        return lines;
    }
    if was_interrupted_at_once(evaluation) {
        lines.push(
            "warning: nothing was measured: the run was interrupted before its first answer".to_owned(),
        );
        return lines;
    }
    if evaluation.counts.all_failed() && evaluation.counts.errored == 0 {
        lines.push("no request was answered before the end of the run".to_owned());
    }
    if certificate.verdict == Verdict::Invalid && evaluation.counts.completed > 0 {
        lines.push(format!("the measurement is INVALID: {}", worst(certificate)));
    }
    let not_judged = evaluation.slos.not_asked.iter();
    lines.extend(not_judged.map(|unknown| format!("warning: {unknown}")));
    let missed = table::missed(evaluation);
    if !missed.is_empty() {
        lines.push(format!("not met: {}", missed.join("; ")));
    }
    lines
}

/// Returns true if the run was stopped before any request was answered or failed; the target is not
/// the cause then.
pub(crate) fn was_interrupted_at_once(evaluation: &Evaluation) -> bool {
    let counts = &evaluation.counts;
    evaluation.end.interrupted && counts.all_failed() && counts.errored == 0
}

/// Returns the message of the first finding that makes the run INVALID.
fn worst(certificate: &Certificate) -> String {
    let invalid = |finding: &&CertFinding| finding.verdict == Verdict::Invalid;
    certificate
        .findings
        .iter()
        .find(invalid)
        .map_or_else(String::new, |finding| finding.what.clone())
}
