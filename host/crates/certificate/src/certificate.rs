//! The certificate of a run and the rules behind its verdict.
//!
//! **Scope.** A certificate states how much of each latency the client added. It does not rate the
//! server, nor the statistical uncertainty of a percentile of few requests.
//!
//! **Error.** The error of a metric is the mean over its samples of the absolute time that the
//! client added to each. It is estimated from the run's own record
//! ([`ErrorEstimate`](veeksha_metrics::ErrorEstimate)) or measured by a self-test (`self_test.rs`),
//! whichever is larger: a quiet test does not excuse a disturbed run. It is compared with the
//! metric's own P50. More than 1 % degrades the run, more than 5 % invalidates it ([`Thresholds`]).
//! The mean is used instead of the median, so that rare long stalls count, and instead of the P99,
//! which a single stall among a hundred requests determines. The P99 of the error is the bound that
//! is displayed next to the metric.
//!
//! If chunks arrive in bursts, most gaps are close to 0 and their P50 is not a pace: if the P50 of
//! `tbc` is below a tenth of its mean, the mean is used instead.
//!
//! **Further causes of a verdict.** Requests that were due and that the host failed to send; failed
//! requests, which restrict the metrics to the answered ones; client threads with hardly any
//! processor time to spare; token counts that contradict each other or that nothing confirms
//! (`tokens.rs`); plugins that failed; no request answered.
//!
//! **Remarks** do not change the verdict (findings with the verdict `VALID`): connections that were
//! opened within times to first chunk, lag that kernel timestamps made harmless, clock steps,
//! sessions that a plugin delivered late (their lateness is in the dispatch), and requests that
//! were withdrawn because their session had failed.
//!
//! **Few samples, and short times.** A metric with fewer than [`ENOUGH`](crate::ENOUGH) samples is
//! not certified, nor one whose typical value is below [`FINEST`](crate::FINEST): no client can
//! resolve such times, and a server that writes without a pace is not the client's fault. Either
//! can degrade the run, if its error is too large, but never invalidate it.
//!
//! **Unknown errors.** If arrival times are read times, and the lag of the reads is unknown, the
//! run is degraded.
//!
//! **No schedule.** In closed-loop traffic requests are due when the server's answers allow it, so
//! lateness against those instants is reported but not rated.

use veeksha_metrics::{Evaluation, HostPerformance, Metric};

use crate::bound::{ErrorBound, MetricAssessment};
use crate::conditions::RunConditions;
use crate::findings::{failed, failed_plugin, findings_of_run, no_tokens, nothing_answered, of_record};
use crate::self_test::SelfTest;
use crate::tokens::{PromptDoubt, TokenDoubt};
use crate::verdict::{CertFinding, Thresholds, Verdict};

/// The evidence behind a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The run's own record.
    Record,
    /// The run's own record and a self-test.
    SelfTest,
    /// Time was simulated: nothing was late, and no error is possible.
    Simulated,
}

impl Basis {
    /// The snake-case name in files.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Record => "record",
            Basis::SelfTest => "self_test",
            Basis::Simulated => "simulated",
        }
    }
}

/// The certificate of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The worst of the findings' verdicts.
    pub verdict: Verdict,
    /// The evidence.
    pub basis: Basis,
    /// Metrics first, then the run as a whole.
    pub findings: Vec<CertFinding>,
    /// In the order of [`Metric::all`]; without metrics that have no samples.
    pub bounds: Vec<ErrorBound>,
    /// The doubt about the run's token counts, if there is one. It affects the metrics with
    /// [`uses_token_counts`](veeksha_definitions::Definition).
    pub token_doubt: Option<TokenDoubt>,
    /// The server's differing count of prompt tokens, if there is one. It affects the metrics with
    /// [`uses_prompt_tokens`](veeksha_definitions::Definition).
    pub prompt_doubt: Option<PromptDoubt>,
    /// The limits that were applied.
    pub thresholds: Thresholds,
    /// The host's statistics, from which the bounds follow.
    pub host: HostPerformance,
    /// The self-test, if one was made.
    pub self_test: Option<SelfTest>,
}

