//! The overview of a sweep for the terminal: a line for each run.

use veeksha_report::{Mark, Row, Section, duration, number, share};

use crate::figures::KeyFigures;
use crate::health;
use crate::outcome::CellOutcome;
use crate::sweep::{Cell, Sweep, setting_paths};

/// Settings that have columns of their own; further ones stand behind the row.
const MOST_COLUMNS: usize = 4;
/// A setting's value is cut to so many characters.
const WIDEST: usize = 20;
/// Last words of a path that say little without the one before.
const GENERIC: [&str; 8] = [
    "value", "values", "type", "min", "max", "name", "path", "interval",
];

impl Sweep {
    /// One section, with a row for each run that has ended and a sentence for those that were not made.
    pub fn table(&self) -> Section {
        let paths = setting_paths(self.cells());
        let names = short_names(&paths);
        let (shown, rest) = names.split_at(names.len().min(MOST_COLUMNS));
        let figures = ["ttfc P50", "ttfc P99", "tpot P50", "e2e P99", "tok/s", "goodput"];
        let columns = shown
            .iter()
            .map(String::as_str)
            .chain(figures)
            .map(str::to_owned)
            .collect();
        let mut rows: Vec<Row> = self
            .cells()
            .iter()
            .filter_map(|cell| Some(row(cell, cell.outcome.as_ref()?, &paths, rest)))
            .collect();
        let left = self.cells().iter().filter(|cell| cell.outcome.is_none()).count();
        if left > 0 {
            rows.push(Row {
                name: match left {
                    1 => format!("1 of {} runs was not made.", self.cells().len()),
                    _ => format!("{left} of {} runs were not made.", self.cells().len()),
                },
                mark: Mark::Warning,
                ..Row::default()
            });
        }
        Section {
            title: "Sweep".to_owned(),
            columns,
            rows,
        }
    }
}

/// Runs that a plan lists one by one.
const MOST_ROWS: usize = 100;
/// Values of a setting that a plan names.
const MOST_VALUES: usize = 12;

impl Sweep {
    /// In what the runs differ: the path of each setting, with its values in the order in which they come.
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
                if values.len() > MOST_VALUES {
                    let left = values.len() - MOST_VALUES;
                    values.truncate(MOST_VALUES);
                    values.push(format!("and {left} more"));
                }
                (path.to_owned(), values)
            })
            .collect()
    }

    /// One section, with a row for each run that is planned: its settings, and how long it `takes`.
    pub fn plan_table(&self, takes: &[String]) -> Section {
        let paths = setting_paths(self.cells());
        let names = short_names(&paths);
        let mut rows: Vec<Row> = self
            .cells()
            .iter()
            .zip(takes)
            .take(MOST_ROWS)
            .map(|(cell, takes)| Row {
                name: format!("run {}", cell.number),
                cells: paths
                    .iter()
                    .map(|path| value(cell, path).unwrap_or_else(|| "-".to_owned()))
                    .chain([takes.clone()])
                    .collect(),
                ..Row::default()
            })
            .collect();
        let left = self.cells().len().saturating_sub(MOST_ROWS);
        if left > 0 {
            rows.push(Row {
                name: format!("and {left} more"),
                ..Row::default()
            });
        }
        Section {
            title: "Its runs".to_owned(),
            columns: names.into_iter().chain(["takes".to_owned()]).collect(),
            rows,
        }
    }
}

/// The value of a setting as a cell of a table.
fn value(cell: &Cell, path: &str) -> Option<String> {
    let setting = cell.settings.iter().find(|setting| setting.path == path);
    setting.map(|setting| shortened(&setting.text()))
}

/// `rest` are the names of the settings beyond the columns.
fn row(cell: &Cell, outcome: &CellOutcome, paths: &[&str], rest: &[String]) -> Row {
    let value = |path: &str| value(cell, path);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let figures = KeyFigures::of(outcome);
    let (shown, further) = paths.split_at(paths.len() - rest.len());
    let cells = shown
        .iter()
        .map(|path| value(path))
        .chain([
            figures.ttfc_p50.map(duration),
            figures.ttfc_p99.map(duration),
            figures.tpot_p50.map(duration),
            figures.end_to_end_latency_p99.map(duration),
            figures.output_tokens_per_second.map(number),
            figures.goodput.map(share),
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
    let is_unhealthy = health::failed(outcome).is_some_and(|failed| !failed.is_empty());
    let notes: Vec<String> = settings.chain(verdict.clone()).chain(failure).collect();
    Row {
        name: format!("run {}", cell.number),
        cells,
        note: (!notes.is_empty()).then(|| notes.join("; ")),
        mark: match outcome.exit_code {
            veeksha_exit::DONE if verdict.is_some() || is_unhealthy => Mark::Warning,
            veeksha_exit::DONE => Mark::Plain,
            _ => Mark::Bad,
        },
    }
}

/// The shortest ends of paths that tell them apart, with the word before where the last says little.
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

/// `body_length_generator.value` is the body length.
fn readable(name: &str) -> String {
    let name = name.strip_suffix(".value").unwrap_or(name);
    name.split('.')
        .map(|word| word.strip_suffix("_generator").unwrap_or(word))
        .collect::<Vec<_>>()
        .join(".")
}

/// The last words of a path.
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
