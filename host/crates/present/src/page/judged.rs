//! The certificate, objectives, verdicts of plugins and health checks.

use veeksha_certificate::{Basis, Certificate, ErrorBound, ErrorSource, Verdict};
use veeksha_health::{HealthCheck, HealthOutcome};
use veeksha_metrics::{PluginVerdict, SloResult};
use veeksha_model::seconds;
use veeksha_page::{CertificateFinding, CheckOutcome, MetricError, SloRow, WorstSloWindow};

use crate::units::{objective_unit, verdict_unit};

pub(super) fn trust(certificate: &Certificate) -> veeksha_page::CertificateSection {
    veeksha_page::CertificateSection {
        verdict: verdict_of(certificate.verdict),
        coverage: certificate.coverage(),
        basis: Some(
            match certificate.basis {
                Basis::Record => "the run's own record",
                Basis::SelfTest => "a self-test against a reference server with known timings",
                Basis::Simulated => "virtual time: nothing is late by construction",
            }
            .to_owned(),
        ),
        findings: certificate
            .findings
            .iter()
            .map(|finding| CertificateFinding {
                verdict: verdict_of(finding.verdict),
                metric: finding.metric.map(|metric| metric.name().to_owned()),
                what: finding.what.clone(),
                remedy: finding.remedy.clone(),
            })
            .collect(),
        bounds: certificate
            .bounds
            .iter()
            .map(|bound| MetricError {
                metric: bound.metric.name().to_owned(),
                count: bound.count,
                mean_error: bound.mean_error,
                p99_error: bound.p99_error,
                relative: bound.relative_to_p50,
                source: source_of(certificate, bound),
            })
            .collect(),
    }
}

/// Returns the origin of a bound, the doubt about the token counts that it does not include, and
/// the reason why a metric with too few samples is not certified.
fn source_of(certificate: &Certificate, bound: &ErrorBound) -> String {
    let source = match bound.source {
        ErrorSource::SelfTest => "measured by the self-test",
        ErrorSource::Estimated => "estimated",
    };
    let source = match certificate.token_doubt(bound.metric) {
        Some(doubt) => format!("{source}, of times only: {doubt}"),
        None => source.to_owned(),
    };
    match bound.lack_of_samples() {
        Some(lack) => format!("{lack}; {source}"),
        None => source,
    }
}

fn verdict_of(verdict: Verdict) -> veeksha_page::CertificateVerdict {
    match verdict {
        Verdict::Valid => veeksha_page::CertificateVerdict::Valid,
        Verdict::Degraded => veeksha_page::CertificateVerdict::Degraded,
        Verdict::Invalid => veeksha_page::CertificateVerdict::Invalid,
    }
}

pub(super) fn slo(result: &SloResult) -> SloRow {
    SloRow {
        name: result.name().map(str::to_owned),
        expression: result.objective.clone(),
        observed: result.observed,
        bound: Some(result.threshold),
        comparison: Some(result.comparison.to_string()),
        unit: objective_unit(result).to_owned(),
        samples: result.sample_count,
        met: result.unknown.is_none().then_some(result.met),
        worst_window: result.worst_window.map(|worst| WorstSloWindow {
            from: seconds(worst.from),
            to: seconds(worst.to),
            of: worst.windows,
        }),
        detail: detail(result),
        plugin: None,
    }
}

fn detail(result: &SloResult) -> Option<String> {
    let thin = result.sample_count.filter(|samples| result.thin && *samples > 0);
    let thin = thin.map(|samples| format!("of only {}", veeksha_stats::counted(samples, "sample")));
    let parts: Vec<String> = result.detail.iter().cloned().chain(thin).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

pub(super) fn verdict(of_plugin: &PluginVerdict) -> SloRow {
    let verdict = &of_plugin.verdict;
    SloRow {
        expression: verdict.name.clone(),
        observed: verdict.observed,
        bound: Some(verdict.threshold),
        unit: verdict_unit(of_plugin).to_owned(),
        met: Some(verdict.met),
        detail: (!verdict.detail.is_empty()).then(|| verdict.detail.clone()),
        plugin: Some(of_plugin.plugin.clone()),
        ..SloRow::default()
    }
}

/// Returns the row of objectives with an unknown result. With it, the page does not state that all
/// objectives are met.
pub(super) fn not_judged(unknown: &str) -> SloRow {
    SloRow {
        expression: "not judged".to_owned(),
        detail: Some(unknown.to_owned()),
        ..SloRow::default()
    }
}

pub(super) fn check(check: &HealthCheck) -> veeksha_page::HealthRow {
    let (outcome, why) = match &check.outcome {
        HealthOutcome::Passed => (CheckOutcome::Passed, None),
        HealthOutcome::Failed => (CheckOutcome::Failed, None),
        HealthOutcome::Skipped(why) => (CheckOutcome::Skipped, Some(why.clone())),
    };
    let mut findings = check.findings.iter().cloned();
    veeksha_page::HealthRow {
        name: check.name.to_owned(),
        outcome,
        summary: why.or_else(|| findings.next()).unwrap_or_default(),
        details: findings
            .chain(check.fixes.iter().map(|fix| format!("fix: {fix}")))
            .collect(),
    }
}
