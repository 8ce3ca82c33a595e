//! Numbers with units as readable text. Files hold full precision.

/// A unit of durations on display.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DurationUnit {
    /// Units per second.
    scale: f64,
    name: &'static str,
}

impl DurationUnit {
    /// Returns the unit that suits a duration of these seconds. Durations that are to be compared
    /// have one unit, that of the largest.
    pub fn of(seconds: f64) -> Self {
        let (scale, name) = match three_digits(seconds).abs() {
            size if size == 0.0 || size >= 1.0 => (1.0, "s"),
            size if size >= 1e-3 => (1e3, "ms"),
            size if size >= 1e-6 => (1e6, "µs"),
            _ => (1e9, "ns"),
        };
        DurationUnit { scale, name }
    }

    /// Formats seconds in this unit, to three significant digits: `0.0123 s`.
    pub fn text(self, seconds: f64) -> String {
        format!("{} {}", number(three_digits(seconds) * self.scale), self.name)
    }
}

/// A duration given in seconds, to three significant digits in the unit that suits it: `12.3 ms`,
/// `1.23 s`, `-45 µs`.
pub fn duration(seconds: f64) -> String {
    DurationUnit::of(seconds).text(seconds)
}

/// Above this, a double cannot represent every integer, so three digits and an exponent are
/// printed.
const NO_LONGER_EXACT: f64 = 1e15;

/// A number to three significant digits, integer digits not cut below 10^15: `0.0123`, `12.3`,
/// `1234`, `1.5e90`.
pub fn number(value: f64) -> String {
    let value = three_digits(value);
    if value == 0.0 || !value.is_finite() {
        return if value.is_finite() { "0".into() } else { "-".into() };
    }
    if value.abs() >= NO_LONGER_EXACT {
        return exponential(value);
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (2 - magnitude).clamp(0, 12) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A count with its noun: `1 request`, `2 requests`.
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

/// A share (`0.0..=1.0`) in percent: `99.2 %`. Only a whole is `100 %`, and only nothing is `0 %`.
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() >= NO_LONGER_EXACT && percent.is_finite() {
        format!("{} %", exponential(percent))
    } else if share > 0.0 && percent < 0.01 {
        "<0.01 %".into()
    } else if share < 1.0 && percent > 99.99 {
        ">99.99 %".into()
    } else if (1.0..=99.0).contains(&percent) {
        format!("{} %", trimmed(&format!("{percent:.1}")))
    } else {
        format!("{} %", trimmed(&format!("{percent:.2}")))
    }
}

/// `1.5e90`.
fn exponential(value: f64) -> String {
    let text = format!("{value:.2e}");
    match text.split_once('e') {
        Some((digits, exponent)) => format!("{}e{exponent}", trimmed(digits)),
        None => text,
    }
}

fn trimmed(text: &str) -> &str {
    text.trim_end_matches('0').trim_end_matches('.')
}

/// Rounds to three significant digits where there is a fraction to drop; larger numbers to
/// integers.
fn three_digits(value: f64) -> f64 {
    if value.abs() >= 100.0 {
        return value.round();
    }
    format!("{value:.2e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_chooses_unit() {
        let cases = [
            (0.0, "0 s"),
            (1.2345, "1.23 s"),
            (83.24, "83.2 s"),
            (3600.4, "3600 s"),
            (0.01234, "12.3 ms"),
            (0.25, "250 ms"),
            (0.000_999_96, "1 ms"),
            (-0.000_045, "-45 µs"),
            (0.000_000_12, "120 ns"),
            (1e90, "1e90 s"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(duration(seconds), expected);
        }
    }

    #[test]
    fn durations_to_compare_have_one_unit() {
        let unit = DurationUnit::of(1.2345);
        let texts = [0.000_012_3, 0.25, 1.2345].map(|seconds| unit.text(seconds));
        assert_eq!(texts, ["0.0000123 s", "0.25 s", "1.23 s"]);
    }

    #[test]
    fn numbers_keep_their_integer_digits() {
        let cases = [
            (1234.5, "1235"),
            (99.96, "100"),
            (12.34, "12.3"),
            (0.012_34, "0.0123"),
            (5.0, "5"),
            (100.0, "100"),
            (999_999_999_999_999.0, "999999999999999"),
            (1e15, "1e15"),
            (-1.2345e90, "-1.23e90"),
            (1e100, "1e100"),
        ];
        for (value, expected) in cases {
            assert_eq!(number(value), expected);
        }
        assert_eq!(number(f64::NAN), "-");
    }

    #[test]
    fn share_rounds_to_100_percent_only_for_1() {
        let cases = [
            (1.0, "100 %"),
            (0.99999, ">99.99 %"),
            (0.9921, "99.21 %"),
            (0.5, "50 %"),
            (0.005, "0.5 %"),
            (0.00001, "<0.01 %"),
            (0.0, "0 %"),
            (1e90, "1e92 %"),
        ];
        for (value, expected) in cases {
            assert_eq!(share(value), expected);
        }
    }
}
