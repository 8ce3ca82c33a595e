//! Percentiles while a run is going on, in bounded memory.

use hdrhistogram::Histogram;

/// A histogram of durations in nanoseconds with three significant digits. It serves the progress
/// line and live metrics; final values are computed exactly, from all samples.
#[derive(Clone, Debug)]
pub struct LiveHistogram {
    counts: Histogram<u64>,
}

impl LiveHistogram {
    /// An empty histogram; it grows with the largest value.
    pub fn new() -> Self {
        #[expect(clippy::expect_used, reason = "only a precision above five digits is refused")]
        let counts = Histogram::new(3).expect("three significant digits are allowed");
        LiveHistogram { counts }
    }

    /// Counts one duration.
    pub fn record(&mut self, nanos: u64) {
        // An auto-resizing histogram refuses only what lies beyond i64::MAX / 2; that is counted at
        // the upper end.
        if self.counts.record(nanos).is_err() {
            self.counts.saturating_record(nanos);
        }
    }

    /// Counts one duration as many times.
    pub fn record_many(&mut self, nanos: u64, count: u64) {
        if self.counts.record_n(nanos, count).is_err() {
            self.counts.saturating_record_n(nanos, count);
        }
    }

    /// Durations counted.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The mean in nanoseconds, within 0.1 %; `None` while nothing was counted.
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.counts.mean())
    }

    /// The `p`-quantile (`0.0..=1.0`) in nanoseconds, within 0.1 %; `None` while nothing was
    /// counted.
    pub fn quantile(&self, p: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.counts.value_at_quantile(p))
    }
}

impl Default for LiveHistogram {
    fn default() -> Self {
        LiveHistogram::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_keep_three_digits_from_nanoseconds_to_hours() {
        assert_eq!(LiveHistogram::new().quantile(0.5), None);
        for value in [1, 999, 123_456, 7_654_321_000, 3_600_000_000_000] {
            let mut histogram = LiveHistogram::new();
            histogram.record(value);
            let seen = histogram.quantile(0.5).unwrap();
            assert!(
                seen.abs_diff(value) * 1000 <= value,
                "{value} came back as {seen}"
            );
        }
    }

    #[test]
    fn median_of_a_thousand_values() {
        let mut histogram = LiveHistogram::new();
        (1..=1000).for_each(|millis| histogram.record(millis * 1_000_000));
        let median = histogram.quantile(0.5).unwrap();
        assert!(median.abs_diff(500_000_000) <= 500_000, "{median}");
        assert_eq!(histogram.count(), 1000);
        let mean = histogram.mean().unwrap();
        assert!((mean - 500_500_000.0).abs() <= 500_500.0, "{mean}");
        assert_eq!(LiveHistogram::new().mean(), None);
    }

    #[test]
    fn record_many_equals_repeated_record() {
        let (mut at_once, mut singly) = (LiveHistogram::new(), LiveHistogram::new());
        for (value, count) in [(20_000, 7), (1_000_000, 2), (u64::MAX, 1)] {
            at_once.record_many(value, count);
            (0..count).for_each(|_| singly.record(value));
        }
        at_once.record_many(5, 0);
        assert_eq!(at_once.count(), 10);
        for p in [0.0, 0.5, 0.7, 0.8, 1.0] {
            assert_eq!(at_once.quantile(p), singly.quantile(p));
        }
    }
}