/// Certifies a run. A self-test's errors are used if they are larger than the estimated ones and
/// the test has enough samples.
pub fn certify(
    evaluation: &Evaluation,
    thresholds: &Thresholds,
    conditions: &RunConditions,
    self_test: Option<&SelfTest>,
) -> Certificate {
    let token_doubt = TokenDoubt::of(&evaluation.samples.answer_tokens(), conditions);
    let prompt_doubt = PromptDoubt::of(evaluation.samples.prompt_counts());
    let assessment = MetricAssessment {
        thresholds,
        conditions,
        self_test,
        token_doubt,
    };
    let mut findings = Vec::new();
    let mut bounds = Vec::new();
    if evaluation.counts.completed == 0 {
        findings.push(nothing_answered(evaluation));
    }
    findings.extend(no_tokens(&evaluation.counts));
    for estimate in &evaluation.host.errors {
        let Some(summary) = evaluation.metric(estimate.metric) else {
            continue;
        };
        let (bound, finding) = assessment.of_metric(estimate, summary);
        bounds.push(bound);
        findings.push(finding);
    }
    findings.extend(findings_of_run(evaluation, &assessment, &bounds));
    findings.extend(prompt_doubt.map(|doubt| doubt.finding(conditions)));
    Certificate {
        verdict: worst(&findings),
        basis: self_test.map_or(Basis::Record, |_| Basis::SelfTest),
        findings,
        bounds,
        token_doubt,
        prompt_doubt,
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
    /// Returns the certificate of a run in virtual time, whose metrics are exactly the model's.
    pub fn simulated(evaluation: &Evaluation, thresholds: &Thresholds) -> Certificate {
        let mut findings = vec![CertFinding {
            metric: None,
            verdict: Verdict::Valid,
            what:
                "time was simulated: all results are exactly the model's, and do not describe a real server"
                    .into(),
            remedy: None,
        }];
        findings.extend(of_record(evaluation.end));
        if evaluation.counts.completed == 0 {
            findings.push(nothing_answered(evaluation));
        }
        findings.extend(failed(&evaluation.counts, thresholds));
        findings.extend(evaluation.failed.iter().map(failed_plugin));
        Certificate {
            verdict: worst(&findings),
            basis: Basis::Simulated,
            findings,
            bounds: Vec::new(),
            // The simulated server's counts are the model's.
            token_doubt: None,
            prompt_doubt: None,
            thresholds: *thresholds,
            host: evaluation.host.clone(),
            self_test: None,
        }
    }

    /// Returns the bound of a metric, if it has one.
    pub fn bound(&self, metric: Metric) -> Option<&ErrorBound> {
        self.bounds.iter().find(|bound| bound.metric == metric)
    }

    /// Returns the doubt about the token counts behind a metric, if there is one.
    pub fn token_doubt(&self, metric: Metric) -> Option<TokenDoubt> {
        self.token_doubt.filter(|doubt| doubt.affects(metric))
    }

    /// Returns the doubts about the token counts behind a metric as text, if there are any.
    pub fn doubts(&self, metric: Metric) -> Option<String> {
        let prompt = self
            .prompt_doubt
            .filter(|_| metric.definition_of().uses_prompt_tokens);
        let output = self.token_doubt(metric).map(|doubt| doubt.to_string());
        let doubts: Vec<String> = prompt
            .map(|doubt| doubt.to_string())
            .into_iter()
            .chain(output)
            .collect();
        (!doubts.is_empty()).then(|| doubts.join("; "))
    }

    /// Returns the part of the metrics that the verdict covers, as text: `1 of 4 metrics; 3 have
    /// too few samples`. `None` if every metric has enough samples.
    pub fn coverage(&self) -> Option<String> {
        let all = self.bounds.len();
        let thin = self.bounds.iter().filter(|bound| !bound.has_enough()).count();
        let verb = if thin == 1 { "has" } else { "have" };
        (thin > 0).then(|| format!("{} of {all} metrics; {thin} {verb} too few samples", all - thin))
    }
}
