//! Overview of a sweep for the terminal: a line for each run.

use veeksha_report::{RowMark, Section, SummaryRow, duration, number, share};

use crate::failed_checks::failed_names;
use crate::key_metrics::KeyMetrics;
use crate::outcome::CellOutcome;
use crate::sweep::Sweep;
use crate::sweep_run::{SweepRun, setting_paths};

/// Maximum number of settings with columns; further ones follow in the last column.
const MAX_COLUMNS: usize = 4;
/// Maximum number of characters of a setting's value.
const WIDEST: usize = 20;
/// Last components of a path that are too generic without the preceding one.
const GENERIC: [&str; 8] = [
    "value", "values", "type", "min", "max", "name", "path", "interval",
];

impl Sweep {
    /// Returns a section with a row for each finished run and a sentence about unfinished ones.
    pub fn table(&self) -> Section {
        let paths = setting_paths(self.cells());
        let names = short_names(&paths);
        let (shown, rest) = names.split_at(names.len().min(MAX_COLUMNS));
        let metrics = ["ttfc P50", "ttfc P99", "tpot P50", "e2e P99", "tok/s", "goodput"];
        let columns = shown
            .iter()
            .map(String::as_str)
            .chain(metrics)
            .map(str::to_owned)
            .collect();
        let mut rows: Vec<SummaryRow> = self
            .cells()
            .iter()
            .filter_map(|cell| Some(row(cell, cell.outcome.as_ref()?, &paths, rest)))
            .collect();
        let left = self.cells().iter().filter(|cell| cell.outcome.is_none()).count();
        if left > 0 {
            rows.push(SummaryRow {
                name: match left {
                    1 => format!("1 of {} runs did not finish.", self.cells().len()),
                    _ => format!("{left} of {} runs did not finish.", self.cells().len()),
                },
                mark: RowMark::Warning,
                ..SummaryRow::default()
            });
        }
        Section {
            title: "Sweep".to_owned(),
            columns,
            rows,
        }
    }
}

/// Maximum number of runs that a plan lists.
const MAX_ROWS: usize = 100;
/// Maximum number of values of a setting that a plan lists.
const MAX_VALUES: usize = 12;

impl Sweep {
    /// Returns the settings in which the runs differ: the path of each, with its values in order of
    /// appearance.
    pub fn varied(&self) -> Vec<(String, Vec<String>)> {
        let paths = setting_paths(self.cells()).into_iter();
        paths
            .map(|path| {
                let mut values: Vec<String> = Vec::new();
                let of_cells = self.cells().iter().filter_map(|cell| value(cell, path));
                for value in of_cells {
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                if values.len() > MAX_VALUES {
                    let left = values.len() - MAX_VALUES;
                    values.truncate(MAX_VALUES);
                    values.push(format!("and {left} more"));
                }
                (path.to_owned(), values)
            })
            .collect()
    }

    /// Returns a section with a row for each planned run: its settings, and its expected duration
    /// from `takes`.
    pub fn plan_table(&self, takes: &[String]) -> Section {
        let paths = setting_paths(self.cells());
        let names = short_names(&paths);
        let mut rows: Vec<SummaryRow> = self
            .cells()
            .iter()
            .zip(takes)
            .take(MAX_ROWS)
            .map(|(cell, takes)| SummaryRow {
                name: format!("run {}", cell.number),
                cells: paths
                    .iter()
                    .map(|path| value(cell, path).unwrap_or_else(|| "-".to_owned()))
                    .chain([takes.clone()])
                    .collect(),
                ..SummaryRow::default()
            })
            .collect();
        let left = self.cells().len().saturating_sub(MAX_ROWS);
        if left > 0 {
            rows.push(SummaryRow {
                name: format!("and {left} more"),
                ..SummaryRow::default()
            });
        }
        Section {
            title: "Its runs".to_owned(),
            columns: names.into_iter().chain(["takes".to_owned()]).collect(),
            rows,
        }
    }
}

/// Formats the value of a setting as a cell.
fn value(cell: &SweepRun, path: &str) -> Option<String> {
    let setting = cell.settings.iter().find(|setting| setting.path == path);
    setting.map(|setting| shortened(&setting.text()))
}

/// Builds a row; `rest` are the names of the settings beyond the columns.
fn row(cell: &SweepRun, outcome: &CellOutcome, paths: &[&str], rest: &[String]) -> SummaryRow {
    let value = |path: &str| value(cell, path);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let metrics = KeyMetrics::of(outcome);
    let (shown, further) = paths.split_at(paths.len() - rest.len());
    let cells = shown
        .iter()
        .map(|path| value(path))
        .chain([
            metrics.ttfc_p50.map(duration),
            metrics.ttfc_p99.map(duration),
            metrics.tpot_p50.map(duration),
            metrics.end_to_end_latency_p99.map(duration),
            metrics.output_tokens_per_second.map(number),
            metrics.goodput.map(share),
        ])
        .map(or_dash)
        .collect();
    let settings = further
        .iter()
        .zip(rest)
        .filter_map(|(path, name)| Some(format!("{name} {}", value(path)?)));
    let verdict = outcome.verdict.clone().filter(|verdict| verdict != "VALID");
    let failure = outcome.failure.clone().or_else(|| match outcome.exit_code {
        veeksha_exit::DONE => None,
        code => Some(format!("exit code {code}")),
    });
    let is_unhealthy = failed_names(outcome).is_some_and(|failed| !failed.is_empty());
    let notes: Vec<String> = settings.chain(verdict.clone()).chain(failure).collect();
    SummaryRow {
        name: format!("run {}", cell.number),
        cells,
        note: (!notes.is_empty()).then(|| notes.join("; ")),
        mark: match outcome.exit_code {
            veeksha_exit::DONE if verdict.is_some() || is_unhealthy => RowMark::Warning,
            veeksha_exit::DONE => RowMark::Plain,
            _ => RowMark::Bad,
        },
    }
}

/// Returns the shortest unambiguous ends of paths, extended where the last component is generic.
fn short_names(paths: &[&str]) -> Vec<String> {
    paths
        .iter()
        .map(|path| {
            let last = path.rsplit('.').next().unwrap_or(path);
            let enough = if GENERIC.contains(&last) { 2 } else { 1 };
            (enough..)
                .map(|words| end(path, words))
                .find(|name| {
                    name == path
                        || paths
                            .iter()
                            .filter(|other| end(other, name.split('.').count()) == *name)
                            .count()
                            == 1
                })
                .map_or_else(|| (*path).to_owned(), readable)
        })
        .collect()
}

/// Removes generic suffixes: `body_length_generator.value` becomes the body length.
fn readable(name: &str) -> String {
    let name = name.strip_suffix(".value").unwrap_or(name);
    name.split('.')
        .map(|word| word.strip_suffix("_generator").unwrap_or(word))
        .collect::<Vec<_>>()
        .join(".")
}

/// Returns the last components of a path.
fn end(path: &str, words: usize) -> &str {
    match path.rmatch_indices('.').nth(words - 1) {
        Some((at, _)) => &path[at + 1..],
        None => path,
    }
}

fn shortened(text: &str) -> String {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if line.chars().count() <= WIDEST {
        return line;
    }
    let mut short: String = line.chars().take(WIDEST - 1).collect();
    short.push('…');
    short
}
