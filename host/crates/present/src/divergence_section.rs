//! Section of the closing table on decisions that differ from those of a recorded run.

use veeksha_decisions::{Divergence, DivergenceSummary};
use veeksha_model::printable;
use veeksha_report::{RowMark, Section, SummaryRow, share};

use crate::rows::row;

/// Returns the section *Decisions*.
pub(crate) fn section(summary: &DivergenceSummary) -> Section {
    let of = summary.compared().max(1) as f64;
    let count = |name: &str, count: u64| row(name, vec![count.to_string(), share(count as f64 / of)]);
    let mut rows = vec![count(
        "Sessions with the same decisions",
        summary.identical + summary.identical_so_far,
    )];
    if summary.identical_so_far > 0 {
        rows.push(count("  as far as both runs recorded", summary.identical_so_far));
    }
    rows.push(SummaryRow {
        mark: if summary.diverged > 0 {
            RowMark::Warning
        } else {
            RowMark::Plain
        },
        ..count("Sessions that diverged", summary.diverged)
    });
    for (field, sessions) in &summary.by_field {
        rows.push(count(&format!("  first in {}", field.name()), *sessions));
    }
    for (name, sessions) in [
        ("Sessions only in the recorded run", summary.only_recorded),
        ("Sessions only in this run", summary.only_other),
    ] {
        if sessions > 0 {
            rows.push(row(name, vec![sessions.to_string()]));
        }
    }
    let examples = summary.examples.iter().map(|(session, divergence)| {
        let Divergence {
            turn,
            depth,
            field,
            values: [one, other],
        } = divergence;
        let note = format!("{} was {one}, is {other}", field.name());
        SummaryRow {
            note: Some(printable(&note)),
            ..row(
                &format!("Session {session}, turn {turn}, depth {depth}"),
                Vec::new(),
            )
        }
    });
    rows.extend(examples);
    Section {
        title: "Decisions of agents (against the recorded run)".into(),
        columns: ["sessions", "share"].map(String::from).to_vec(),
        rows,
    }
}
