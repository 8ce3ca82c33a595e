//! Texts in CSV files.

use std::borrow::Cow;

/// Returns the content of a CSV cell before quoting. Spreadsheet programs evaluate text that begins
/// with `=`, `+`, `-`, `@`, a tab or a carriage return as a formula; a leading apostrophe keeps it
/// text (OWASP, "CSV Injection"). Numbers are not changed.
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    let is_taken_for_a_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if is_taken_for_a_formula && text.parse::<f64>().is_err() {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_cell_escapes_formulas_but_not_numbers() {
        for (text, cell) in [
            ("=1+1", "'=1+1"),
            ("=HYPERLINK(\"http://x\")", "'=HYPERLINK(\"http://x\")"),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("-2+3", "'-2+3"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "'\r=1"),
            ("-", "'-"),
            ("-1.5", "-1.5"),
            ("+1e-9", "+1e-9"),
            ("1-2", "1-2"),
            ("ttfc", "ttfc"),
            ("", ""),
        ] {
            assert_eq!(csv_cell(text), cell);
        }
    }
}
