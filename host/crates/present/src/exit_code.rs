//! The exit code of a run.

use veeksha_certificate::{Certificate, Verdict};
use veeksha_metrics::Evaluation;

use crate::verdict::was_interrupted_at_once;

/// Returns the exit code of a run: the first that applies of nothing measured, every request
/// failed, measurement INVALID, SLO not met, done. Interruption, failed plugins and a lost target
/// take precedence and are handled by the caller.
pub fn exit_code(evaluation: &Evaluation, certificate: &Certificate) -> u8 {
    if evaluation.counts.requests == 0 || was_interrupted_at_once(evaluation) {
        veeksha_exit::INVALID
    } else if evaluation.counts.all_failed() {
        veeksha_exit::TARGET
    } else if certificate.verdict == Verdict::Invalid {
        veeksha_exit::INVALID
    } else if !evaluation.slos.all_met() {
        veeksha_exit::SLO_FAILED
    } else {
        veeksha_exit::DONE
    }
}
