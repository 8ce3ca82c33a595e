//! Comparison as a self-contained HTML file.

use std::fmt::Write;

use crate::comparison::SideLabels;
use crate::comparison::{ComparedSide, Comparison};
use crate::fail_if::{Decision, FailOutcome};
use crate::forest::forests;
use crate::markup::escaped;
use crate::row::ComparisonRow;
use crate::table::{ComparisonTable, TableRow, setting_text};
use crate::verdict::DifferenceVerdict;

const STYLE: &str = include_str!("page.css");

impl Comparison {
    /// Returns `comparison.html`: no script, no network; light and dark.
    pub fn html(&self, decision: Option<&Decision>) -> String {
        let others: Vec<&str> = self
            .candidates
            .iter()
            .map(|candidate| candidate.side.label.as_str())
            .collect();
        let title = format!("{} against {}", others.join(", "), self.baseline.label);
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{0}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
            escaped(&title)
        );
        for (place, (candidate, table)) in self.candidates.iter().zip(self.tables()).enumerate() {
            let of = decision.and_then(|decision| decision.candidates.get(place).map(|of| (decision, of)));
            page += "<section>\n";
            if table.title != title {
                let _ = writeln!(page, "<h2>{}</h2>", escaped(&table.title));
            }
            let _ = writeln!(
                page,
                "<p class=\"faint\">Baseline: {}. Candidate: {}.</p>",
                side(&candidate.baseline),
                side(&candidate.side)
            );
            page += &summary(candidate);
            if let Some((decision, of)) = of {
                let class = if of.outcome == FailOutcome::Passes {
                    "verdict"
                } else {
                    "verdict bad"
                };
                let _ = writeln!(
                    page,
                    "<p class=\"{class}\"><code>--fail-if {}</code> {}</p>",
                    escaped(&decision.expression),
                    match of.outcome {
                        FailOutcome::Passes => "passes",
                        FailOutcome::Fails => "fails",
                        FailOutcome::Undecided => "is undecided, which counts as a failure",
                    }
                );
                page += &list(&of.reasons);
            }
            page += &body(candidate, &table);
            page += &settings(candidate);
            if let Some(decisions) = &candidate.decisions {
                page += "<h3>Decisions of agents</h3>\n";
                page += &list(&decisions.lines);
            }
            if !candidate.remarks.is_empty() {
                page += "<h3>Remarks</h3>\n";
                page += &list(&candidate.remark_texts());
            }
            if !candidate.certificates.is_empty() {
                page += "<details><summary>Findings of the certificates for each run</summary>\n";
                page += &list(&candidate.certificates);
                page += "</details>\n";
            }
            page += "</section>\n";
        }
        page += &list(&self.remark_texts());
        let _ = writeln!(
            page,
            "<p class=\"faint\">Intervals contain the true change with {} confidence, each value by itself. If a side has several runs, errors are those of the \
             runs' values (Welch), and of shares at least those of as many independent requests. With one run on each side, and where runs agree exactly, errors are \
             those of a bootstrap of blocks in time ({} resamples, seed {}), which does not include the noise between runs. The change is candidate ÷ baseline − 1; \
             shares are subtracted.</p>",
            veeksha_stats::share(self.options.confidence),
            self.options.resamples,
            self.options.seed
        );
        page += "</body>\n</html>\n";
        page
    }
}

fn side(side: &SideLabels) -> String {
    let runs: Vec<String> = side
        .runs
        .iter()
        .filter(|run| **run != side.label)
        .map(|run| escaped(run))
        .collect();
    let mut html = format!("<strong>{}</strong>", escaped(&side.label));
    if !runs.is_empty() {
        let _ = write!(html, " ({})", runs.join(", "));
    }
    for scenario in &side.scenarios {
        let _ = write!(html, ", scenario {}", escaped(&scenario.to_string()));
    }
    html
}

