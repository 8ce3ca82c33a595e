//! Tables of inference-perf's summary, with one stage.

use crate::sample::ToolSample;
use crate::table::{BoxTable, grouped};

pub(super) fn tenth(value: f64) -> String {
    // `{:0.1f}`, without thousands separators.
    grouped(value, 1).replace(',', "")
}

pub(super) fn one_row(title: &str, headings: &[&str], cells: Vec<String>) -> String {
    let mut table = BoxTable::new(title, headings);
    table.row(cells);
    table.draw()
}

/// Draws [`draw_statistics`] of samples in seconds.
pub(super) fn draw_statistics_in_milliseconds(title: &str, columns: &[(&str, &ToolSample)]) -> String {
    draw_statistics(title, columns, 1000.0)
}

/// Draws a table with mean, median and P90 of each column, multiplied by `scale`.
pub(super) fn draw_statistics(title: &str, columns: &[(&str, &ToolSample)], scale: f64) -> String {
    let mut headings = vec!["Stage".to_owned()];
    let mut cells = vec!["0".to_owned()];
    for (name, sample) in columns {
        let stats = [
            ("Mean", sample.mean()),
            ("Med", sample.percentile(50.0)),
            ("P90", sample.percentile(90.0)),
        ];
        for (stat, value) in stats {
            headings.push(format!("{name} {stat}"));
            cells.push(value.map_or_else(|| "-".to_owned(), |value| tenth(value * scale)));
        }
    }
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    one_row(title, &headings, cells)
}
