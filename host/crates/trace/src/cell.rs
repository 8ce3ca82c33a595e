//! Cells: type checks against their column, and their form for the flavor.

use std::borrow::Cow;
use std::fmt::Write as _;

use veeksha_ports::CellType;

use crate::decimal::{DecimalError, scaled};
use crate::json::{JsonKind, scan_value, skip_space};
use crate::problem::RowProblem;

/// A cell as it is in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawCell<'a> {
    /// A JSON value; never null.
    Json(JsonKind, &'a str),
    /// A CSV cell, unquoted; never empty.
    Csv(&'a str),
}

/// A cell that matches its column's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TypedCell<'a> {
    /// JSON that is passed on unchanged.
    Json(&'a str),
    /// JSON from inside a string.
    Unwrapped(Cow<'a, str>),
    /// Text that needs quotes and escapes.
    Plain(&'a str),
    /// Digits that need only quotes.
    Digits(&'a str),
    /// A whole number in a form that JSON does not have.
    Whole { negative: bool, whole: u128 },
    /// A boolean.
    Truth(bool),
}

/// A mismatch between a cell and its column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellError {
    /// Another type is expected.
    Type(&'static str),
    /// A count below 0.
    Negative,
    /// Not finite.
    NotFinite,
    /// Beyond 64 bits.
    TooLarge,
}

impl CellError {
    /// Returns the problem as reported to the user.
    pub(crate) fn problem(self, column: String, value: &str) -> RowProblem {
        let value = value.to_owned();
        match self {
            CellError::Type(expected) => RowProblem::WrongType {
                column,
                value,
                expected,
            },
            CellError::Negative => RowProblem::Negative { column, value },
            CellError::NotFinite => RowProblem::NotFinite { column, value },
            CellError::TooLarge => RowProblem::TooLarge { column, value },
        }
    }
}

const COUNT: &str = "a whole number of 0 or more";
const INTEGER: &str = "a whole number";
const NUMBER: &str = "a number";
const TEXT: &str = "text";
const TRUTH: &str = "true or false";
const ITEMS: &str = "a JSON array";
const MEMBERS: &str = "a JSON object";

/// Checks a cell and converts it to its column's type.
pub(crate) fn value<'a>(cell: CellType, raw: RawCell<'a>) -> Result<TypedCell<'a>, CellError> {
    match (cell, raw) {
        (CellType::Text, RawCell::Json(JsonKind::Text { .. }, json))
        | (CellType::Anything, RawCell::Json(_, json)) => Ok(TypedCell::Json(json)),
        (CellType::Text, RawCell::Json(JsonKind::Number, digits)) => Ok(TypedCell::Digits(digits)),
        (CellType::Text, RawCell::Json(..)) => Err(CellError::Type(TEXT)),
        (CellType::Text | CellType::Anything, RawCell::Csv(text)) => Ok(TypedCell::Plain(text)),
        (CellType::Count, RawCell::Json(JsonKind::Number, digits)) => whole(digits, COUNT, true),
        (CellType::Count, RawCell::Csv(text)) => whole(trimmed(text), COUNT, true),
        (CellType::Count, _) => Err(CellError::Type(COUNT)),
        (CellType::Integer, RawCell::Json(JsonKind::Number, digits)) => whole(digits, INTEGER, false),
        (CellType::Integer, RawCell::Csv(text)) => whole(trimmed(text), INTEGER, false),
        (CellType::Integer, _) => Err(CellError::Type(INTEGER)),
        (CellType::Number, RawCell::Json(JsonKind::Number, digits)) => {
            finite(digits).map(|()| TypedCell::Json(digits))
        }
        (CellType::Number, RawCell::Csv(text)) => csv_number(trimmed(text)),
        (CellType::Number, _) => Err(CellError::Type(NUMBER)),
        (CellType::Truth, RawCell::Json(JsonKind::True, _)) => Ok(TypedCell::Truth(true)),
        (CellType::Truth, RawCell::Json(JsonKind::False, _)) => Ok(TypedCell::Truth(false)),
        (CellType::Truth, RawCell::Csv(text)) => match trimmed(text) {
            "1" => Ok(TypedCell::Truth(true)),
            "0" => Ok(TypedCell::Truth(false)),
            word if word.eq_ignore_ascii_case("true") => Ok(TypedCell::Truth(true)),
            word if word.eq_ignore_ascii_case("false") => Ok(TypedCell::Truth(false)),
            _ => Err(CellError::Type(TRUTH)),
        },
        (CellType::Truth, _) => Err(CellError::Type(TRUTH)),
        (CellType::Items, RawCell::Json(JsonKind::Items, json))
        | (CellType::Members, RawCell::Json(JsonKind::Members, json)) => Ok(TypedCell::Json(json)),
        (CellType::Items, RawCell::Json(JsonKind::Text { .. }, json)) => {
            unwrapped(json, JsonKind::Items, ITEMS)
        }
        (CellType::Members, RawCell::Json(JsonKind::Text { .. }, json)) => {
            unwrapped(json, JsonKind::Members, MEMBERS)
        }
        (CellType::Items, RawCell::Csv(text)) => nested(Cow::Borrowed(text), JsonKind::Items, ITEMS),
        (CellType::Members, RawCell::Csv(text)) => nested(Cow::Borrowed(text), JsonKind::Members, MEMBERS),
        (CellType::Items, _) => Err(CellError::Type(ITEMS)),
        (CellType::Members, _) => Err(CellError::Type(MEMBERS)),
    }
}

/// Returns the text without surrounding white space, which is nearly always absent.
pub(crate) fn trimmed(text: &str) -> &str {
    match text.as_bytes() {
        [b'!'..=b'~'] | [b'!'..=b'~', .., b'!'..=b'~'] => text,
        _ => text.trim(),
    }
}

/// Checks a cell like [`value`], without the conversion. Numbers and text in their common forms
/// take a short path.
#[inline]
pub(crate) fn check(cell: CellType, raw: RawCell<'_>) -> Result<(), CellError> {
    match (cell, raw) {
        (CellType::Text | CellType::Anything, RawCell::Csv(_)) | (CellType::Anything, RawCell::Json(..)) => {
            Ok(())
        }
        (
            CellType::Count | CellType::Integer | CellType::Number,
            RawCell::Json(JsonKind::Number, text) | RawCell::Csv(text),
        ) if short_digits(text) => Ok(()),
        (CellType::Number, RawCell::Json(JsonKind::Number, text) | RawCell::Csv(text))
            if short_decimal(text) =>
        {
            Ok(())
        }
        _ => value(cell, raw).map(drop),
    }
}

/// Returns true if a text is a decimal number as in JSON, without sign and exponent, whose whole
/// part has up to 19 digits.
fn short_decimal(text: &str) -> bool {
    match text.split_once('.') {
        Some((whole, decimals)) => {
            short_digits(whole) && !decimals.is_empty() && decimals.bytes().all(|byte| byte.is_ascii_digit())
        }
        None => false,
    }
}

/// Returns true if a text is a whole number as in JSON, with up to 19 digits: less than 2^64.
fn short_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    match bytes {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.len() < 19 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Converts to a whole number. Digits that are already in JSON's form are kept.
fn whole<'a>(text: &'a str, expected: &'static str, count: bool) -> Result<TypedCell<'a>, CellError> {
    if short_digits(text) {
        return Ok(TypedCell::Json(text));
    }
    if not_finite(text) {
        return Err(CellError::NotFinite);
    }
    let number = scaled(text, 0).map_err(|error| match error {
        DecimalError::Syntax => CellError::Type(expected),
        DecimalError::TooLarge => CellError::TooLarge,
    })?;
    if !number.exact {
        return Err(CellError::Type(expected));
    }
    let negative = number.negative && number.whole != 0;
    if negative && count {
        return Err(CellError::Negative);
    }
    let limit = if negative { 1 << 63 } else { u128::from(u64::MAX) };
    if number.whole > limit {
        return Err(CellError::TooLarge);
    }
    Ok(TypedCell::Whole {
        negative,
        whole: number.whole,
    })
}

/// Checks that a number in JSON's form fits a double.
fn finite(digits: &str) -> Result<(), CellError> {
    // Without an exponent and with few digits it does.
    if digits.len() <= 300 && !digits.bytes().any(|b| matches!(b, b'e' | b'E')) {
        return Ok(());
    }
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(()),
        _ => Err(CellError::NotFinite),
    }
}

fn csv_number(text: &str) -> Result<TypedCell<'_>, CellError> {
    if matches!(scan_value(text.as_bytes(), 0), Ok((JsonKind::Number, end)) if end == text.len()) {
        return finite(text).map(|()| TypedCell::Json(text));
    }
    if not_finite(text) {
        return Err(CellError::NotFinite);
    }
    // Forms that CSV writers use and JSON does not have: `+1`, `.5`, `1.`, `007`.
    if scaled(text, 0) == Err(DecimalError::Syntax) {
        return Err(CellError::Type(NUMBER));
    }
    let number = text.parse::<f64>().map_err(|_| CellError::Type(NUMBER))?;
    match serde_json::Number::from_f64(number) {
        Some(number) => Ok(TypedCell::Unwrapped(Cow::Owned(number.to_string()))),
        None => Err(CellError::NotFinite),
    }
}

fn not_finite(text: &str) -> bool {
    let word = text.trim_start_matches(['+', '-']);
    ["nan", "inf", "infinity"]
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name))
}

