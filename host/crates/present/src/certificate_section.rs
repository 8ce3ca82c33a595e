//! The certificate on the terminal.

use veeksha_certificate::{Certificate, ErrorSource, Verdict};
use veeksha_metrics::Metric;
use veeksha_report::{RowMark, Section, SummaryRow, duration, share};

/// Returns the error bounds of the metrics, followed by the findings and the advice.
pub(crate) fn section(certificate: &Certificate) -> Section {
    let errors = certificate.bounds.iter().map(|bound| {
        let of_p50 = bound.relative_to_p50.map_or("-".to_owned(), share);
        let cells = vec![duration(bound.mean_error), duration(bound.p99_error), of_p50];
        let tested = (bound.source == ErrorSource::SelfTest).then(|| "measured by the self-test".to_owned());
        let doubt = certificate
            .token_doubt(bound.metric)
            .map(|doubt| format!("of times only: {doubt}"));
        let lack = bound.lack_of_samples();
        let notes: Vec<String> = lack.into_iter().chain(tested).chain(doubt).collect();
        SummaryRow {
            name: bound.metric.title().into(),
            cells,
            mark: mark(verdict_of(certificate, bound.metric)),
            note: (!notes.is_empty()).then(|| notes.join("; ")),
        }
    });
    let findings = certificate
        .findings
        .iter()
        // Findings that only repeat the table above are omitted.
        .filter(|finding| finding.metric.is_none() || finding.verdict != Verdict::Valid)
        .map(|finding| sentence(finding.what.clone(), mark(finding.verdict)));
    // Several findings often have one remedy.
    let mut remedies: Vec<&String> = Vec::new();
    for remedy in certificate
        .findings
        .iter()
        .filter_map(|finding| finding.remedy.as_ref())
    {
        if !remedies.contains(&remedy) {
            remedies.push(remedy);
        }
    }
    let advice = remedies
        .into_iter()
        .map(|remedy| sentence(format!("fix: {remedy}"), RowMark::Plain));
    Section {
        title: title(certificate),
        columns: if certificate.bounds.is_empty() {
            Vec::new()
        } else {
            ["mean error", "P99 error", "mean / P50"]
                .map(String::from)
                .to_vec()
        },
        rows: errors.chain(findings).chain(advice).collect(),
    }
}

/// Returns the verdict, and the metrics that it covers if it does not cover all.
fn title(certificate: &Certificate) -> String {
    let verdict = certificate.verdict;
    match certificate.coverage() {
        Some(coverage) => format!("Certificate: {verdict} ({coverage})"),
        None => format!("Certificate: {verdict}"),
    }
}

fn sentence(name: String, mark: RowMark) -> SummaryRow {
    SummaryRow {
        name,
        mark,
        ..SummaryRow::default()
    }
}

fn verdict_of(certificate: &Certificate, metric: Metric) -> Verdict {
    let of_metric = certificate
        .findings
        .iter()
        .filter(|finding| finding.metric == Some(metric));
    of_metric.map(|finding| finding.verdict).max().unwrap_or_default()
}

fn mark(verdict: Verdict) -> RowMark {
    match verdict {
        Verdict::Valid => RowMark::Plain,
        Verdict::Degraded => RowMark::Warning,
        Verdict::Invalid => RowMark::Bad,
    }
}
