//! Tables in the tools' formats.

/// Formats a line of `vllm bench serve`: `"{:<40} {:<10}"`.
pub(crate) fn line(label: &str, value: &str) -> String {
    format!("{label:<40} {value:<10}\n")
}

/// Formats a line with two decimals; `nan` without a value.
pub(crate) fn decimal(label: &str, value: Option<f64>) -> String {
    let value = value.map_or_else(|| "nan".to_owned(), |value| format!("{value:.2}"));
    line(label, &value)
}

/// Formats a title centered in fifty columns of a fill character.
pub(crate) fn rule(title: &str, fill: char) -> String {
    let missing = 50usize.saturating_sub(title.chars().count());
    let left = missing / 2;
    let of = |count: usize| fill.to_string().repeat(count);
    format!("{}{title}{}\n", of(left), of(missing - left))
}

/// Formats a number with thousands separators: Python's `{:,.2f}`.
pub(crate) fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.*}", decimals, value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits = whole.len();
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (digits - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{fraction}")
}

/// A table with heavy headings and right-aligned columns, as drawn by the `rich` library.
#[derive(Debug, Default)]
pub(crate) struct BoxTable {
    title: String,
    rows: Vec<Vec<String>>,
}

impl BoxTable {
    pub(crate) fn new(title: &str, headings: &[&str]) -> Self {
        BoxTable {
            title: title.to_owned(),
            rows: vec![headings.iter().map(|&heading| heading.to_owned()).collect()],
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }

    pub(crate) fn draw(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let rule = |left: char, fill: &str, between: char, right: char| {
            let parts: Vec<String> = widths.iter().map(|width| fill.repeat(width + 2)).collect();
            format!("{left}{}{right}\n", parts.join(&between.to_string()))
        };
        let total: usize = widths.iter().map(|width| width + 3).sum::<usize>() + 1;
        let indent = total.saturating_sub(self.title.chars().count()) / 2;
        let mut text = format!("{}{}\n", " ".repeat(indent), self.title);
        text.push_str(&rule('┏', "━", '┳', '┓'));
        for (at, row) in self.rows.iter().enumerate() {
            let bar = if at == 0 { '┃' } else { '│' };
            text.push(bar);
            for (cell, &width) in row.iter().zip(&widths) {
                text.push_str(&format!(" {cell:>width$} {bar}"));
            }
            text.push('\n');
            if at == 0 {
                text.push_str(&rule('┡', "━", '╇', '┩'));
            }
        }
        text.push_str(&rule('└', "─", '┴', '┘'));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let cases = [
            (0.0, 2, "0.00"),
            (999.5, 2, "999.50"),
            (1234.5, 2, "1,234.50"),
            (-1234567.891, 1, "-1,234,567.9"),
            (1000.0, 0, "1,000"),
        ];
        for (value, decimals, expected) in cases {
            assert_eq!(grouped(value, decimals), expected);
        }
    }

    #[test]
    fn titles_are_centered_in_fifty_columns() {
        // " Serving Benchmark Result " has 26 characters: 12 to each side.
        assert_eq!(
            rule(" Serving Benchmark Result ", '='),
            "============ Serving Benchmark Result ============\n"
        );
        assert_eq!(
            rule("Time to First Token", '-'),
            "---------------Time to First Token----------------\n"
        );
        assert_eq!(decimal("Mean TTFT (ms):", Some(12.345)).len(), 52);
    }

    #[test]
    fn box_columns_fit_their_cells() {
        let mut boxed = BoxTable::new("T", &["a", "bb"]);
        boxed.row(vec!["1".into(), "22.0".into()]);
        let expected = "      T\n┏━━━┳━━━━━━┓\n┃ a ┃   bb ┃\n┡━━━╇━━━━━━┩\n│ 1 │ 22.0 │\n└───┴──────┘\n";
        assert_eq!(boxed.draw(), expected.replacen("      T", "     T", 1));
    }
}
