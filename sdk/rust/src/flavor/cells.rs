//! Readers of the cells of a row: lengths in tokens, and times.

use std::time::Duration;

use super::row::Row;
use crate::types::Error;

/// Times of the contract stay below 2^53 nanoseconds, which are 104 days.
const NANOS: f64 = 9_007_199_254_740_992.0;

impl<R> Row<R> {
    /// A number of tokens, from the column `name`.
    ///
    /// # Errors
    /// More than 32 bits hold.
    pub fn tokens(&self, name: &str, value: u64) -> Result<u32, Error> {
        u32::try_from(value)
            .map_err(|_| self.error(format!("`{name}` is {value}, more tokens than {}", u32::MAX)))
    }

    /// A time in seconds, from the column `name`.
    ///
    /// # Errors
    /// A time below 0, or of 104 days or more.
    pub fn seconds(&self, name: &str, value: f64) -> Result<Duration, Error> {
        self.time(name, value, "seconds", 1e9)
    }

    /// A time in milliseconds, from the column `name`.
    ///
    /// # Errors
    /// As of [`seconds`](Self::seconds).
    pub fn milliseconds(&self, name: &str, value: f64) -> Result<Duration, Error> {
        self.time(name, value, "milliseconds", 1e6)
    }

    fn time(&self, name: &str, value: f64, unit: &str, nanos: f64) -> Result<Duration, Error> {
        let time = (value * nanos).round();
        if (0.0..NANOS).contains(&time) {
            return Ok(Duration::from_nanos(time as u64));
        }
        Err(self.error(format!(
            "`{name}` is {value}, not a time from 0 {unit} to 104 days"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Row<()> = Row {
        number: 7,
        at: None,
        cells: (),
    };

    #[test]
    fn lengths_fit_32_bits() {
        assert_eq!(ROW.tokens("in", 4_294_967_295), Ok(u32::MAX));
        let error = ROW.tokens("in", 4_294_967_296).unwrap_err();
        assert_eq!(
            error.message,
            "row 7: `in` is 4294967296, more tokens than 4294967295"
        );
    }

    #[test]
    fn times_are_rounded_to_nanoseconds_and_bounded() {
        assert_eq!(ROW.seconds("t", 0.1), Ok(Duration::from_millis(100)));
        assert_eq!(ROW.seconds("t", -0.0), Ok(Duration::ZERO));
        assert_eq!(ROW.milliseconds("delay", 1.5), Ok(Duration::from_micros(1500)));
        let error = ROW.milliseconds("delay", -2.0).unwrap_err();
        assert_eq!(
            error.message,
            "row 7: `delay` is -2, not a time from 0 milliseconds to 104 days"
        );
        for impossible in [f64::NAN, f64::INFINITY, 104.25 * 86_400.0] {
            assert!(ROW.seconds("t", impossible).is_err(), "{impossible}");
        }
        assert!(ROW.seconds("t", 104.24 * 86_400.0).is_ok());
    }
}
