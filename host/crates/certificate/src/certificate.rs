//! A run's judgement of itself.
//!
//! **What it says.** A certificate says how much of each latency is the client's own doing. It says nothing of how well the server did, nor
//! of how far a percentile of few requests is from that of many.
//!
//! **Error.** The error of a metric is the mean over its samples of the absolute time that the client added to each, estimated from
//! the run's own record (`errors.rs` says how for each metric) or measured by a self-test (`self_test.rs`), whichever is larger: a quiet
//! test does not excuse a disturbed run. It is set against the metric's own P50. More than 1 % degrades the run, more than 5 % invalidates it ([`Thresholds`]). The mean and not
//! the median, so that rare long stalls count; not the P99, which one stall among a hundred requests decides. The P99 of the error is the
//! bound that stands beside the metric.
//!
//! Where chunks come in bursts, most gaps are next to nothing and their P50 is no measure of anything: if the P50 of `tbc` is below a
//! tenth of its mean, the mean takes its place.
//!
//! **What decides besides errors.** Requests that were due and that the host failed to send; client threads that had hardly any processor
//! time to spare; no request answered.
//!
//! **What does not decide** and is said all the same (a finding with the verdict `VALID`): openings of connections within times to first chunk,
//! lag that kernel timestamps made harmless, clock steps, sessions that a plugin delivered late (their lateness is in the dispatch),
//! requests that were withdrawn because their session had failed.
//!
//! **Few samples, and short times.** A metric of fewer than [`ENOUGH`] samples is not certified, nor one of which the typical value is below
//! [`FINEST`]: no client can tell such times apart, and a server that writes without a pace is no fault of the client's. Either can degrade
//! the run, if its error is too large, but never invalidate it.
//!
//! **Unknown errors.** Where arrival times are those of reads, and nothing tells how late these were, the run is degraded: it cannot vouch for
//! what it did not observe.

use serde_json::Value;
use veeksha_metrics::{Evaluation, HostFigures, Metric};

use crate::bound::{self, ErrorBound};
use crate::findings::{failed, findings_of_run, nothing_answered, of_record};
use crate::json;
use crate::self_test::SelfTest;
use crate::verdict::{CertFinding, Thresholds, Verdict};

/// What the certificate rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// On the run's own record.
    Record,
    /// On the run's own record and a self-test.
    SelfTest,
    /// Time was simulated: nothing was late, and no error is possible.
    Simulated,
}

impl Basis {
    /// The snake-case name, as it stands in files.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Record => "record",
            Basis::SelfTest => "self_test",
            Basis::Simulated => "simulated",
        }
    }
}

/// A run's judgement of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The worst of the findings' verdicts.
    pub verdict: Verdict,
    /// What it rests on.
    pub basis: Basis,
    /// Metrics first, then the host's other figures.
    pub findings: Vec<CertFinding>,
    /// In the order of [`Metric::all`]; without those that have no samples.
    pub bounds: Vec<ErrorBound>,
    /// What was tolerated.
    pub thresholds: Thresholds,
    /// The figures behind it.
    pub host: HostFigures,
    /// The self-test, if one was made.
    pub self_test: Option<SelfTest>,
}

/// Judges a run. A self-test's errors count where they are larger than the estimated ones, if it has samples enough.
pub fn certify(
    evaluation: &Evaluation,
    thresholds: &Thresholds,
    self_test: Option<&SelfTest>,
) -> Certificate {
    let mut findings = Vec::new();
    let mut bounds = Vec::new();
    if evaluation.counts.completed == 0 {
        findings.push(nothing_answered(evaluation));
    }
    for estimate in &evaluation.host.errors {
        let Some(summary) = evaluation.metric(estimate.metric) else {
            continue;
        };
        let tokens = evaluation.samples.answer_tokens();
        let (bound, finding) = bound::of_metric(estimate, summary, &tokens, thresholds, self_test);
        bounds.push(bound);
        findings.push(finding);
    }
    findings.extend(findings_of_run(evaluation, thresholds, self_test, &bounds));
    Certificate {
        verdict: worst(&findings),
        basis: self_test.map_or(Basis::Record, |_| Basis::SelfTest),
        findings,
        bounds,
        thresholds: *thresholds,
        host: evaluation.host.clone(),
        self_test: self_test.copied(),
    }
}

fn worst(findings: &[CertFinding]) -> Verdict {
    findings
        .iter()
        .map(|finding| finding.verdict)
        .max()
        .unwrap_or_default()
}

impl Certificate {
    /// The certificate of a run in virtual time: what it measured is exactly what its model did.
    pub fn simulated(evaluation: &Evaluation, thresholds: &Thresholds) -> Certificate {
        let mut findings = vec![CertFinding {
            metric: None,
            verdict: Verdict::Valid,
            what:
                "time was simulated: every figure is exactly the model's, and says nothing of a real server"
                    .into(),
            remedy: None,
        }];
        findings.extend(of_record(evaluation.end));
        if evaluation.counts.completed == 0 {
            findings.push(nothing_answered(evaluation));
        }
        findings.extend(failed(&evaluation.counts, thresholds));
        Certificate {
            verdict: worst(&findings),
            basis: Basis::Simulated,
            findings,
            bounds: Vec::new(),
            thresholds: *thresholds,
            host: evaluation.host.clone(),
            self_test: None,
        }
    }

    /// The bound of a metric, if it has one.
    pub fn bound(&self, metric: Metric) -> Option<&ErrorBound> {
        self.bounds.iter().find(|bound| bound.metric == metric)
    }

    /// `certificate.json`.
    pub fn json(&self) -> Value {
        json::certificate(self)
    }
}
