//! Decimal numbers without a detour over floating point: `12.0` is 12, and 1700000000.123456789 s
//! keep their last nanosecond.

/// A decimal number times a power of ten, truncated to a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scaled {
    /// True for a leading minus.
    pub(crate) negative: bool,
    /// Whole part.
    pub(crate) whole: u128,
    /// True if nothing was truncated.
    pub(crate) exact: bool,
    /// True if the truncated part was at least one half.
    pub(crate) half: bool,
}

/// A text that is not a decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecimalError {
    /// Not in the form of a number.
    Syntax,
    /// More than 38 digits before the point.
    TooLarge,
}

/// Parses `[+-]digits[.digits][e[+-]digits]` (either digits may be absent, not both) times
/// 10^`shift`.
pub(crate) fn scaled(text: &str, shift: i64) -> Result<Scaled, DecimalError> {
    let bytes = text.as_bytes();
    let (negative, rest) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (mantissa, exponent) = match rest.iter().position(|b| matches!(b, b'e' | b'E')) {
        Some(at) => (&rest[..at], exponent(&rest[at + 1..])?),
        None => (rest, 0),
    };
    let (before, after) = match memchr::memchr(b'.', mantissa) {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &b""[..]),
    };
    if before.len() + after.len() == 0 {
        return Err(DecimalError::Syntax);
    }
    // Digits before this position belong to the whole part.
    let point = exponent.saturating_add(shift).saturating_add(before.len() as i64);
    let mut number = Scaled {
        negative,
        whole: 0,
        exact: true,
        half: false,
    };
    let mut position: i64 = 0;
    for digit in before.iter().chain(after) {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            _ => return Err(DecimalError::Syntax),
        };
        if position < point {
            number.whole = times_ten(number.whole, digit)?;
        } else if digit != 0 {
            number.exact = false;
            number.half |= position == point && digit >= 5;
        }
        position += 1;
    }
    if number.whole != 0 {
        for _ in position..point.max(position) {
            number.whole = times_ten(number.whole, 0)?;
        }
    }
    Ok(number)
}

fn times_ten(whole: u128, digit: u8) -> Result<u128, DecimalError> {
    whole
        .checked_mul(10)
        .and_then(|whole| whole.checked_add(u128::from(digit)))
        .ok_or(DecimalError::TooLarge)
}

fn exponent(bytes: &[u8]) -> Result<i64, DecimalError> {
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() {
        return Err(DecimalError::Syntax);
    }
    let mut value: i64 = 0;
    for digit in digits {
        match digit {
            b'0'..=b'9' => value = value.saturating_mul(10).saturating_add(i64::from(digit - b'0')),
            _ => return Err(DecimalError::Syntax),
        }
    }
    Ok(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exact(text: &str) -> Option<i128> {
        let number = scaled(text, 0).ok()?;
        let whole = number.whole as i128;
        number
            .exact
            .then_some(if number.negative { -whole } else { whole })
    }

    #[test]
    fn parses_whole_numbers_in_any_form() {
        for (text, value) in [
            ("12", 12),
            ("12.0", 12),
            ("12.", 12),
            ("1.2e1", 12),
            ("1200E-2", 12),
            ("-0.0", 0),
            ("+7", 7),
            ("0e999999999999999999999", 0),
            ("18446744073709551615", i128::from(u64::MAX)),
            ("0.000e5", 0),
            ("0.5e1", 5),
            (".5e+1", 5),
        ] {
            assert_eq!(exact(text), Some(value), "{text}");
        }
        for text in ["12.5", "1e-1", "1e-99999999999999999999", "5e-1"] {
            assert_eq!(exact(text), None, "{text}");
            assert!(scaled(text, 0).is_ok());
        }
        for text in [
            "", "-", ".", "1e", "e5", "1.2.3", "0x10", "1_000", "1,5", "nan", "inf", " 1", "--1", "1e5e5",
        ] {
            assert_eq!(scaled(text, 0), Err(DecimalError::Syntax), "{text}");
        }
        assert_eq!(scaled("1e39", 0), Err(DecimalError::TooLarge));
        assert_eq!(scaled("1e999999999999999999999", 0), Err(DecimalError::TooLarge));
    }

    #[test]
    fn times_keep_their_digits() {
        let nanos = |text, shift| {
            let n = scaled(text, shift).unwrap();
            (n.whole, n.exact, n.half)
        };
        assert_eq!(
            nanos("1700000000.123456789", 9),
            (1_700_000_000_123_456_789, true, false)
        );
        assert_eq!(nanos("27482", 6), (27_482_000_000, true, false));
        assert_eq!(nanos("0.1234567895", 9), (123_456_789, false, true));
        assert_eq!(nanos("0.1234567894999", 9), (123_456_789, false, false));
        assert_eq!(nanos("1.5e-3", 9), (1_500_000, true, false));
        // One nanosecond is 0.000000001 s; a tenth of it is truncated and less than one half.
        assert_eq!(nanos("1e-10", 9), (0, false, false));
        assert_eq!(nanos("0.00000000005", 9), (0, false, false));
    }

    proptest! {
        #[test]
        fn any_whole_number_in_any_shift(value in any::<u64>(), point in 0usize..25, zeros in 0usize..5) {
            // value / 10^point written out, then scaled back by 10^point.
            let digits = format!("{value:0>width$}", width = point + 1);
            let (before, after) = digits.split_at(digits.len() - point);
            let text = format!("{before}.{after}{}", "0".repeat(zeros));
            let number = scaled(&text, point as i64).unwrap();
            prop_assert_eq!((number.whole, number.exact), (u128::from(value), true));
        }
    }
}
