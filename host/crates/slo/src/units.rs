//! Conversion of bounds to the unit of the bounded quantity.

use crate::objective::{BoundUnit, SloBound};

/// A bound whose unit does not match the bounded quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitMismatch {
    /// A time bounds a quantity that is not a time.
    #[error(
        "`{bound}` is a time, but the metric's unit is {unit}; leave `{suffix}` out, or bound another metric"
    )]
    Time {
        /// The bound as text.
        bound: String,
        /// Description of the quantity's unit.
        unit: String,
        /// The bound's unit.
        suffix: String,
    },
    /// A plain number bounds a time: `p99(ttfc) < 500` would mean 500 seconds.
    #[error("`{bound}` has no unit, and the metric is a time; write `{bound}ms` or `{bound}s`")]
    Missing {
        /// The bound as text.
        bound: String,
    },
    /// A percentage bounds a quantity that is not a share.
    #[error("`{bound}` is a share, but the metric's unit is {unit}; give a number in that unit")]
    Percent {
        /// The bound as text.
        bound: String,
        /// Description of the quantity's unit.
        unit: String,
    },
}

/// Returns the length of a second in this unit of time.
fn per_second(unit: &str) -> Option<f64> {
    match unit {
        "s" | "sec" | "second" | "seconds" => Some(1.0),
        "ms" | "milliseconds" => Some(1e3),
        "us" | "µs" | "μs" | "microseconds" => Some(1e6),
        "ns" | "nanoseconds" => Some(1e9),
        "m" | "min" | "minutes" => Some(1.0 / 60.0),
        "h" | "hours" => Some(1.0 / 3600.0),
        _ => None,
    }
}

/// Returns the size of a whole in this unit of ratios.
fn per_whole(unit: &str) -> Option<f64> {
    match unit {
        "" | "1" | "ratio" | "share" | "fraction" => Some(1.0),
        "%" | "percent" => Some(100.0),
        _ => None,
    }
}

impl SloBound {
    /// Converts the bound to the unit of the bounded quantity: `500ms` is 0.5 in `s` and 500 in
    /// `ms`; `1%` is 0.01 in `1` and 1 in `%`. A bound on a time must have a unit, unless it is 0;
    /// any other bound without a unit is already in that of the quantity. Units of time are `s`,
    /// `ms`, `us`, `ns`, `m`, `h`; of shares `1`, `ratio`, `share`, `%`.
    pub fn in_unit(&self, unit: &str) -> Result<f64, UnitMismatch> {
        let scale = match self.unit {
            BoundUnit::None if self.value != 0.0 && per_second(unit).is_some() => {
                return Err(UnitMismatch::Missing {
                    bound: self.to_string(),
                });
            }
            BoundUnit::None => Some(1.0),
            BoundUnit::Time => per_second(unit),
            BoundUnit::Percent => per_whole(unit),
        };
        scale
            .map(|scale| self.value * scale)
            .ok_or_else(|| self.mismatch(unit))
    }

    fn mismatch(&self, unit: &str) -> UnitMismatch {
        let bound = self.to_string();
        let unit = match unit {
            "" | "1" => "a plain ratio".to_owned(),
            other => format!("`{other}`"),
        };
        match self.unit {
            BoundUnit::Percent => UnitMismatch::Percent { bound, unit },
            _ => UnitMismatch::Time {
                suffix: bound
                    .trim_start_matches(|c: char| !c.is_ascii_alphabetic())
                    .to_owned(),
                bound,
                unit,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(value: f64, unit: BoundUnit) -> SloBound {
        SloBound { value, unit }
    }

    #[test]
    fn converts_bounds_to_the_unit_of_the_metric() {
        let cases = [
            (bound(0.5, BoundUnit::Time), "s", 0.5),
            (bound(0.5, BoundUnit::Time), "ms", 500.0),
            (bound(120.0, BoundUnit::Time), "min", 2.0),
            (bound(0.01, BoundUnit::Percent), "1", 0.01),
            (bound(0.01, BoundUnit::Percent), "%", 1.0),
            (bound(20.0, BoundUnit::None), "tokens/s", 20.0),
            (bound(0.0, BoundUnit::None), "ms", 0.0),
            (bound(7200.0, BoundUnit::Time), "h", 2.0),
            (bound(90.0, BoundUnit::Time), "m", 1.5),
            (bound(0.25, BoundUnit::Time), "us", 250_000.0),
            (bound(0.25, BoundUnit::Time), "ns", 250_000_000.0),
        ];
        for (bound, unit, expected) in cases {
            assert_eq!(bound.in_unit(unit), Ok(expected), "{bound} in {unit}");
        }
    }

    #[test]
    fn refuses_bounds_of_another_dimension() {
        let text = |bound: SloBound, unit| bound.in_unit(unit).unwrap_err().to_string();
        insta::assert_snapshot!(text(bound(0.5, BoundUnit::Time), "tokens"), @"`500ms` is a time, but the metric's unit is `tokens`; leave `ms` out, or bound another metric");
        insta::assert_snapshot!(text(bound(0.5, BoundUnit::Time), "1"), @"`500ms` is a time, but the metric's unit is a plain ratio; leave `ms` out, or bound another metric");
        insta::assert_snapshot!(text(bound(500.0, BoundUnit::None), "s"), @"`500` has no unit, and the metric is a time; write `500ms` or `500s`");
        insta::assert_snapshot!(text(bound(0.05, BoundUnit::Percent), "s"), @"`5%` is a share, but the metric's unit is `s`; give a number in that unit");
    }
}
