//! Synthetic runs from processes with known true values.

use veeksha_compare::{CompareSide, MetricData, RunData, TimedSamples};
use veeksha_model::Better;
use veeksha_stats::{Draws, RandomStream};

/// Returns random numbers for a purpose and a number.
pub(crate) fn draws(purpose: &str, number: u64) -> Draws {
    RandomStream::new(2024, number, purpose).draws()
}

/// Returns a stationary AR(1) process with mean 0 and standard deviation 1.
pub(crate) fn autoregressive(correlation: f64, count: usize, draws: &mut Draws) -> Vec<f64> {
    let innovation = (1.0 - correlation.powi(2)).sqrt();
    let mut value = draws.normal();
    let mut next = || {
        let now = value;
        value = correlation * value + innovation * draws.normal();
        now
    };
    (0..count).map(|_| next()).collect()
}

/// Creates a metric of these values, one every 10 ms.
pub(crate) fn metric(name: &str, better: Better, values: impl IntoIterator<Item = f64>) -> MetricData {
    let mut samples = TimedSamples::new();
    for (place, value) in values.into_iter().enumerate() {
        samples.push(place as u64 * 10_000_000, value);
    }
    MetricData::new(name, "s", better, samples)
}

/// Creates a run of one metric.
pub(crate) fn run(label: &str, metrics: Vec<MetricData>) -> RunData {
    RunData {
        label: label.into(),
        workload: Some(vec![(1, "a".into()), (2, "b".into())]),
        metrics,
        ..RunData::default()
    }
}

/// Creates a side of one run with one metric, where less is better.
pub(crate) fn side(label: &str, values: impl IntoIterator<Item = f64>) -> CompareSide {
    CompareSide {
        label: label.into(),
        runs: vec![run(label, vec![metric("ttfc", Better::Less, values)])],
    }
}

/// Returns 1000 values around `centre`, evenly spread over a tenth of it, in an order that is
/// unrelated to their size.
pub(crate) fn even(centre: f64) -> impl Iterator<Item = f64> {
    let mut steps: Vec<u32> = (0..1000).collect();
    let mut draws = draws("even", 0);
    for place in (1..1000).rev() {
        steps.swap(place as usize, draws.below(place + 1) as usize);
    }
    steps
        .into_iter()
        .map(move |step| centre * (0.95 + 0.1 * f64::from(step) / 999.0))
}
