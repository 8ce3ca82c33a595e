//! The JSON of `certificate.json`.

use serde_json::{Value, json};
use veeksha_metrics::Metric;

use crate::bound::ErrorBound;
use crate::certificate::Certificate;
use crate::self_test::{ErrorDistribution, SelfTest};
use crate::tokens::prompt_metric_names;
use crate::verdict::CertFinding;

impl Certificate {
    /// Returns the content of `certificate.json`.
    pub fn json(&self) -> Value {
        certificate(self)
    }
}

fn certificate(certificate: &Certificate) -> Value {
    let thresholds = &certificate.thresholds;
    let bounds: serde_json::Map<String, Value> = certificate
        .bounds
        .iter()
        .map(|entry| (entry.metric.name().to_owned(), bound(certificate, entry)))
        .collect();
    let doubtful = Metric::all().filter(|metric| certificate.token_doubt(*metric).is_some());
    let doubtful: Vec<&str> = doubtful.map(Metric::name).collect();
    let prompt_disagreement = certificate.prompt_doubt.map(|doubt| {
        json!({
            "share": doubt.excess,
            "requests": doubt.counts.requests,
            "by_host": doubt.counts.by_host,
            "by_server": doubt.counts.by_server,
            "metrics": prompt_metric_names().collect::<Vec<_>>(),
        })
    });
    let token_disagreement = certificate.token_doubt.and_then(|doubt| doubt.disagreement);
    let token_disagreement = token_disagreement.map(|share| json!({ "share": share, "metrics": doubtful }));
    json!({
        "verdict": certificate.verdict.to_string(),
        "basis": certificate.basis.name(),
        "findings": certificate.findings.iter().map(finding).collect::<Vec<_>>(),
        "bounds": bounds,
        "prompt_token_disagreement": prompt_disagreement,
        "token_disagreement": token_disagreement,
        "token_counts_unverified": certificate.token_doubt.is_some_and(|doubt| doubt.is_unverified),
        "thresholds": {
            "degraded": thresholds.degraded,
            "invalid": thresholds.invalid,
            "missed": thresholds.missed,
            "busy": thresholds.busy,
            "failed": thresholds.failed,
            "mostly_failed": thresholds.mostly_failed,
        },
        "host": certificate.host.json(),
        "self_test": certificate.self_test.as_ref().map(self_test),
    })
}

fn finding(finding: &CertFinding) -> Value {
    json!({
        "verdict": finding.verdict.to_string(),
        "metric": finding.metric.map(|metric| metric.name()),
        "what": finding.what,
        "remedy": finding.remedy,
    })
}

fn bound(certificate: &Certificate, bound: &ErrorBound) -> Value {
    let doubt = certificate.token_doubt(bound.metric);
    json!({
        "count": bound.count,
        "mean_error": bound.mean_error,
        "p99_error": bound.p99_error,
        "source": bound.source.name(),
        "reference": bound.reference,
        "relative_to_p50": bound.relative_to_p50,
        "unknown": bound.unknown,
        "token_disagreement": doubt.and_then(|doubt| doubt.disagreement),
        "token_counts_unverified": doubt.is_some_and(|doubt| doubt.is_unverified),
    })
}

fn self_test(test: &SelfTest) -> Value {
    json!({
        "requests": test.requests,
        "matched": test.matched,
        "unmatched_requests": test.unmatched_requests,
        "unmatched_truth": test.unmatched_truth,
        "chunks_differ": test.chunks_differ,
        "ttfc": errors(test.ttfc),
        "ttfc_from_intended": errors(test.ttfc_from_intended),
        "tbc": errors(test.tbc),
        "tpot": errors(test.tpot),
        "end_to_end_latency": errors(test.end_to_end),
        "e2e_from_intended": errors(test.end_to_end_from_intended),
        "dispatch": errors(test.dispatch),
    })
}

fn errors(errors: Option<ErrorDistribution>) -> Value {
    match errors {
        None => Value::Null,
        Some(errors) => json!({
            "count": errors.count,
            "mean_abs": errors.mean_abs,
            "p50": errors.p50,
            "p99": errors.p99,
            "max": errors.max,
        }),
    }
}

#[cfg(test)]
mod tests {
    use veeksha_definitions::Metric;

    use super::*;

    /// A certified metric that the self-test does not compare would silently keep its estimate.
    #[test]
    fn self_test_has_the_errors_of_every_certified_metric() {
        let errors = Some(ErrorDistribution {
            count: 1,
            p50: 1e-6,
            p99: 1e-6,
            p99_upper: 1e-6,
            mean_abs: 1e-6,
            max: 1e-6,
        });
        let test = SelfTest {
            ttfc: errors,
            ttfc_from_intended: errors,
            tbc: errors,
            tpot: errors,
            end_to_end: errors,
            end_to_end_from_intended: errors,
            ..SelfTest::default()
        };
        let written = self_test(&test);
        for metric in Metric::certified() {
            assert!(test.errors_of(metric).is_some(), "{metric}");
            assert!(written[metric.name()].is_object(), "{metric}");
        }
    }
}
