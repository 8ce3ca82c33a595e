//! Decimal numbers, shifted by powers of ten without rounding.

/// The largest exponent considered: far beyond the range of a double, and far from overflow.
const MAX_EXPONENT: i64 = 100_000;

/// Returns the double nearest to the decimal number `digits` (with a fraction, an exponent and
/// underscores, but without a sign) times ten to the power of `shift`; `None` if it is out of
/// range.
pub(crate) fn decimal(digits: &str, shift: i64) -> Option<f64> {
    let plain = digits.replace('_', "");
    let (mantissa, exponent) = match plain.split_once(['e', 'E']) {
        None => (plain.as_str(), 0),
        Some((mantissa, exponent)) => {
            let fallback = if exponent.starts_with('-') {
                -MAX_EXPONENT
            } else {
                MAX_EXPONENT
            };
            (mantissa, exponent.parse::<i64>().unwrap_or(fallback))
        }
    };
    let exponent = exponent.clamp(-MAX_EXPONENT, MAX_EXPONENT) + shift;
    let value: f64 = format!("{mantissa}e{exponent}").parse().ok()?;
    let vanished = value == 0.0 && mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    (value.is_finite() && !vanished).then_some(value)
}

/// Returns the shortest decimal text that reads back as this double, times ten to the power of
/// `shift`. [`decimal`] with `-shift` is the inverse.
pub(crate) fn decimal_text(value: f64, shift: i64) -> String {
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let exponent = exponent.parse::<i64>().unwrap_or(0) + shift;
    let digits = mantissa.replace('.', "");
    if digits == "0" {
        return format!("{sign}0");
    }
    let point = exponent + 1;
    let count = digits.len() as i64;
    if !(-6..=21).contains(&point) {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() {
            String::new()
        } else {
            format!(".{rest}")
        };
        format!("{sign}{first}{rest}e{exponent}")
    } else if point <= 0 {
        format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
    } else if point >= count {
        format!("{sign}{digits}{}", "0".repeat((point - count) as usize))
    } else {
        let (whole, fraction) = digits.split_at(point as usize);
        format!("{sign}{whole}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shift_is_exact_where_multiplication_rounds() {
        // 83.3 × 0.001 is 0.08329999999999999 in doubles.
        assert_eq!(decimal("83.3", -3), Some(0.0833));
        assert_eq!(decimal("1_000", -9), Some(1e-6));
        assert_eq!(decimal("1.5e3", -3), Some(1.5));
        assert_eq!(decimal(".5", 0), Some(0.5));
        assert_eq!(decimal("0e999999999999999999999", 0), Some(0.0));
    }

    #[test]
    fn refuses_numbers_out_of_range() {
        for beyond in [
            "1e309",
            "1e999999999999999999999",
            "1e-400",
            "1e-99999999999999999999",
        ] {
            assert_eq!(decimal(beyond, 0), None, "{beyond}");
        }
    }

    #[test]
    fn formats_shifted_decimals() {
        let cases = [
            (0.0833, 3, "83.3"),
            (0.05, 0, "0.05"),
            (0.01, 2, "1"),
            (-0.0125, 3, "-12.5"),
            (0.0, 3, "0"),
            (1e20, 0, "100000000000000000000"),
            (1e21, 0, "1e21"),
            (1e300, 0, "1e300"),
            (1.25e-9, 0, "1.25e-9"),
            (120.0, 0, "120"),
        ];
        for (value, shift, expected) in cases {
            assert_eq!(decimal_text(value, shift), expected);
        }
    }
}
