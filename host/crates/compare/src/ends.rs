//! Formatting of interval bounds with as many digits as distinguish them.

use veeksha_stats::number;

/// Maximum number of additional digits for a narrow interval.
const MORE: usize = 4;

/// Formats `-12.3 % … +4.1 %`. `text` formats a bound with a number of additional digits. Bounds
/// that even the maximum does not distinguish are shown as approximately one value; equal bounds as
/// exactly one.
pub(crate) fn ends_text((low, high): (f64, f64), text: impl Fn(f64, usize) -> String) -> String {
    let ends = |more| (text(low, more), text(high, more));
    let distinct = (0..=MORE).map(ends).find(|(low, high)| low != high);
    match distinct {
        Some((low, high)) => format!("{low} … {high}"),
        None if low == high => format!("exactly {}", text(low, 0)),
        None => format!("almost exactly {}", text(low, 0)),
    }
}

/// Formats a relative change in percent, without sign or unit: two decimals, one from 10 on, none
/// from 100 on; values below 0.01 with one digit. For a decrease, the remainder has these digits:
/// `-99.97` and `-99.94` are different changes.
pub(crate) fn percent(value: f64, more: usize) -> String {
    let size = if value < 0.0 {
        value.abs().min(100.0 + value)
    } else {
        value
    };
    let decimals = match size {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.01 => 2,
        size if size > 0.0 => (-size.log10().floor()).min(12.0) as usize,
        _ => 0,
    };
    to_decimals(value, decimals + more)
}

/// Formats a time difference in a suitable unit.
pub(crate) fn seconds(value: f64, more: usize) -> String {
    let (scale, unit) = match value.abs() {
        size if size == 0.0 || size >= 1.0 => (1.0, "s"),
        size if size >= 1e-3 => (1e3, "ms"),
        size if size >= 1e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    };
    match more {
        0 => veeksha_stats::duration(value),
        more => format!("{} {unit}", plain(value * scale, more)),
    }
}

/// Formats a number with three significant digits and some more.
pub(crate) fn plain(value: f64, more: usize) -> String {
    let magnitude = value.abs().log10().floor();
    match more {
        more if more > 0 && magnitude.is_finite() => {
            to_decimals(value, (2.0 - magnitude).clamp(0.0, 12.0) as usize + more)
        }
        _ => number(value),
    }
}

fn to_decimals(value: f64, decimals: usize) -> String {
    // Beyond that a double has no decimals, and its digits are meaningless.
    if value.abs() >= 1e15 || !value.is_finite() {
        return number(value);
    }
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    match text {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percents_have_significant_digits() {
        for (value, expected) in [
            (0.0, "0"),
            (5.123, "5.12"),
            (-0.3421, "-0.34"),
            (12.345, "12.3"),
            (729.4, "729"),
            (1270.0, "1270"),
            (1e20, "1e20"),
            (0.001_234, "0.001"),
            // The remainders are 16.2, 3.877, 0.03, 0.0012 and 0.
            (-83.81, "-83.8"),
            (-96.123, "-96.12"),
            (-99.97, "-99.97"),
            (-99.9988, "-99.999"),
            (-100.0, "-100"),
        ] {
            assert_eq!(percent(value, 0), expected);
        }
        assert_eq!(percent(-83.8123, 2), "-83.812");
    }

    #[test]
    fn ends_have_the_digits_that_distinguish_them() {
        let text = |value: f64, more| format!("{} %", percent(value, more));
        for (ends, expected) in [
            ((-12.34, 4.1), "-12.3 % … 4.1 %"),
            ((-83.812, -83.798), "-83.81 % … -83.8 %"),
            ((-83.801_2, -83.801_1), "-83.8012 % … -83.8011 %"),
            ((-83.800_001, -83.8), "almost exactly -83.8 %"),
            ((-83.8, -83.8), "exactly -83.8 %"),
        ] {
            assert_eq!(ends_text(ends, text), expected);
        }
        let times = |ends| ends_text(ends, seconds);
        assert_eq!(times((0.012_341, 0.012_344)), "12.341 ms … 12.344 ms");
        assert_eq!(times((-0.5, 0.012_3)), "-500 ms … 12.3 ms");
        assert_eq!(ends_text((1234.51, 1234.53), plain), "1234.51 … 1234.53");
    }
}
