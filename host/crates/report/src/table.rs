//! The summary at the end of a run as text.

use std::env;
use std::io::IsTerminal;
use std::ops::Range;

use veeksha_model::printable;

/// A titled part of the summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// The rows, in order.
    pub columns: Vec<String>,
    /// Its rows, in order.
    pub rows: Vec<SummaryRow>,
}

/// A row of a section, or, without cells, a sentence that is wrapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryRow {
    /// The label at the left.
    pub name: String,
    /// Values, right-aligned in their columns.
    pub cells: Vec<String>,
    /// A remark after the cells, for example `P99 of 12 samples`.
    pub note: Option<String>,
    /// Highlighting of the row.
    pub mark: RowMark,
}

/// Highlighting of a row. It never depends on color alone: the sign is also printed without color.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowMark {
    /// No highlighting.
    #[default]
    Plain,
    /// Good: `✓`, green.
    Good,
    /// To be read with care: `!`, yellow.
    Warning,
    /// Bad: `✗`, red.
    Bad,
}

/// Use of color in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorMode {
    /// With ANSI escape sequences.
    Ansi,
    /// Without color.
    Plain,
}

impl ColorMode {
    /// Returns `Ansi` if standard output is a terminal and `NO_COLOR` (<https://no-color.org>) is
    /// not set.
    pub fn from_stdout() -> Self {
        let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if std::io::stdout().is_terminal() && !refused {
            ColorMode::Ansi
        } else {
            ColorMode::Plain
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self {
            ColorMode::Ansi if !text.is_empty() && !code.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}

impl RowMark {
    fn sign(self) -> &'static str {
        match self {
            RowMark::Plain => " ",
            RowMark::Good => "✓",
            RowMark::Warning => "!",
            RowMark::Bad => "✗",
        }
    }

    fn code(self) -> &'static str {
        match self {
            RowMark::Plain => "",
            RowMark::Good => "32",
            RowMark::Warning => "33",
            RowMark::Bad => "31",
        }
    }
}

/// Names are truncated to no fewer characters than this.
const NARROWEST_NAME: usize = 12;

/// On narrower terminals columns are not aligned: lines exceed the width.
const NARROWEST_TERMINAL: usize = 40;

/// Formats the sections below each other. A line of more than `width` characters has its name
/// truncated (`…`), or, if it is marked good or bad, its name put above its cells; its note is put
/// on separate lines. A row without cells is a sentence: it is wrapped, and does not widen the
/// column of names. A section with more columns than fit is split into several blocks, each with
/// the names; notes are in the last one.
pub fn summary_table(sections: &[Section], width: usize, color: ColorMode) -> String {
    let rendered: Vec<String> = sections
        .iter()
        .filter(|section| !section.rows.is_empty())
        .map(sanitized)
        .flat_map(|section| blocks(&section, width))
        .map(|block| render(&block, width, color))
        .collect();
    rendered.join("\n")
}

/// Returns the section without control characters and line breaks: names and texts may come from
/// plugins and servers.
fn sanitized(section: &Section) -> Section {
    let clean = |text: &String| printable(text);
    let row = |row: &SummaryRow| SummaryRow {
        name: clean(&row.name),
        cells: row.cells.iter().map(clean).collect(),
        note: row.note.as_ref().map(clean),
        ..row.clone()
    };
    Section {
        title: clean(&section.title),
        columns: section.columns.iter().map(clean).collect(),
        rows: section.rows.iter().map(row).collect(),
    }
}

/// Splits a section into blocks whose columns fit next to each other.
fn blocks(section: &Section, width: usize) -> Vec<Section> {
    let widths = column_widths(section);
    let room = width.saturating_sub(NARROWEST_NAME + 2);
    let all: usize = widths.iter().map(|width| width + 2).sum();
    if all <= room || width < NARROWEST_TERMINAL {
        return vec![section.clone()];
    }
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut used = 0;
    for (column, width) in widths.iter().enumerate() {
        match ranges.last_mut() {
            Some(range) if used + width + 2 <= room => {
                range.end = column + 1;
                used += width + 2;
            }
            _ => {
                ranges.push(column..column + 1);
                used = width + 2;
            }
        }
    }
    let last = ranges.len() - 1;
    let part = |cells: &[String], range: &Range<usize>| -> Vec<String> {
        let end = range.end.min(cells.len());
        cells.get(range.start..end).unwrap_or_default().to_vec()
    };
    let block = |(number, range): (usize, &Range<usize>)| {
        let rows = section
            .rows
            .iter()
            .filter(|row| number == 0 || !row.cells.is_empty());
        let rows = rows.map(|row| SummaryRow {
            name: row.name.clone(),
            // A row without a cell here has its name, and is not a sentence.
            cells: match part(&row.cells, range) {
                none if none.is_empty() && !row.cells.is_empty() => vec![String::new()],
                cells => cells,
            },
            note: row
                .note
                .clone()
                .filter(|_| number == last || row.cells.is_empty()),
            mark: row.mark,
        });
        Section {
            title: match number {
                0 => section.title.clone(),
                _ => format!("{} ({} of {})", section.title, number + 1, last + 1),
            },
            columns: part(&section.columns, range),
            rows: rows.collect(),
        }
    };
    ranges.iter().enumerate().map(block).collect()
}

fn render(section: &Section, width: usize, color: ColorMode) -> String {
    let widths = column_widths(section);
    let cells_width: usize = widths.iter().map(|width| width + 2).sum();
    let longest = section
        .rows
        .iter()
        .filter(|row| !row.cells.is_empty())
        .map(|row| length(&row.name))
        .chain([length(&section.title)])
        .max();
    let room = width.saturating_sub(cells_width + 2).max(NARROWEST_NAME);
    let name_width = longest.unwrap_or(0).min(room);

    let mut text = String::new();
    let title = pad_right(&cut(&section.title, name_width + 2), name_width + 2);
    let heading = aligned(&section.columns, &widths);
    push_line(
        &mut text,
        &format!("{}{}", color.paint("1", &title), color.paint("2", &heading)),
    );
    for row in &section.rows {
        let sign = color.paint(row.mark.code(), row.mark.sign());
        if row.cells.is_empty() {
            let mut lines = broken(&row.name, width.saturating_sub(2)).into_iter();
            push_line(&mut text, &format!("{sign} {}", lines.next().unwrap_or_default()));
            lines.for_each(|line| push_line(&mut text, &format!("  {line}")));
            push_note(&mut text, row.note.as_deref(), width, color);
            continue;
        }
        // Names of objectives are not truncated.
        let judged = matches!(row.mark, RowMark::Good | RowMark::Bad) && length(&row.name) > name_width;
        let mut sign = sign;
        if judged {
            for line in broken(&row.name, width.saturating_sub(2)) {
                push_line(&mut text, &format!("{sign} {line}"));
                sign = " ".into();
            }
        }
        let name = if judged { "" } else { &row.name };
        let name = pad_right(&cut(name, name_width), name_width);
        let cells = color.paint(row.mark.code(), &aligned(&row.cells, &widths));
        let line = format!("{sign} {name}{cells}");
        match &row.note {
            None => push_line(&mut text, &line),
            Some(note) if 2 + name_width + cells_width + 2 + length(note) <= width => {
                push_line(&mut text, &format!("{line}  {}", color.paint("2", note)));
            }
            Some(note) => {
                push_line(&mut text, &line);
                push_note(&mut text, Some(note), width, color);
            }
        }
    }
    text
}

/// Appends a note on separate lines.
fn push_note(text: &mut String, note: Option<&str>, width: usize, color: ColorMode) {
    for line in note
        .map(|note| broken(note, width.saturating_sub(4)))
        .unwrap_or_default()
    {
        push_line(text, &format!("    {}", color.paint("2", &line)));
    }
}

/// Wraps the text into lines of at most `width` characters; a longer word is not split.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    // Not at the spaces between a number and its unit.
    for word in words(text) {
        match lines.last_mut() {
            Some(line) if length(line) + 1 + length(&word) <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// Splits a text into words; a unit (`ms`, `%`) belongs to the number before it.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let unit = word.trim_end_matches([')', ',', ';', '.', ':']);
        match words.last_mut() {
            Some(number)
                if ["ns", "µs", "ms", "s", "%"].contains(&unit)
                    && number.ends_with(|last: char| last.is_ascii_digit()) =>
            {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

fn column_widths(section: &Section) -> Vec<usize> {
    let count = section
        .rows
        .iter()
        .map(|row| row.cells.len())
        .chain([section.columns.len()])
        .max()
        .unwrap_or(0);
    let lines = || {
        section
            .rows
            .iter()
            .map(|row| &row.cells)
            .chain([&section.columns])
    };
    let widest = |column: usize| {
        lines()
            .filter_map(|cells| cells.get(column))
            .map(|cell| length(cell))
            .max()
    };
    (0..count).map(|column| widest(column).unwrap_or(0)).collect()
}

/// Right-aligns cells in their columns; a row with fewer cells leaves the last columns empty.
fn aligned(cells: &[String], widths: &[usize]) -> String {
    let mut text = String::new();
    for (place, width) in widths.iter().enumerate() {
        let cell = cells.get(place).map_or("", String::as_str);
        text.extend(std::iter::repeat_n(' ', 2 + width - length(cell)));
        text.push_str(cell);
    }
    text
}

fn pad_right(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(length(text));
    format!("{text}{}", " ".repeat(missing))
}

fn cut(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

fn length(text: &str) -> usize {
    text.chars().count()
}
