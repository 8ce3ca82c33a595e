//! Texts in CSV files.

use std::borrow::Cow;

/// A cell as it stands in a CSV file, before it is quoted. Programs that show tables take a text that begins with `=`, `+`, `-`, `@`, a
/// tab or a carriage return for a formula and compute it; an apostrophe before it keeps it a text (OWASP, "CSV Injection"). Numbers
/// stay as they are.
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    let is_taken_for_a_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    match is_taken_for_a_formula && text.parse::<f64>().is_err() {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_texts_and_numbers_stay() {
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
