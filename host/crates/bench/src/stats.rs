//! Percentiles of measured values.

use veeksha_model::Nanos;

/// Number of values, median and 99th percentile, in microseconds. `None` without values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Percentiles {
    pub(crate) count: usize,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Percentiles {
    /// Summarizes nanoseconds.
    pub(crate) fn of(nanos: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut micros: Vec<f64> = nanos.into_iter().map(|nanos| nanos / 1e3).collect();
        micros.sort_unstable_by(f64::total_cmp);
        Some(Percentiles {
            count: micros.len(),
            p50: veeksha_stats::percentile(&micros, 0.5)?,
            p99: veeksha_stats::percentile(&micros, 0.99)?,
        })
    }
}

/// `a - b`, in nanoseconds.
pub(crate) fn difference(a: Nanos, b: Nanos) -> f64 {
    a as f64 - b as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_in_microseconds() {
        let spread = Percentiles::of((0..=100).map(|n| f64::from(n) * 1e3)).expect("values");
        assert_eq!((spread.count, spread.p50, spread.p99), (101, 50.0, 99.0));
        assert_eq!(Percentiles::of([]), None);
    }

    #[test]
    fn difference_is_signed() {
        assert_eq!(difference(1, 3), -2.0);
    }
}
