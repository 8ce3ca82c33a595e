//! Percentiles of what was measured.

use veeksha_model::Nanos;

/// Half of the values, and 99 of 100 of them, are at most so large; in microseconds. `None` of no values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) count: usize,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Spread {
    /// Of nanoseconds.
    pub(crate) fn of(nanos: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut micros: Vec<f64> = nanos.into_iter().map(|nanos| nanos / 1e3).collect();
        micros.sort_unstable_by(f64::total_cmp);
        Some(Spread {
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
    fn a_spread_is_in_microseconds() {
        let spread = Spread::of((0..=100).map(|n| f64::from(n) * 1e3)).expect("values");
        assert_eq!((spread.count, spread.p50, spread.p99), (101, 50.0, 99.0));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn differences_have_a_sign() {
        assert_eq!(difference(1, 3), -2.0);
    }
}
