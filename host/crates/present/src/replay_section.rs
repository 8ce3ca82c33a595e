//! Section of the closing table on the fidelity of a trace replay.

use veeksha_metrics::{FidelityReport, Lengths};
use veeksha_report::{RowMark, Section, SummaryRow, duration, number, share};

/// Deviation of the measured from the ideal hit rate above which the row is marked; cache blocks
/// cost a few percent.
const HITS_MISSED: f64 = 0.05;

/// Returns the section *Replay*.
pub(crate) fn section(report: &FidelityReport) -> Section {
    let mut rows = Vec::new();
    if let Some(arrivals) = &report.arrivals {
        let late = &arrivals.lateness;
        rows.push(row(
            "Arrival delay after the recorded time",
            [late.p50, late.p99, late.max].map(duration).to_vec(),
        ));
    }
    if let Some(slack) = &report.edges.slack {
        rows.push(row(
            "Wait beyond the recorded dependencies",
            [slack.p50, slack.p99, slack.max].map(duration).to_vec(),
        ));
    }
    for (name, lengths) in [
        ("Prompts with the recorded length", &report.prompt_tokens),
        (
            "The same, as counted by the server",
            &report.prompt_tokens_by_server,
        ),
        ("Answers with the recorded length", &report.output_tokens),
    ] {
        rows.extend(lengths.as_ref().map(|lengths| of_lengths(name, lengths)));
    }
    rows.extend(hits(report));
    Section {
        title: "Replay (recorded and achieved)".into(),
        columns: ["P50", "P99", "max"].map(String::from).to_vec(),
        rows,
    }
}

fn row(name: &str, cells: Vec<String>) -> SummaryRow {
    SummaryRow {
        name: name.into(),
        cells,
        ..SummaryRow::default()
    }
}

fn of_lengths(name: &str, lengths: &Lengths) -> SummaryRow {
    let mean = lengths.difference.mean;
    let off = lengths.exact_share < 1.0;
    SummaryRow {
        note: off.then(|| format!("{}{} tokens on average", sign(mean), number(mean.abs()))),
        ..row(name, vec![share(lengths.exact_share)])
    }
}

fn sign(value: f64) -> &'static str {
    if value < 0.0 { "−" } else { "+" }
}

fn hits(report: &FidelityReport) -> Vec<SummaryRow> {
    let hits = &report.prefix_hits;
    // If some requests lack the count of cached tokens, only the others are compared.
    let Some(ideal) = hits.ideal_rate_of_reporting().or(hits.ideal_rate()) else {
        return Vec::new();
    };
    let mut rows = vec![row("Prompt tokens in an ideal prefix cache", vec![share(ideal)])];
    match (hits.measured_rate(), hits.ideal_rate_of_reporting()) {
        (Some(measured), Some(ideal)) => {
            let (missed, leaked) = (measured < ideal - HITS_MISSED, measured > ideal + HITS_MISSED);
            let mut notes = Vec::new();
            if hits.reporting < hits.requests {
                notes.push(format!(
                    "reported by {} of {} requests",
                    hits.reporting, hits.requests
                ));
            }
            if missed {
                notes.push("fewer than these requests have in common".to_owned());
            }
            if leaked {
                notes.push(
                    "more than these requests have in common: was its cache warm, or are answers kept in it?"
                        .to_owned(),
                );
            }
            rows.push(SummaryRow {
                mark: if missed || leaked {
                    RowMark::Warning
                } else {
                    RowMark::Plain
                },
                note: (!notes.is_empty()).then(|| notes.join("; ")),
                ..row("Prompt tokens cached by the server", vec![share(measured)])
            });
        }
        _ => rows.push(row(
            "Prompt tokens cached by the server",
            vec!["not reported".into()],
        )),
    }
    rows
}