fn unwrapped<'a>(json: &'a str, kind: JsonKind, expected: &'static str) -> Result<TypedCell<'a>, CellError> {
    let text = decoded(json).ok_or(CellError::Type(expected))?;
    nested(text, kind, expected)
}

fn nested<'a>(
    text: Cow<'a, str>,
    kind: JsonKind,
    expected: &'static str,
) -> Result<TypedCell<'a>, CellError> {
    let bytes = text.as_bytes();
    let start = skip_space(bytes, 0);
    match scan_value(bytes, start) {
        Ok((found, end)) if found == kind && skip_space(bytes, end) == bytes.len() => {
            Ok(TypedCell::Unwrapped(match text {
                Cow::Borrowed(text) => Cow::Borrowed(&text[start..end]),
                Cow::Owned(text) => Cow::Owned(text[start..end].to_owned()),
            }))
        }
        _ => Err(CellError::Type(expected)),
    }
}

/// Returns the text of a JSON string given with its quotes.
pub(crate) fn decoded(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(json).ok().map(Cow::Owned)
}

impl<'a> TypedCell<'a> {
    /// Appends the cell as JSON.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            TypedCell::Json(json) => out.push_str(json),
            TypedCell::Unwrapped(json) => out.push_str(json),
            TypedCell::Plain(text) => {
                out.push_str(&serde_json::Value::from(*text).to_string());
            }
            TypedCell::Digits(digits) => {
                out.push('"');
                out.push_str(digits);
                out.push('"');
            }
            TypedCell::Whole { negative, whole } => {
                let sign = if *negative { "-" } else { "" };
                // Writing to a string does not fail.
                let _ = write!(out, "{sign}{whole}");
            }
            TypedCell::Truth(truth) => out.push_str(if *truth { "true" } else { "false" }),
        }
    }

    /// Returns the cell as the text that groups rows and names a group: text itself, other types as
    /// written.
    pub(crate) fn key(self) -> Cow<'a, str> {
        match self {
            TypedCell::Json(json) if json.starts_with('"') => decoded(json).unwrap_or(Cow::Borrowed(json)),
            TypedCell::Json(text) | TypedCell::Plain(text) | TypedCell::Digits(text) => Cow::Borrowed(text),
            TypedCell::Unwrapped(text) => text,
            TypedCell::Whole { .. } | TypedCell::Truth(_) => {
                let mut text = String::new();
                self.write(&mut text);
                Cow::Owned(text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(cell: CellType, text: &str) -> Result<String, CellError> {
        let (kind, end) = scan_value(text.as_bytes(), 0).unwrap();
        assert_eq!(end, text.len());
        checked(cell, RawCell::Json(kind, text))
    }

    fn csv(cell: CellType, text: &str) -> Result<String, CellError> {
        checked(cell, RawCell::Csv(text))
    }

    /// Both functions must agree on everything that the tests below try.
    fn checked(cell: CellType, raw: RawCell<'_>) -> Result<String, CellError> {
        let value = value(cell, raw);
        assert_eq!(check(cell, raw), value.clone().map(drop), "{raw:?}");
        value.map(written)
    }

    fn written(value: TypedCell<'_>) -> String {
        let mut out = String::new();
        value.write(&mut out);
        serde_json::from_str::<serde_json::Value>(&out).unwrap();
        out
    }

    fn same(text: &str) -> Result<String, CellError> {
        Ok(text.to_owned())
    }

    #[test]
    fn whole_numbers() {
        for (text, written) in [
            ("0", "0"),
            ("12", "12"),
            ("12.0", "12"),
            ("1.2e1", "12"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("18446744073709551615", "18446744073709551615"),
            ("1e19", "10000000000000000000"),
        ] {
            assert_eq!(json(CellType::Count, text), same(written), "{text}");
            assert_eq!(csv(CellType::Count, text), same(written), "{text}");
        }
        assert_eq!(csv(CellType::Count, " 007 "), same("7"));
        assert_eq!(json(CellType::Count, "-5"), Err(CellError::Negative));
        assert_eq!(csv(CellType::Count, "-5.0"), Err(CellError::Negative));
        assert_eq!(json(CellType::Integer, "-5"), same("-5"));
        assert_eq!(
            json(CellType::Integer, "-9223372036854775808"),
            same("-9223372036854775808")
        );
        assert_eq!(
            json(CellType::Integer, "-9223372036854775809"),
            Err(CellError::TooLarge)
        );
        assert_eq!(
            json(CellType::Integer, "18446744073709551615"),
            same("18446744073709551615")
        );
        for text in ["18446744073709551616", "1e30", "1e300"] {
            assert_eq!(json(CellType::Count, text), Err(CellError::TooLarge), "{text}");
        }
        for text in ["1.5", "\"12\"", "true", "[1]", "{}"] {
            assert_eq!(json(CellType::Count, text), Err(CellError::Type(COUNT)), "{text}");
        }
        assert_eq!(csv(CellType::Count, "twelve"), Err(CellError::Type(COUNT)));
        assert_eq!(csv(CellType::Count, "nan"), Err(CellError::NotFinite));
    }

    #[test]
    fn numbers_keep_their_digits() {
        for text in [
            "0.1",
            "12.0",
            "0.000",
            "1234567890123456789.5",
            "1e-7",
            "123456789012345678901234567890",
            "-0.0",
        ] {
            assert_eq!(json(CellType::Number, text), same(text));
            assert_eq!(csv(CellType::Number, text), same(text));
        }
        assert_eq!(csv(CellType::Number, "01.5"), same("1.5"));
        assert_eq!(csv(CellType::Number, "+.5"), same("0.5"));
        assert_eq!(csv(CellType::Number, "007."), same("7.0"));
        assert_eq!(json(CellType::Number, "1e999"), Err(CellError::NotFinite));
        assert_eq!(
            json(CellType::Number, &"9".repeat(400)),
            Err(CellError::NotFinite)
        );
        for text in ["nan", "NaN", "-inf", "Infinity", "1e999"] {
            assert_eq!(csv(CellType::Number, text), Err(CellError::NotFinite), "{text}");
        }
        assert_eq!(csv(CellType::Number, "1,5"), Err(CellError::Type(NUMBER)));
        assert_eq!(csv(CellType::Number, "infinit"), Err(CellError::Type(NUMBER)));
        assert_eq!(json(CellType::Number, "\"1\""), Err(CellError::Type(NUMBER)));
    }

    #[test]
    fn text_and_anything() {
        assert_eq!(json(CellType::Text, "\"a\\n\\u00e9\""), same("\"a\\n\\u00e9\""));
        assert_eq!(json(CellType::Text, "17"), same("\"17\""));
        assert_eq!(json(CellType::Text, "1.50"), same("\"1.50\""));
        assert_eq!(json(CellType::Text, "true"), Err(CellError::Type(TEXT)));
        assert_eq!(csv(CellType::Text, "say \"hi\"\n"), same("\"say \\\"hi\\\"\\n\""));
        assert_eq!(
            json(CellType::Anything, "[1, {\"a\": null}]"),
            same("[1, {\"a\": null}]")
        );
        assert_eq!(csv(CellType::Anything, "[1]"), same("\"[1]\""));
    }

    #[test]
    fn booleans() {
        assert_eq!(json(CellType::Truth, "true"), same("true"));
        assert_eq!(json(CellType::Truth, "1"), Err(CellError::Type(TRUTH)));
        for (text, written) in [
            ("True", "true"),
            ("FALSE", "false"),
            ("1", "true"),
            (" 0", "false"),
        ] {
            assert_eq!(csv(CellType::Truth, text), same(written));
        }
        assert_eq!(csv(CellType::Truth, "yes"), Err(CellError::Type(TRUTH)));
    }

    #[test]
    fn unwraps_json_in_text() {
        assert_eq!(json(CellType::Items, "[1, 2]"), same("[1, 2]"));
        assert_eq!(json(CellType::Items, "\" [1, \\\"x\\\"] \""), same("[1, \"x\"]"));
        assert_eq!(csv(CellType::Items, "[1, 2] "), same("[1, 2]"));
        assert_eq!(json(CellType::Members, "\"{\\\"a\\\": 1}\""), same("{\"a\": 1}"));
        assert_eq!(csv(CellType::Members, "{}"), same("{}"));
        for text in ["\"[1\"", "\"{}\"", "{}", "1", "\"\""] {
            assert_eq!(json(CellType::Items, text), Err(CellError::Type(ITEMS)), "{text}");
        }
        assert_eq!(csv(CellType::Members, "{'a': 1}"), Err(CellError::Type(MEMBERS)));
        assert_eq!(csv(CellType::Items, "[1] [2]"), Err(CellError::Type(ITEMS)));
    }

    #[test]
    fn keys_do_not_depend_on_the_form() {
        let key = |cell, raw| value(cell, raw).unwrap().key().into_owned();
        let text = JsonKind::Text { escaped: true };
        assert_eq!(key(CellType::Text, RawCell::Json(text, "\"a\\u0062\"")), "ab");
        assert_eq!(key(CellType::Text, RawCell::Csv("ab")), "ab");
        assert_eq!(key(CellType::Count, RawCell::Json(JsonKind::Number, "7.0")), "7");
        assert_eq!(key(CellType::Count, RawCell::Csv("7")), "7");
        assert_eq!(key(CellType::Text, RawCell::Json(JsonKind::Number, "7")), "7");
        assert_eq!(
            key(CellType::Integer, RawCell::Json(JsonKind::Number, "-1")),
            "-1"
        );
        assert_eq!(key(CellType::Truth, RawCell::Csv("True")), "true");
    }
}
