//! Durations in scripts: a number of seconds, or a string with a unit.

use mlua::Value;
use veeksha_model::Nanos;

use crate::shape::{At, ShapeError, number_of};

/// Upper bound of times, which every guest language can represent.
const LIMIT: f64 = 9_007_199_254_740_992.0;

const EXPECTED: &str = "seconds as a number, or a string with a unit (\"350ms\", \"1.5s\", \"2m\", \"1h\")";

/// Reads a duration in nanoseconds.
pub(crate) fn nanos(at: &At<'_>, value: &Value) -> Result<Nanos, ShapeError> {
    let nanos = match value {
        Value::String(text) => text.to_str().ok().and_then(|text| parse(text.trim())),
        other => number_of(other).map(|seconds| seconds * 1e9),
    };
    match nanos.map(f64::round) {
        Some(nanos) if (0.0..LIMIT).contains(&nanos) => Ok(nanos as Nanos),
        Some(_) => Err(at.shape("expected a duration from 0 to 104 days")),
        None => Err(at.expected(EXPECTED, value)),
    }
}

/// Parses a number with a unit and returns nanoseconds.
fn parse(text: &str) -> Option<f64> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(split);
    let scale = match unit.trim_start() {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read() {
        let at = At::Root("wait");
        for (number, expected) in [(0.35, 350_000_000), (2.0, 2_000_000_000), (0.0, 0)] {
            assert_eq!(nanos(&at, &Value::Number(number)), Ok(expected));
        }
        for (text, expected) in [
            ("350ms", 350e6),
            ("1.5 s", 1.5e9),
            ("2m", 120e9),
            ("1h", 3600e9),
            ("10us", 1e4),
        ] {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
        for text in ["", "ms", "350", "3 weeks", "-1s", "1e3s", "1..2s"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn impossible_durations_are_refused() {
        let at = At::Root("wait");
        for number in [-1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(nanos(&at, &Value::Number(number)).is_err(), "{number}");
        }
    }
}
