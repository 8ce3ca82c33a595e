//! Samples with their instants, collected in bounded memory.

use veeksha_model::Nanos;

use crate::binned::Binned;
use crate::sample::TimedSample;
use crate::series::Series;
use crate::statistic::ENOUGH;

/// Number of samples of a metric that are kept individually: 5 MiB.
pub const EXACT_SAMPLES: usize = 1 << 17;

/// The samples of one metric of one run, in any order; those of one instant preferably in the order
/// of measurement.
///
/// Up to [`EXACT_SAMPLES`] are kept individually. Beyond that they go into cells of equal time,
/// each with a histogram: at most 256 cells, whose length doubles when the run outgrows them, of
/// columns at most 0.2 % wide, at most 16,384 of them (beyond 32 octaves of values the columns
/// become wider). That is at most 32 MiB, and a few for an ordinary latency. Means stay exact;
/// percentiles are then within 0.2 %. (If nearly all instants are equal, because all requests were
/// due at once, cells have equal numbers of samples in their order.)
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimedSamples {
    exact: Vec<TimedSample>,
    binned: Option<Box<Binned>>,
    origins: Origins,
    count: u64,
    dropped: u64,
}

/// Number of distinct keys of the samples, counted up to the minimum that is needed.
#[derive(Clone, Debug, Default, PartialEq)]
struct Origins {
    keys: Vec<u64>,
    without_key: u64,
}

impl Origins {
    fn push(&mut self, key: Option<u64>) {
        match key {
            None => self.without_key += 1,
            Some(key) if (self.keys.len() as f64) < ENOUGH && !self.keys.contains(&key) => {
                self.keys.push(key);
            }
            Some(_) => {}
        }
    }
}

impl TimedSamples {
    /// Creates an empty collection.
    pub fn new() -> Self {
        TimedSamples::default()
    }

    /// Adds a sample at the instant `at`. Samples that influenced one another should be close in
    /// time: use the instant at which the measured activity began or ended, consistently in all
    /// runs.
    pub fn push(&mut self, at: Nanos, value: f64) {
        self.push_sample(at, value, 1.0, None);
    }

    /// Adds a sample that another run of the same workload has too: `key` identifies a request, for
    /// example by session and node. Runs that did the same work are then compared request by
    /// request, so that a long answer on both sides is not noise. Several samples may have one key
    /// (the gaps of an answer). Samples without keys, and more samples than are kept individually,
    /// are compared unpaired.
    pub fn push_keyed(&mut self, at: Nanos, value: f64, weight: f64, key: u64) {
        self.push_sample(at, value, weight, Some(key));
    }

    /// Adds a sample with a weight. A value or weight that is not finite, and a weight that is not
    /// positive, are dropped; [`TimedSamples::dropped`] counts them.
    pub fn push_weighted(&mut self, at: Nanos, value: f64, weight: f64) {
        self.push_sample(at, value, weight, None);
    }

    fn push_sample(&mut self, at: Nanos, value: f64, weight: f64, key: Option<u64>) {
        if !value.is_finite() || !weight.is_finite() || weight <= 0.0 {
            self.dropped += 1;
            return;
        }
        self.count += 1;
        self.origins.push(key);
        // Normalizes -0.0 to 0.0.
        let value = value + 0.0;
        let sample = TimedSample {
            at,
            value,
            weight,
            key,
        };
        if let Some(binned) = &mut self.binned {
            binned.push(sample);
        } else if self.exact.len() < EXACT_SAMPLES {
            self.exact.push(sample);
        } else {
            let mut binned = Box::new(Binned::new(&self.exact));
            for sample in std::mem::take(&mut self.exact) {
                binned.push(sample);
            }
            binned.push(sample);
            self.binned = Some(binned);
        }
    }

    /// Returns the number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of requests (or other keyed items) of the samples; a sample without a key
    /// counts as one. Exact below 20, the minimum for a verdict; beyond that a lower bound.
    pub(crate) fn origins(&self) -> u64 {
        self.origins.keys.len() as u64 + self.origins.without_key
    }

    /// Returns the number of dropped samples.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the samples if there are any, all were kept, and all have keys.
    pub(crate) fn keyed(&self) -> Option<&[TimedSample]> {
        let all = !self.exact.is_empty() && self.exact.iter().all(|sample| sample.key.is_some());
        all.then_some(&self.exact)
    }

    /// Returns the weighted sum of values in each of at most `cells` equal intervals of the window,
    /// and no more than there are samples. `None` if the samples carry no information about time.
    pub(crate) fn sums_in_time(&self, (from, to): (Nanos, Nanos), cells: usize) -> Option<Vec<f64>> {
        if let Some(binned) = &self.binned {
            return binned.sums_in_time();
        }
        let cells = cells.min(self.exact.len());
        let length = u128::from(to.checked_sub(from).filter(|length| *length > 0)?);
        let mut sums = vec![0.0; cells];
        for sample in &self.exact {
            let place = u128::from(sample.at.saturating_sub(from)) * cells as u128 / length;
            sums[(place as usize).min(cells.checked_sub(1)?)] += sample.value * sample.weight;
        }
        Some(sums)
    }

    pub(crate) fn series(&self) -> Series {
        match &self.binned {
            Some(binned) => binned.series(self.count),
            None => Series::of_samples(self.exact.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns samples uniform on 0.01 to 1.01 s, in an order that is unrelated to time.
    fn many(count: u64) -> TimedSamples {
        let mut samples = TimedSamples::new();
        for i in 0..count {
            let at = (i * 7919) % count;
            let value = 0.01 + ((i * 104_729) % count) as f64 / count as f64;
            samples.push(at * 1_000_000, value);
        }
        samples
    }

    #[test]
    fn many_samples_have_statistics_within_a_fifth_of_a_percent() {
        // A prime, so that the products visit every residue once.
        let count = 300_007;
        let samples = many(count);
        assert!(samples.binned.is_some());
        let series = samples.series();
        assert!(series.is_approximate());
        assert_eq!(series.weight(), count as f64);
        let mean = 0.01 + (count - 1) as f64 / (2.0 * count as f64);
        assert!((series.mean().unwrap() / mean - 1.0).abs() < 1e-12);
        for p in [0.001, 0.1, 0.5, 0.9, 0.99] {
            let exact = 0.01 + (count - 1) as f64 * p / count as f64;
            let seen = series.quantile(p).unwrap();
            assert!((seen / exact - 1.0).abs() < 0.002, "{p}: {seen} is not {exact}");
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut samples = TimedSamples::new();
        // Every octave of doubles, both signs, and instants up to a century.
        for i in 0..400_000u64 {
            let exponent = (i % 2047) << 52;
            let sign = (i / 2047 % 2) << 63;
            let value = f64::from_bits(sign | exponent | (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12));
            samples.push(i * 7_000_000_000_000, value);
        }
        let binned = samples.binned.as_ref().unwrap();
        assert!(binned.bytes() <= 33 << 20, "{}", binned.bytes());
        assert_eq!(samples.series().weight(), 400_000.0);
    }

    #[test]
    fn values_that_are_not_finite_are_dropped() {
        let mut samples = TimedSamples::new();
        for (value, weight) in [
            (f64::NAN, 1.0),
            (f64::INFINITY, 1.0),
            (1.0, 0.0),
            (1.0, -1.0),
            (1.0, f64::NAN),
        ] {
            samples.push_weighted(0, value, weight);
        }
        samples.push(0, 2.0);
        assert_eq!((samples.count(), samples.dropped()), (1, 5));
        assert_eq!(samples.series().mean(), Some(2.0));
    }
}
