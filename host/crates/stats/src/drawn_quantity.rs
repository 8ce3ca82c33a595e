//! Distributions of positive quantities.

use crate::random::Draws;

/// A distribution of a quantity that is not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DrawnQuantity {
    /// Always the same value.
    Constant(f64),
    /// Uniform between two values.
    Uniform {
        /// The smallest value.
        min: f64,
        /// The largest value.
        max: f64,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        mean: f64,
    },
    /// Gamma with shape `1 / cv^2` and scale `mean * cv^2`.
    Gamma {
        /// The mean.
        mean: f64,
        /// Standard deviation divided by the mean.
        cv: f64,
    },
    /// The exponential of a normal distribution: its logarithm has the mean `ln(median)` and the
    /// standard deviation `sigma`, so the mean is `median * exp(sigma^2 / 2)`.
    LogNormal {
        /// The median.
        median: f64,
        /// The standard deviation of the logarithm.
        sigma: f64,
    },
}

impl DrawnQuantity {
    /// Draws a value.
    pub fn draw(&self, draws: &mut Draws) -> f64 {
        match *self {
            DrawnQuantity::Constant(value) => value,
            DrawnQuantity::Uniform { min, max } => min + (max - min) * draws.unit(),
            DrawnQuantity::Exponential { mean } => mean * draws.exponential(),
            DrawnQuantity::Gamma { mean, cv } => {
                let shape = 1.0 / (cv * cv);
                draws.gamma(shape) * mean / shape
            }
            DrawnQuantity::LogNormal { median, sigma } => median * (sigma * draws.normal()).exp(),
        }
    }

    /// Returns the mean.
    pub fn mean(&self) -> f64 {
        match *self {
            DrawnQuantity::Constant(value) => value,
            DrawnQuantity::Uniform { min, max } => f64::midpoint(min, max),
            DrawnQuantity::Exponential { mean } | DrawnQuantity::Gamma { mean, .. } => mean,
            DrawnQuantity::LogNormal { median, sigma } => median * (sigma * sigma / 2.0).exp(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RandomStream;

    fn sample(distribution: DrawnQuantity, count: usize) -> Vec<f64> {
        let mut draws = RandomStream::new(42, 0, "distribution").draws();
        (0..count).map(|_| distribution.draw(&mut draws)).collect()
    }

    /// Means within five standard errors, for distributions of known variance.
    #[test]
    fn samples_have_their_mean() {
        let n = 100_000;
        let (mean, cv, sigma) = (2.0, 0.5, 0.7_f64);
        let log_normal = DrawnQuantity::LogNormal { median: 3.0, sigma };
        let cases = [
            (DrawnQuantity::Constant(1.5), 0.0),
            (
                DrawnQuantity::Uniform { min: 1.0, max: 4.0 },
                3.0 / 12.0_f64.sqrt(),
            ),
            (DrawnQuantity::Exponential { mean }, mean),
            (DrawnQuantity::Gamma { mean, cv }, mean * cv),
            (
                log_normal,
                log_normal.mean() * ((sigma * sigma).exp() - 1.0).sqrt(),
            ),
        ];
        for (distribution, deviation) in cases {
            let values = sample(distribution, n);
            assert!(values.iter().all(|value| *value >= 0.0));
            let seen = values.iter().sum::<f64>() / n as f64;
            let error = 5.0 * deviation / (n as f64).sqrt() + 1e-9;
            assert!(
                (seen - distribution.mean()).abs() <= error,
                "{distribution:?}: {seen}"
            );
        }
    }

    #[test]
    fn bounds_and_median_hold() {
        let uniform = sample(DrawnQuantity::Uniform { min: 1.0, max: 4.0 }, 1_000);
        assert!(uniform.iter().all(|value| (1.0..4.0).contains(value)));
        let mut values = sample(
            DrawnQuantity::LogNormal {
                median: 3.0,
                sigma: 1.0,
            },
            10_001,
        );
        values.sort_by(f64::total_cmp);
        assert!((values[5_000] / 3.0).ln().abs() < 0.06, "{}", values[5_000]);
    }
}
