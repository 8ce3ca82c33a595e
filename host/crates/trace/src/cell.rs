//! Cells: whether they are of their column's type, and how they are written for the flavor.

use std::borrow::Cow;
use std::fmt::Write as _;

use veeksha_ports::Cell;

use crate::decimal::{NotDecimal, scaled};
use crate::json::{Kind, scan_value, skip_space};
use crate::problem::RowProblem;

/// A cell as it stands in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Raw<'a> {
    /// A JSON value; never null.
    Json(Kind, &'a str),
    /// A CSV cell, unquoted; never empty.
    Csv(&'a str),
}

/// A cell of its column's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// JSON that can be handed on as it stands.
    Json(&'a str),
    /// JSON that stood in a string.
    Unwrapped(Cow<'a, str>),
    /// Text that needs quotes and escapes.
    Plain(&'a str),
    /// Digits that need nothing but quotes.
    Digits(&'a str),
    /// A whole number that was written in another way.
    Whole { negative: bool, whole: u128 },
    /// A truth value.
    Truth(bool),
}

/// Why a cell is not of its column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It is of another type.
    Type(&'static str),
    /// A count below 0.
    Negative,
    /// Not finite.
    NotFinite,
    /// Beyond 64 bits.
    TooLarge,
}

impl Wrong {
    /// The problem that the user sees.
    pub(crate) fn problem(self, column: String, value: &str) -> RowProblem {
        let value = value.to_owned();
        match self {
            Wrong::Type(expected) => RowProblem::WrongType {
                column,
                value,
                expected,
            },
            Wrong::Negative => RowProblem::Negative { column, value },
            Wrong::NotFinite => RowProblem::NotFinite { column, value },
            Wrong::TooLarge => RowProblem::TooLarge { column, value },
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

/// Checks a cell and brings it into its column's type.
pub(crate) fn value<'a>(cell: Cell, raw: Raw<'a>) -> Result<Value<'a>, Wrong> {
    match (cell, raw) {
        (Cell::Text, Raw::Json(Kind::Text { .. }, json)) | (Cell::Anything, Raw::Json(_, json)) => {
            Ok(Value::Json(json))
        }
        (Cell::Text, Raw::Json(Kind::Number, digits)) => Ok(Value::Digits(digits)),
        (Cell::Text, Raw::Json(..)) => Err(Wrong::Type(TEXT)),
        (Cell::Text | Cell::Anything, Raw::Csv(text)) => Ok(Value::Plain(text)),
        (Cell::Count, Raw::Json(Kind::Number, digits)) => whole(digits, COUNT, true),
        (Cell::Count, Raw::Csv(text)) => whole(trimmed(text), COUNT, true),
        (Cell::Count, _) => Err(Wrong::Type(COUNT)),
        (Cell::Integer, Raw::Json(Kind::Number, digits)) => whole(digits, INTEGER, false),
        (Cell::Integer, Raw::Csv(text)) => whole(trimmed(text), INTEGER, false),
        (Cell::Integer, _) => Err(Wrong::Type(INTEGER)),
        (Cell::Number, Raw::Json(Kind::Number, digits)) => finite(digits).map(|()| Value::Json(digits)),
        (Cell::Number, Raw::Csv(text)) => csv_number(trimmed(text)),
        (Cell::Number, _) => Err(Wrong::Type(NUMBER)),
        (Cell::Truth, Raw::Json(Kind::True, _)) => Ok(Value::Truth(true)),
        (Cell::Truth, Raw::Json(Kind::False, _)) => Ok(Value::Truth(false)),
        (Cell::Truth, Raw::Csv(text)) => match trimmed(text) {
            "1" => Ok(Value::Truth(true)),
            "0" => Ok(Value::Truth(false)),
            word if word.eq_ignore_ascii_case("true") => Ok(Value::Truth(true)),
            word if word.eq_ignore_ascii_case("false") => Ok(Value::Truth(false)),
            _ => Err(Wrong::Type(TRUTH)),
        },
        (Cell::Truth, _) => Err(Wrong::Type(TRUTH)),
        (Cell::Items, Raw::Json(Kind::Items, json)) | (Cell::Members, Raw::Json(Kind::Members, json)) => {
            Ok(Value::Json(json))
        }
        (Cell::Items, Raw::Json(Kind::Text { .. }, json)) => unwrapped(json, Kind::Items, ITEMS),
        (Cell::Members, Raw::Json(Kind::Text { .. }, json)) => unwrapped(json, Kind::Members, MEMBERS),
        (Cell::Items, Raw::Csv(text)) => nested(Cow::Borrowed(text), Kind::Items, ITEMS),
        (Cell::Members, Raw::Csv(text)) => nested(Cow::Borrowed(text), Kind::Members, MEMBERS),
        (Cell::Items, _) => Err(Wrong::Type(ITEMS)),
        (Cell::Members, _) => Err(Wrong::Type(MEMBERS)),
    }
}

/// Without the space around it, which nearly no cell has.
pub(crate) fn trimmed(text: &str) -> &str {
    match text.as_bytes() {
        [b'!'..=b'~'] | [b'!'..=b'~', .., b'!'..=b'~'] => text,
        _ => text.trim(),
    }
}

/// Checks a cell: what [`value`] does, without its result. Numbers and text as most files write them are settled at once.
#[inline]
pub(crate) fn check(cell: Cell, raw: Raw<'_>) -> Result<(), Wrong> {
    match (cell, raw) {
        (Cell::Text | Cell::Anything, Raw::Csv(_)) | (Cell::Anything, Raw::Json(..)) => Ok(()),
        (Cell::Count | Cell::Integer | Cell::Number, Raw::Json(Kind::Number, text) | Raw::Csv(text))
            if short_digits(text) =>
        {
            Ok(())
        }
        (Cell::Number, Raw::Json(Kind::Number, text) | Raw::Csv(text)) if short_decimal(text) => Ok(()),
        _ => value(cell, raw).map(drop),
    }
}

/// Whether a text is a decimal number as JSON writes it, without sign and exponent, whose whole part has up to 19 digits.
fn short_decimal(text: &str) -> bool {
    match text.split_once('.') {
        Some((whole, decimals)) => {
            short_digits(whole) && !decimals.is_empty() && decimals.bytes().all(|byte| byte.is_ascii_digit())
        }
        None => false,
    }
}

/// Whether a text is a whole number as JSON writes it, of up to 19 digits: less than 2^64.
fn short_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    match bytes {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.len() < 19 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// A whole number. What is already written as JSON writes it keeps its digits.
fn whole<'a>(text: &'a str, expected: &'static str, count: bool) -> Result<Value<'a>, Wrong> {
    if short_digits(text) {
        return Ok(Value::Json(text));
    }
    if not_finite(text) {
        return Err(Wrong::NotFinite);
    }
    let number = scaled(text, 0).map_err(|error| match error {
        NotDecimal::Syntax => Wrong::Type(expected),
        NotDecimal::TooLarge => Wrong::TooLarge,
    })?;
    if !number.exact {
        return Err(Wrong::Type(expected));
    }
    let negative = number.negative && number.whole != 0;
    if negative && count {
        return Err(Wrong::Negative);
    }
    let limit = if negative { 1 << 63 } else { u128::from(u64::MAX) };
    if number.whole > limit {
        return Err(Wrong::TooLarge);
    }
    Ok(Value::Whole {
        negative,
        whole: number.whole,
    })
}

/// A number, written in JSON's way, that a double can hold.
fn finite(digits: &str) -> Result<(), Wrong> {
    // Without an exponent and with few digits it is.
    if digits.len() <= 300 && !digits.bytes().any(|b| matches!(b, b'e' | b'E')) {
        return Ok(());
    }
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(()),
        _ => Err(Wrong::NotFinite),
    }
}

fn csv_number(text: &str) -> Result<Value<'_>, Wrong> {
    if matches!(scan_value(text.as_bytes(), 0), Ok((Kind::Number, end)) if end == text.len()) {
        return finite(text).map(|()| Value::Json(text));
    }
    if not_finite(text) {
        return Err(Wrong::NotFinite);
    }
    // Written as CSV writers may and JSON may not: `+1`, `.5`, `1.`, `007`.
    if scaled(text, 0) == Err(NotDecimal::Syntax) {
        return Err(Wrong::Type(NUMBER));
    }
    let number = text.parse::<f64>().map_err(|_| Wrong::Type(NUMBER))?;
    match serde_json::Number::from_f64(number) {
        Some(number) => Ok(Value::Unwrapped(Cow::Owned(number.to_string()))),
        None => Err(Wrong::NotFinite),
    }
}

fn not_finite(text: &str) -> bool {
    let word = text.trim_start_matches(['+', '-']);
    ["nan", "inf", "infinity"]
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name))
}

fn unwrapped<'a>(json: &'a str, kind: Kind, expected: &'static str) -> Result<Value<'a>, Wrong> {
    let text = decoded(json).ok_or(Wrong::Type(expected))?;
    nested(text, kind, expected)
}

fn nested<'a>(text: Cow<'a, str>, kind: Kind, expected: &'static str) -> Result<Value<'a>, Wrong> {
    let bytes = text.as_bytes();
    let start = skip_space(bytes, 0);
    match scan_value(bytes, start) {
        Ok((found, end)) if found == kind && skip_space(bytes, end) == bytes.len() => {
            Ok(Value::Unwrapped(match text {
                Cow::Borrowed(text) => Cow::Borrowed(&text[start..end]),
                Cow::Owned(text) => Cow::Owned(text[start..end].to_owned()),
            }))
        }
        _ => Err(Wrong::Type(expected)),
    }
}

/// The text of a JSON string, which has its quotes.
pub(crate) fn decoded(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(json).ok().map(Cow::Owned)
}

impl<'a> Value<'a> {
    /// Appends the cell as JSON.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Value::Json(json) => out.push_str(json),
            Value::Unwrapped(json) => out.push_str(json),
            Value::Plain(text) => {
                out.push_str(&serde_json::Value::from(*text).to_string());
            }
            Value::Digits(digits) => {
                out.push('"');
                out.push_str(digits);
                out.push('"');
            }
            Value::Whole { negative, whole } => {
                let sign = if *negative { "-" } else { "" };
                // Writing to a string does not fail.
                let _ = write!(out, "{sign}{whole}");
            }
            Value::Truth(truth) => out.push_str(if *truth { "true" } else { "false" }),
        }
    }

    /// The cell as text: what groups rows, and what a group is called. Text is itself, all else as it is written.
    pub(crate) fn key(self) -> Cow<'a, str> {
        match self {
            Value::Json(json) if json.starts_with('"') => decoded(json).unwrap_or(Cow::Borrowed(json)),
            Value::Json(text) | Value::Plain(text) | Value::Digits(text) => Cow::Borrowed(text),
            Value::Unwrapped(text) => text,
            Value::Whole { .. } | Value::Truth(_) => {
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

    fn json(cell: Cell, text: &str) -> Result<String, Wrong> {
        let (kind, end) = scan_value(text.as_bytes(), 0).unwrap();
        assert_eq!(end, text.len());
        checked(cell, Raw::Json(kind, text))
    }

    fn csv(cell: Cell, text: &str) -> Result<String, Wrong> {
        checked(cell, Raw::Csv(text))
    }

    /// Both ways must agree on everything that the tests below try.
    fn checked(cell: Cell, raw: Raw<'_>) -> Result<String, Wrong> {
        let value = value(cell, raw);
        assert_eq!(check(cell, raw), value.clone().map(drop), "{raw:?}");
        value.map(written)
    }

    fn written(value: Value<'_>) -> String {
        let mut out = String::new();
        value.write(&mut out);
        serde_json::from_str::<serde_json::Value>(&out).unwrap();
        out
    }

    fn same(text: &str) -> Result<String, Wrong> {
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
            assert_eq!(json(Cell::Count, text), same(written), "{text}");
            assert_eq!(csv(Cell::Count, text), same(written), "{text}");
        }
        assert_eq!(csv(Cell::Count, " 007 "), same("7"));
        assert_eq!(json(Cell::Count, "-5"), Err(Wrong::Negative));
        assert_eq!(csv(Cell::Count, "-5.0"), Err(Wrong::Negative));
        assert_eq!(json(Cell::Integer, "-5"), same("-5"));
        assert_eq!(
            json(Cell::Integer, "-9223372036854775808"),
            same("-9223372036854775808")
        );
        assert_eq!(json(Cell::Integer, "-9223372036854775809"), Err(Wrong::TooLarge));
        assert_eq!(
            json(Cell::Integer, "18446744073709551615"),
            same("18446744073709551615")
        );
        for text in ["18446744073709551616", "1e30", "1e300"] {
            assert_eq!(json(Cell::Count, text), Err(Wrong::TooLarge), "{text}");
        }
        for text in ["1.5", "\"12\"", "true", "[1]", "{}"] {
            assert_eq!(json(Cell::Count, text), Err(Wrong::Type(COUNT)), "{text}");
        }
        assert_eq!(csv(Cell::Count, "twelve"), Err(Wrong::Type(COUNT)));
        assert_eq!(csv(Cell::Count, "nan"), Err(Wrong::NotFinite));
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
            assert_eq!(json(Cell::Number, text), same(text));
            assert_eq!(csv(Cell::Number, text), same(text));
        }
        assert_eq!(csv(Cell::Number, "01.5"), same("1.5"));
        assert_eq!(csv(Cell::Number, "+.5"), same("0.5"));
        assert_eq!(csv(Cell::Number, "007."), same("7.0"));
        assert_eq!(json(Cell::Number, "1e999"), Err(Wrong::NotFinite));
        assert_eq!(json(Cell::Number, &"9".repeat(400)), Err(Wrong::NotFinite));
        for text in ["nan", "NaN", "-inf", "Infinity", "1e999"] {
            assert_eq!(csv(Cell::Number, text), Err(Wrong::NotFinite), "{text}");
        }
        assert_eq!(csv(Cell::Number, "1,5"), Err(Wrong::Type(NUMBER)));
        assert_eq!(csv(Cell::Number, "infinit"), Err(Wrong::Type(NUMBER)));
        assert_eq!(json(Cell::Number, "\"1\""), Err(Wrong::Type(NUMBER)));
    }

    #[test]
    fn text_and_anything() {
        assert_eq!(json(Cell::Text, "\"a\\n\\u00e9\""), same("\"a\\n\\u00e9\""));
        assert_eq!(json(Cell::Text, "17"), same("\"17\""));
        assert_eq!(json(Cell::Text, "1.50"), same("\"1.50\""));
        assert_eq!(json(Cell::Text, "true"), Err(Wrong::Type(TEXT)));
        assert_eq!(csv(Cell::Text, "say \"hi\"\n"), same("\"say \\\"hi\\\"\\n\""));
        assert_eq!(
            json(Cell::Anything, "[1, {\"a\": null}]"),
            same("[1, {\"a\": null}]")
        );
        assert_eq!(csv(Cell::Anything, "[1]"), same("\"[1]\""));
    }

    #[test]
    fn truth() {
        assert_eq!(json(Cell::Truth, "true"), same("true"));
        assert_eq!(json(Cell::Truth, "1"), Err(Wrong::Type(TRUTH)));
        for (text, written) in [
            ("True", "true"),
            ("FALSE", "false"),
            ("1", "true"),
            (" 0", "false"),
        ] {
            assert_eq!(csv(Cell::Truth, text), same(written));
        }
        assert_eq!(csv(Cell::Truth, "yes"), Err(Wrong::Type(TRUTH)));
    }

    #[test]
    fn json_in_text_is_unwrapped() {
        assert_eq!(json(Cell::Items, "[1, 2]"), same("[1, 2]"));
        assert_eq!(json(Cell::Items, "\" [1, \\\"x\\\"] \""), same("[1, \"x\"]"));
        assert_eq!(csv(Cell::Items, "[1, 2] "), same("[1, 2]"));
        assert_eq!(json(Cell::Members, "\"{\\\"a\\\": 1}\""), same("{\"a\": 1}"));
        assert_eq!(csv(Cell::Members, "{}"), same("{}"));
        for text in ["\"[1\"", "\"{}\"", "{}", "1", "\"\""] {
            assert_eq!(json(Cell::Items, text), Err(Wrong::Type(ITEMS)), "{text}");
        }
        assert_eq!(csv(Cell::Members, "{'a': 1}"), Err(Wrong::Type(MEMBERS)));
        assert_eq!(csv(Cell::Items, "[1] [2]"), Err(Wrong::Type(ITEMS)));
    }

    #[test]
    fn keys_are_the_same_in_every_writing() {
        let key = |cell, raw| value(cell, raw).unwrap().key().into_owned();
        let text = Kind::Text { escaped: true };
        assert_eq!(key(Cell::Text, Raw::Json(text, "\"a\\u0062\"")), "ab");
        assert_eq!(key(Cell::Text, Raw::Csv("ab")), "ab");
        assert_eq!(key(Cell::Count, Raw::Json(Kind::Number, "7.0")), "7");
        assert_eq!(key(Cell::Count, Raw::Csv("7")), "7");
        assert_eq!(key(Cell::Text, Raw::Json(Kind::Number, "7")), "7");
        assert_eq!(key(Cell::Integer, Raw::Json(Kind::Number, "-1")), "-1");
        assert_eq!(key(Cell::Truth, Raw::Csv("True")), "true");
    }
}
