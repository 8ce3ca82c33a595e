//! Distributions of times: the waits between the requests of a session.

use std::time::Duration;

use veeksha_plugin::{Draws, Error};

use crate::config::Interval;
use crate::length::above_zero;

/// The longest mean wait that is accepted: a day. With it, even rare draws stay within what the
/// contract can carry (2^53 ns, 104 days).
const LONGEST_MEAN_SECONDS: f64 = 86_400.0;

/// The largest time of the contract.
const LARGEST_NANOS: u64 = (1 << 53) - 1;

/// A distribution whose parameters are possible; times in seconds.
#[derive(Debug)]
pub(crate) enum IntervalSampler {
    Fixed(f64),
    Exponential { mean: f64 },
    Gamma { shape: f64, scale: f64 },
}

impl IntervalSampler {
    /// Checks the parameters; `path` is where they stand.
    pub(crate) fn new(interval: Interval, path: &str) -> Result<Self, Error> {
        match interval {
            Interval::Fixed { interval } => {
                if !(0.0..=LONGEST_MEAN_SECONDS).contains(&interval) {
                    return Err(Error::config(
                        format!("{path}/interval"),
                        format!("must lie between 0 and {LONGEST_MEAN_SECONDS} seconds, and is {interval}"),
                    ));
                }
                Ok(IntervalSampler::Fixed(interval))
            }
            Interval::Poisson { arrival_rate } => Ok(IntervalSampler::Exponential {
                mean: mean(arrival_rate, path)?,
            }),
            Interval::Gamma { arrival_rate, cv } => {
                let shape = above_zero(cv, path, "cv")?.powi(2).recip();
                if !shape.is_finite() || shape < 1e-4 {
                    return Err(Error::config(
                        format!("{path}/cv"),
                        format!("must be at most 100, and not so small that its square vanishes; it is {cv}"),
                    ));
                }
                Ok(IntervalSampler::Gamma {
                    shape,
                    scale: mean(arrival_rate, path)? / shape,
                })
            }
        }
    }

    /// The next time.
    pub(crate) fn sample(&self, draws: &mut Draws) -> Duration {
        let nanos = self.seconds(draws) * 1e9;
        Duration::from_nanos((nanos.round() as u64).min(LARGEST_NANOS))
    }

    fn seconds(&self, draws: &mut Draws) -> f64 {
        match self {
            IntervalSampler::Fixed(seconds) => *seconds,
            IntervalSampler::Exponential { mean } => draws.exponential() * mean,
            IntervalSampler::Gamma { shape, scale } => draws.gamma(*shape) * scale,
        }
    }
}

fn mean(arrival_rate: f64, path: &str) -> Result<f64, Error> {
    let mean = above_zero(arrival_rate, path, "arrival_rate")?.recip();
    if mean > LONGEST_MEAN_SECONDS {
        return Err(Error::config(
            format!("{path}/arrival_rate"),
            format!(
                "must be at least one a day ({:.2e} per second), and is {arrival_rate}",
                1.0 / 86_400.0
            ),
        ));
    }
    Ok(mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random;

    const N: usize = 200_000;

    fn sampler(json: &str) -> Result<IntervalSampler, Error> {
        IntervalSampler::new(veeksha_plugin::config::from_json(json)?, "/x")
    }

    fn values(json: &str) -> Vec<f64> {
        let sampler = sampler(json).unwrap();
        let mut draws = random(2, 0).stream("wait");
        (0..N).map(|_| sampler.sample(&mut draws).as_secs_f64()).collect()
    }

    fn moments(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
        (mean, variance.sqrt())
    }

    /// Rate 5: mean and standard deviation 0.2; beyond three means lies e^-3, which Veeksha cuts
    /// off.
    #[test]
    fn poisson_is_exponential_and_not_clipped() {
        let values = values(r#"{"type": "poisson", "arrival_rate": 5}"#);
        let (mean, deviation) = moments(&values);
        assert!((mean - 0.2).abs() < 0.0023, "{mean}");
        assert!((deviation - 0.2).abs() < 0.0033, "{deviation}");
        let beyond = values.iter().filter(|&&value| value > 0.6).count() as f64 / N as f64;
        assert!((beyond - (-3f64).exp()).abs() < 0.0025, "{beyond}");
    }

    #[test]
    fn gamma_has_its_mean_and_its_coefficient_of_variation() {
        for cv in [0.5, 1.0, 2.0] {
            let (mean, deviation) = moments(&values(&format!(
                r#"{{"type": "gamma", "arrival_rate": 4, "cv": {cv}}}"#
            )));
            assert!(
                (mean - 0.25).abs() < 5.0 * 0.25 * cv / (N as f64).sqrt(),
                "{mean}"
            );
            assert!(
                (deviation / mean / cv - 1.0).abs() < 0.025 * cv.max(1.0),
                "{deviation}"
            );
        }
    }

    #[test]
    fn fixed_is_exact_to_the_nanosecond() {
        let sampler = sampler(r#"{"type": "fixed", "interval": 0.35}"#).unwrap();
        assert_eq!(
            sampler.sample(&mut random(0, 0).stream("wait")),
            Duration::from_millis(350)
        );
    }

    #[test]
    fn refuses_impossible_parameters_with_their_path() {
        let cases = [
            (r#"{"type": "fixed", "interval": -1}"#, "/x/interval"),
            (r#"{"type": "fixed", "interval": 1e9}"#, "/x/interval"),
            (r#"{"type": "poisson", "arrival_rate": 0}"#, "/x/arrival_rate"),
            (r#"{"type": "poisson", "arrival_rate": 1e-9}"#, "/x/arrival_rate"),
            (r#"{"type": "gamma", "arrival_rate": -2}"#, "/x/arrival_rate"),
            (r#"{"type": "gamma", "cv": 0}"#, "/x/cv"),
            (r#"{"type": "gamma", "cv": 1e-200}"#, "/x/cv"),
            (r#"{"type": "gamma", "cv": 101}"#, "/x/cv"),
        ];
        for (json, path) in cases {
            assert_eq!(sampler(json).unwrap_err().path.as_deref(), Some(path), "{json}");
        }
    }
}
