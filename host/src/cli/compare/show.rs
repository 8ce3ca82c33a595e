//! A comparison on the terminal.

use std::io::IsTerminal;

use veeksha_compare::{Comparison, ComparisonTable, DifferenceVerdict, SideLabels, TableRow};
use veeksha_metrics::Catalogue;
use veeksha_model::printable;
use veeksha_report::{ColorMode, RowMark, Section, SummaryRow, summary_table};

use crate::cli::args::CompareArgs;
use veeksha_present::terminal;

/// Width of the table where the width of the terminal is unknown.
const WIDTH: usize = 140;

/// Metrics that are shown by default.
const SHOWN: [&str; 10] = [
    "ttfc",
    "ttfc_from_intended",
    "tbc",
    "tpot",
    "end_to_end_latency",
    "e2e_from_intended",
    "requests_per_second",
    "output_tokens_per_second",
    "error_rate",
    "goodput",
];

/// Prints tables for metrics, and lines for texts that must not be truncated.
pub(super) fn show(comparison: &Comparison, args: &CompareArgs) {
    for (table, candidate) in comparison.tables().iter().zip(&comparison.candidates) {
        let compared = [
            side_line("baseline", &candidate.baseline),
            side_line("candidate", &candidate.side),
        ];
        match &candidate.cell {
            Some(cell) => lines(&format!("Compared: {cell}"), &compared),
            None => lines("Compared", &compared),
        }
        lines("Not comparable", &table.obstacles);
        if !table.rows.is_empty() {
            let section = section_of(table, args);
            let width = width(&section);
            terminal::out(summary_table(&[section], width, ColorMode::from_stdout()));
        }
        lines("Different settings", &table.settings);
        lines("Decisions of agents", &table.decisions);
        lines("Remarks", &table.remarks);
    }
    lines("All cells", &comparison.remark_texts());
}

/// Returns the width of the table: that of `COLUMNS`, but outside of a terminal at least the full
/// width, because a log or a file cannot be widened and must not be truncated.
fn width(section: &Section) -> usize {
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    let width = columns.filter(|columns| *columns > 0).unwrap_or(WIDTH);
    if std::io::stdout().is_terminal() {
        width
    } else {
        width.max(whole_width(section))
    }
}

/// Returns the width at which no metric name is truncated.
fn whole_width(section: &Section) -> usize {
    let length = |text: &String| text.chars().count();
    let tabled = || section.rows.iter().filter(|row| !row.cells.is_empty());
    let names = tabled().map(|row| length(&row.name)).max().unwrap_or(0);
    let lines = || tabled().map(|row| &row.cells).chain([&section.columns]);
    let cells = lines().map(Vec::len).max().unwrap_or(0);
    let widest = |cell: usize| lines().filter_map(|cells| cells.get(cell)).map(length).max();
    let widths: usize = (0..cells).map(|cell| widest(cell).unwrap_or(0) + 2).sum();
    names.max(length(&section.title)) + widths + 2
}

/// Prints a title and one line per text, at full length. The texts contain names of folders and
/// plugins.
fn lines(title: &str, texts: &[String]) {
    if texts.is_empty() {
        return;
    }
    terminal::out(printable(title));
    texts
        .iter()
        .for_each(|text| terminal::out(format!("  {}", printable(text))));
    terminal::out("");
}

/// `baseline: v0.11 (3 runs: one, two, three), scenario nightly: warm cache (tags: chat)`.
fn side_line(role: &str, side: &SideLabels) -> String {
    let mut line = match side.runs.as_slice() {
        [] => format!("{role}: {}", side.label),
        [run] if *run == side.label => format!("{role}: {run}"),
        [run] => format!("{role}: {} (run {run})", side.label),
        runs => format!(
            "{role}: {} ({} runs: {})",
            side.label,
            runs.len(),
            runs.join(", ")
        ),
    };
    for scenario in &side.scenarios {
        line += &format!(", scenario {scenario}");
    }
    line
}

/// Returns true if a row is shown by default.
fn stands_out(row: &TableRow, built_in: &Catalogue) -> bool {
    let name = row.name.split(' ').next().unwrap_or_default();
    let known = built_in.get(name).is_some() || built_in.run_metric(name).is_some();
    let judged = matches!(
        row.verdict,
        DifferenceVerdict::Better
            | DifferenceVerdict::Worse
            | DifferenceVerdict::Differs
            | DifferenceVerdict::TooFewRuns
            | DifferenceVerdict::SurvivorsOnly
            | DifferenceVerdict::CacheStatesDiffer
    );
    judged || SHOWN.contains(&name) || !known
}

/// Returns the table with fixed headings, because folder names may be too long for columns.
fn section_of(table: &ComparisonTable, args: &CompareArgs) -> Section {
    let built_in = Catalogue::built_in();
    let everything = args.all || !args.metrics.is_empty();
    let (shown, left): (Vec<&TableRow>, Vec<&TableRow>) = table
        .rows
        .iter()
        .partition(|row| everything || stands_out(row, &built_in));
    let mut rows: Vec<SummaryRow> = shown
        .into_iter()
        .map(|row| SummaryRow {
            name: row.name.clone(),
            cells: row.cells.clone(),
            note: row.note.clone(),
            mark: match row.verdict {
                DifferenceVerdict::Worse => RowMark::Bad,
                DifferenceVerdict::Better => RowMark::Good,
                DifferenceVerdict::Differs
                | DifferenceVerdict::TooFewRuns
                | DifferenceVerdict::SurvivorsOnly
                | DifferenceVerdict::CacheStatesDiffer => RowMark::Warning,
                _ => RowMark::Plain,
            },
        })
        .collect();
    if !left.is_empty() {
        let further = veeksha_stats::counted(left.len() as u64, "further value");
        rows.push(SummaryRow {
            name: format!("{further} without a difference: --all shows them"),
            ..SummaryRow::default()
        });
    }
    let mut columns = table.columns.clone();
    columns.splice(..2, ["baseline".to_owned(), "candidate".to_owned()]);
    Section {
        title: "candidate against baseline".to_owned(),
        columns,
        rows,
    }
}
