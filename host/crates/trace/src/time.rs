//! Recorded instants as exact whole nanoseconds.

use jiff::Timestamp;
use jiff::civil;
use jiff::tz::TimeZone;
use veeksha_ports::TimestampUnit;

use crate::decimal::{DecimalError, scaled};

/// A cell that is not an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeError {
    /// A number was expected.
    NotNumber,
    /// A date was expected.
    NotDate,
    /// Beyond about 292 years.
    TooFar,
}

/// Parses an instant into nanoseconds since the trace's own origin (dates: 1970). More than nine
/// decimals of a second are rounded.
pub(crate) fn instant(text: &str, unit: TimestampUnit) -> Result<i64, TimeError> {
    let shift: u32 = match unit {
        TimestampUnit::Seconds => 9,
        TimestampUnit::Milliseconds => 6,
        TimestampUnit::Microseconds => 3,
        TimestampUnit::Nanoseconds => 0,
        TimestampUnit::DateTime => return date_time(text),
    };
    if let Some(nanos) = plain_number(text.as_bytes(), shift) {
        return Ok(nanos);
    }
    let number = scaled(text, i64::from(shift)).map_err(|error| match error {
        DecimalError::Syntax => TimeError::NotNumber,
        DecimalError::TooLarge => TimeError::TooFar,
    })?;
    let whole = i64::try_from(number.whole).map_err(|_| TimeError::TooFar)?;
    let rounded = whole
        .checked_add(i64::from(number.half))
        .ok_or(TimeError::TooFar)?;
    Ok(if number.negative { -rounded } else { rounded })
}

/// Parses `digits[.digits]` with up to nine digits on each side and no fraction of a nanosecond.
/// `None` for any other form.
fn plain_number(bytes: &[u8], shift: u32) -> Option<i64> {
    let (whole, decimals) = match memchr::memchr(b'.', bytes) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &b""[..]),
    };
    if !(1..=9).contains(&whole.len()) || decimals.len() > shift as usize {
        return None;
    }
    let fraction = digits(decimals)? * 10i64.pow(shift - decimals.len() as u32);
    Some(digits(whole)? * 10i64.pow(shift) + fraction)
}

fn date_time(text: &str) -> Result<i64, TimeError> {
    if let Some(nanos) = plain_date_time(text.as_bytes()) {
        return Ok(nanos);
    }
    let stamp = match text.parse::<Timestamp>() {
        Ok(stamp) => stamp,
        Err(_) => text
            .parse::<civil::DateTime>()
            .and_then(|date| date.to_zoned(TimeZone::UTC))
            .map_err(|_| TimeError::NotDate)?
            .timestamp(),
    };
    i64::try_from(stamp.as_nanosecond()).map_err(|_| TimeError::TooFar)
}

/// Parses `YYYY-MM-DD hh:mm:ss[.f]` in UTC, with `T` or a space between: the form of nearly all
/// traces, and many times faster than the general parser. `None` for any other form.
fn plain_date_time(bytes: &[u8]) -> Option<i64> {
    let (fixed, rest) = bytes.split_at_checked(19)?;
    for (at, wanted) in [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')] {
        if fixed[at] != wanted {
            return None;
        }
    }
    if !matches!(fixed[10], b' ' | b'T') {
        return None;
    }
    let [year, month, day] = [
        digits(&fixed[..4])?,
        digits(&fixed[5..7])?,
        digits(&fixed[8..10])?,
    ];
    let [hour, minute, second] = [
        digits(&fixed[11..13])?,
        digits(&fixed[14..16])?,
        digits(&fixed[17..])?,
    ];
    // Years that fit into 64 bits of nanoseconds, without leap seconds: the general parser handles
    // the others.
    if !(1678..2262).contains(&year) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days_since_1970(year, month, day)?;
    let rest = rest.strip_suffix(b"Z").unwrap_or(rest);
    let fraction = match rest {
        [] => 0,
        [b'.', decimals @ ..] if (1..=9).contains(&decimals.len()) => {
            digits(decimals)? * 10i64.pow(9 - decimals.len() as u32)
        }
        _ => return None,
    };
    Some(((days * 24 + hour) * 60 + minute) * 60_000_000_000 + second * 1_000_000_000 + fraction)
}

fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0, |value, byte| match byte {
        b'0'..=b'9' => Some(value * 10 + i64::from(byte - b'0')),
        _ => None,
    })
}