/// Writes the rows that differ, worse first; the forest plot; and all rows without a difference.
fn body(candidate: &ComparedSide, table: &ComparisonTable) -> String {
    // Within a verdict the largest changes come first; metrics without a difference keep their
    // order.
    let size = |row: &ComparisonRow| match row.relative {
        Some(relative) if row.verdict.stands_out() => -relative.ln_1p().abs(),
        _ => 0.0,
    };
    let mut rows: Vec<(&ComparisonRow, &TableRow)> = candidate.rows.iter().zip(&table.rows).collect();
    rows.sort_by(|(one, _), (other, _)| {
        let by_verdict = one.verdict.rank().cmp(&other.verdict.rank());
        by_verdict.then(size(one).total_cmp(&size(other)))
    });
    let drawn: Vec<&ComparisonRow> = rows.iter().map(|(row, _)| *row).collect();
    let (seen, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(row, _)| row.verdict.stands_out());
    let mut html = String::new();
    if !seen.is_empty() {
        html += "<h3>Differences</h3>\n";
        html += &values_table(table, &seen);
    }
    let label = format!("{}: changes with their intervals", table.title);
    let plots = forests(&drawn, &label);
    if !plots.is_empty() {
        html += "<h3>Changes with their intervals</h3>\n";
        html += &plots;
    }
    if !others.is_empty() {
        let open = if seen.is_empty() { " open" } else { "" };
        let _ = writeln!(
            html,
            "<details{open}><summary>{} without a verdict of a difference</summary>",
            match others.len() {
                1 => "1 value".to_owned(),
                count => format!("{count} values"),
            }
        );
        html += &values_table(table, &others);
        html += "</details>\n";
    }
    html
}

/// Returns the first sentence of a candidate's section.
fn summary(candidate: &ComparedSide) -> String {
    if !candidate.obstacles.is_empty() {
        let list = list(&candidate.obstacles);
        return format!(
            "<p class=\"verdict bad\">Not comparable. The values are shown nevertheless.</p>\n{list}"
        );
    }
    let count = |verdict| candidate.rows.iter().filter(|row| row.verdict == verdict).count();
    let mut unsure = match count(DifferenceVerdict::TooFewRuns) {
        0 => String::new(),
        unsure => format!("{unsure} undecided for lack of runs, "),
    };
    match count(DifferenceVerdict::SurvivorsOnly) {
        0 => {}
        survivors => unsure += &format!("{survivors} known for the survivors only, "),
    }
    match count(DifferenceVerdict::CacheStatesDiffer) {
        0 => {}
        caches => unsure += &format!("{caches} undecided because the cache states differ, "),
    }
    format!(
        "<p class=\"verdict\">{} worse, {} better, {unsure}{} without a significant difference, of {} values.</p>\n",
        count(DifferenceVerdict::Worse),
        count(DifferenceVerdict::Better),
        count(DifferenceVerdict::NoDifference),
        candidate.rows.len()
    )
}

/// Writes the metrics; the verdict is next to the name, so that it is visible on a narrow screen
/// too.
fn values_table(table: &ComparisonTable, rows: &[(&ComparisonRow, &TableRow)]) -> String {
    let verdict_last = table.columns.len().saturating_sub(1);
    let mut html = String::from(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"values\"><table>\n<thead><tr><th scope=\"col\">value</th><th scope=\"col\">verdict</th>",
    );
    for column in &table.columns[..verdict_last] {
        let _ = write!(
            html,
            "<th scope=\"col\" class=\"number\">{}</th>",
            escaped(column)
        );
    }
    html += "</tr></thead>\n<tbody>\n";
    for (_, row) in rows {
        html += &value_row(row);
    }
    html += "</tbody></table></div>\n";
    html
}

fn value_row(row: &TableRow) -> String {
    let mut html = format!(
        "<tr class=\"{}\"><th scope=\"row\">{}</th>",
        row.verdict.name(),
        escaped(&row.name)
    );
    let note = row.note.as_deref().map_or_else(String::new, |note| {
        format!("<span class=\"note\">{}</span>", escaped(note))
    });
    let _ = write!(
        html,
        "<td class=\"verdict\">{}{note}</td>",
        escaped(&row.verdict.to_string())
    );
    let values = row.cells.len().saturating_sub(1);
    for cell in &row.cells[..values] {
        let _ = write!(html, "<td class=\"number\">{}</td>", breakable(cell));
    }
    html += "</tr>\n";
    html
}

/// Formats a cell with line breaks allowed only before parentheses, before a spread and within an
/// interval.
fn breakable(cell: &str) -> String {
    let whole = escaped(cell).replace(' ', "\u{a0}");
    ["(", "±", "…"].iter().fold(whole, |text, sign| {
        text.replace(&format!("\u{a0}{sign}"), &format!(" {sign}"))
    })
}

fn settings(candidate: &ComparedSide) -> String {
    if candidate.settings.is_empty() {
        return String::new();
    }
    let items: Vec<String> = candidate.settings.iter().map(setting_text).collect();
    format!(
        "<h3>Settings that differ ({} → {})</h3>\n{}",
        escaped(&candidate.baseline.label),
        escaped(&candidate.side.label),
        list(&items)
    )
}

fn list(items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let items: String = items
        .iter()
        .map(|item| format!("<li>{}</li>\n", escaped(item)))
        .collect();
    format!("<ul>\n{items}</ul>\n")
}
