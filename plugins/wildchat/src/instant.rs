//! Points in time, as WildChat writes them.

use serde_json::Value;

use crate::config::Unit;

/// Nanoseconds since 1970. Signed, so that differences of times in any order can be taken.
pub(crate) type Instant = i128;

const SECOND: i128 = 1_000_000_000;

/// Reads the `timestamp` of a row or a message; `None` where there is none.
///
/// # Errors
/// A message for a value that is not a time of this unit.
pub(crate) fn read(value: Option<&Value>, unit: Unit) -> Result<Option<Instant>, String> {
    let value = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value,
    };
    let read = match (unit.nanos(), value) {
        (Some(nanos), Value::Number(number)) => number.as_f64().map(|number| (number * nanos) as i128),
        (Some(nanos), Value::String(digits)) => {
            digits.parse::<f64>().ok().map(|number| (number * nanos) as i128)
        }
        (None, Value::String(written)) => date_time(written.trim()),
        _ => None,
    };
    match read {
        Some(instant) => Ok(Some(instant)),
        None => Err(format!(
            "`timestamp` is {value}, which is not a time of the unit in `timestamp_unit`"
        )),
    }
}

/// `2023-04-09T00:02:53`, also with a space for the T, a fraction, and `Z` or an offset (`+02:00`).
fn date_time(written: &str) -> Option<Instant> {
    let (date, time) = written.split_once(['T', ' '])?;
    let (time, offset) = match time.find(['Z', '+', '-']) {
        None => (time, 0),
        Some(at) => (&time[..at], seconds_east(&time[at..])?),
    };
    let [year, month, day] = numbers(date, '-')?;
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [hour, minute, second] = numbers(whole, ':')?;
    let possible = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !possible {
        return None;
    }
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
    Some(i128::from(seconds) * SECOND + nanoseconds(fraction)?)
}

/// Exactly three whole numbers.
fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let mut parts = text.split(separator).map(|part| {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit()) && part.len() <= 4;
        digits.then(|| part.parse::<i64>().ok()).flatten()
    });
    let three = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(three)
}

/// `Z`, `+02:00`, `-0330`, `+02`.
fn seconds_east(offset: &str) -> Option<i64> {
    let (sign, rest) = match offset.split_at_checked(1)? {
        ("Z", "") => return Some(0),
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let digits: String = rest.chars().filter(|digit| *digit != ':').collect();
    let (hours, minutes) = digits.split_at_checked(2)?;
    let minutes: i64 = if minutes.is_empty() {
        0
    } else {
        minutes.parse().ok()?
    };
    Some(sign * (hours.parse::<i64>().ok()? * 3600 + minutes * 60))
}

/// The first nine digits after the point.
fn nanoseconds(fraction: &str) -> Option<i128> {
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    Some(digits.fold(0, |sum, digit| sum * 10 + i128::from(digit - b'0')))
}

/// Days of the Gregorian calendar since 1 January 1970. Years are counted from March, so that a
/// leap day is a year's last; 400 of them have 146,097 days.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let from_march = (month + 9) % 12;
    let year = if month <= 2 { year - 1 } else { year };
    let days = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    days + (from_march * 306 + 5) / 10 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(value: Value, unit: Unit) -> Option<Instant> {
        read(Some(&value), unit).unwrap()
    }

    /// Known instants: the beginning of 1970, a leap day (`date -u -d 2024-02-29T12:00:00 +%s`),
    /// the 1,000,000,000th second.
    #[test]
    fn dates_are_seconds_since_1970() {
        for (written, seconds) in [
            ("1970-01-01T00:00:00", 0),
            ("2024-02-29T12:00:00Z", 1_709_208_000),
            ("2001-09-09 01:46:40", 1_000_000_000),
            ("2001-09-09T03:46:40+02:00", 1_000_000_000),
            ("2001-09-08T22:16:40-0330", 1_000_000_000),
            ("1969-12-31T23:59:59", -1),
        ] {
            assert_eq!(
                at(json!(written), Unit::DateTime),
                Some(seconds * SECOND),
                "{written}"
            );
        }
        assert_eq!(
            at(json!("1970-01-01T00:00:01.25Z"), Unit::DateTime),
            Some(1_250_000_000)
        );
    }

    #[test]
    fn numbers_have_the_configured_unit() {
        assert_eq!(
            at(json!(1_680_998_573), Unit::Seconds),
            Some(1_680_998_573 * SECOND)
        );
        assert_eq!(at(json!("1500"), Unit::Milliseconds), Some(1_500_000_000));
        assert_eq!(at(json!(2.5), Unit::Microseconds), Some(2_500));
        assert_eq!(at(Value::Null, Unit::DateTime), None);
        assert_eq!(read(None, Unit::Seconds), Ok(None));
    }

    #[test]
    fn names_what_is_not_a_time() {
        for (value, unit) in [
            (json!("yesterday"), Unit::DateTime),
            (json!("2023-13-01T00:00:00"), Unit::DateTime),
            (json!("2023-01-01T24:00:00"), Unit::DateTime),
            (json!("2023-01-01T00:00:00.x"), Unit::DateTime),
            (json!("2023-01-01T00:00"), Unit::DateTime),
            (json!(1_680_998_573), Unit::DateTime),
            (json!("2023-01-01T00:00:00"), Unit::Seconds),
            (json!(true), Unit::Seconds),
        ] {
            assert!(
                read(Some(&value), unit).unwrap_err().contains("timestamp_unit"),
                "{value}"
            );
        }
    }

    #[test]
    fn a_day_follows_the_day_before() {
        let months = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut expected = days_since_1970(1899, 12, 31);
        for year in 1900..2101 {
            let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
            for (month, days) in (1..).zip(months) {
                let days = if month == 2 && leap { 29 } else { days };
                for day in 1..=days {
                    expected += 1;
                    assert_eq!(
                        days_since_1970(year, month, day),
                        expected,
                        "{year}-{month}-{day}"
                    );
                }
            }
        }
    }
}