/// Returns the days of the Gregorian calendar, by counting the days of whole years and months.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    const LENGTH: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let month = usize::try_from(month).ok()?.checked_sub(1)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = LENGTH.get(month)? + i64::from(leap && month == 1);
    if !(1..=length).contains(&day) {
        return None;
    }
    let past = year - 1;
    let leap_days = past / 4 - past / 100 + past / 400 - 477;
    Some((year - 1970) * 365 + leap_days + BEFORE[month] + i64::from(leap && month > 1) + day - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_of_each_unit() {
        for (text, unit, nanos) in [
            ("27482", TimestampUnit::Milliseconds, 27_482_000_000),
            ("0.25", TimestampUnit::Milliseconds, 250_000),
            ("-1.5", TimestampUnit::Seconds, -1_500_000_000),
            (
                "1700000000.123456789",
                TimestampUnit::Seconds,
                1_700_000_000_123_456_789,
            ),
            ("1e3", TimestampUnit::Microseconds, 1_000_000),
            ("7", TimestampUnit::Nanoseconds, 7),
            ("0.0000000015", TimestampUnit::Seconds, 2),
            ("-0.0000000015", TimestampUnit::Seconds, -2),
        ] {
            assert_eq!(instant(text, unit), Ok(nanos), "{text}");
        }
        assert_eq!(instant("1e10", TimestampUnit::Seconds), Err(TimeError::TooFar));
        assert_eq!(instant("soon", TimestampUnit::Seconds), Err(TimeError::NotNumber));
    }

    /// 2023-11-16 is 19,677 days after 1970-01-01: 53 years of 365 days, 13 leap days (1972 to
    /// 2020), and 319 days.
    #[test]
    fn dates() {
        let midnight = (53 * 365 + 13 + 319) * 86_400_000_000_000i64;
        let evening = midnight + ((18 * 60 + 17) * 60 + 3) * 1_000_000_000;
        for (text, nanos) in [
            ("2023-11-16 18:17:03.9799600", evening + 979_960_000),
            ("2023-11-16T18:17:03.97996Z", evening + 979_960_000),
            ("2023-11-16T19:17:03+01:00", evening),
            ("2023-11-16 18:17:03.123456789", evening + 123_456_789),
            ("2023-11-16", midnight),
            ("2023-11-16T18:17", evening - 3_000_000_000),
        ] {
            assert_eq!(instant(text, TimestampUnit::DateTime), Ok(nanos), "{text}");
        }
        for text in [
            "",
            "yesterday",
            "1700000000",
            "2023-02-29 00:00:00",
            "2023-13-01 00:00:00",
            "2023-11-16 25:00:00",
            "16/11/2023 18:17:03",
        ] {
            assert_eq!(
                instant(text, TimestampUnit::DateTime),
                Err(TimeError::NotDate),
                "{text}"
            );
        }
        assert_eq!(
            instant("2300-01-01 00:00:00", TimestampUnit::DateTime),
            Err(TimeError::TooFar)
        );
    }

    proptest! {
        /// The short path must agree with the general one wherever it returns a value.
        #[test]
        fn the_short_way_of_numbers_agrees(text in "[0-9]{0,10}(\\.[0-9]{0,10})?", shift in prop::sample::select(vec![0u32, 3, 6, 9])) {
            if let Some(nanos) = plain_number(text.as_bytes(), shift) {
                let number = scaled(&text, i64::from(shift)).unwrap();
                prop_assert!(number.exact && !number.negative);
                prop_assert_eq!(number.whole, nanos as u128);
            }
        }

        /// The short path must agree with the calendar library wherever it returns a value.
        #[test]
        fn the_short_way_agrees_with_jiff(
            year in 1600i64..2400, month in 0i64..14, day in 0i64..33, hour in 0i64..25, minute in 0i64..61, second in 0i64..60,
            fraction in "(\\.[0-9]{1,9})?", between in "[ T]",
        ) {
            let text = format!("{year:04}-{month:02}-{day:02}{between}{hour:02}:{minute:02}:{second:02}{fraction}");
            let judge = text.parse::<civil::DateTime>().ok().and_then(|d| d.to_zoned(TimeZone::UTC).ok());
            let judge = judge.and_then(|zoned| i64::try_from(zoned.timestamp().as_nanosecond()).ok());
            if let Some(nanos) = plain_date_time(text.as_bytes()) {
                prop_assert_eq!(Some(nanos), judge, "{}", text);
            } else if (1678..2262).contains(&year) {
                prop_assert_eq!(None, judge, "{}", text);
            }
        }
    }
}
