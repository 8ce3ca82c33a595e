//! Data of a plot as CSV.

use veeksha_model::csv_cell;

/// Returns a CSV text with these headings. Texts that spreadsheets would treat as formulas are
/// escaped.
pub fn csv_table<R, C>(headings: &[&str], rows: R) -> String
where
    R: IntoIterator<Item = C>,
    C: IntoIterator<Item = String>,
{
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory does not fail, and rows have as many cells as there are headings.
    let _ = writer.write_record(headings.iter().map(|heading| csv_cell(heading).into_owned()));
    for row in rows {
        let _ = writer.write_record(row.into_iter().map(|cell| csv_cell(&cell).into_owned()));
    }
    writer
        .into_inner()
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default()
}

/// Formats a number as the shortest text that reads back as it, never in scientific notation; a
/// non-finite number is an empty cell.
pub(super) fn cell(value: f64) -> String {
    if value.is_finite() {
        format!("{value:?}")
    } else {
        String::new()
    }
}

/// Formats an optional number.
pub(super) fn cell_of(value: Option<f64>) -> String {
    value.map(cell).unwrap_or_default()
}

/// Returns a heading with its unit: `ttfc (s)`.
pub(super) fn heading(name: &str, unit: &str) -> String {
    if unit.is_empty() {
        name.to_owned()
    } else {
        format!("{name} ({unit})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_round_trip() {
        for value in [0.1 + 0.2, 1e-9, 123_456_789.0, 0.0, f64::MIN_POSITIVE] {
            assert_eq!(cell(value).parse::<f64>().unwrap(), value);
        }
        assert_eq!(cell(f64::NAN), "");
        assert_eq!(cell_of(None), "");
    }

    #[test]
    fn escapes_formulas() {
        let text = csv_table(&["=a", "b"], [["-1.5".to_owned(), "@x".to_owned()]]);
        assert_eq!(text, "'=a,b\n-1.5,'@x\n");
    }

    #[test]
    fn quotes_names_with_commas() {
        let text = csv_table(&["a, b", "c"], [["1".to_owned(), "x \"y\"".to_owned()]]);
        assert_eq!(text, "\"a, b\",c\n1,\"x \"\"y\"\"\"\n");
    }
}
