//! The inverse Gaussian (Wald) distribution.

use veeksha_plugin::Draws;

/// Mean μ and shape λ; the variance is μ³ / λ.
#[derive(Debug)]
pub(crate) struct InverseGaussian {
    pub(crate) mean: f64,
    pub(crate) shape: f64,
}

impl InverseGaussian {
    /// A number (J. Michael, W. Schucany, R. Haas: "Generating random variates using
    /// transformations with multiple roots", The American Statistician 30(2), 1976). With w = μN² /
    /// 2λ, the smaller root is μ (1 + w − √(2w + w²)) = μ / (1 + w + √(2w + w²)), which does not
    /// cancel.
    pub(crate) fn sample(&self, draws: &mut Draws) -> f64 {
        let normal = draws.normal();
        let w = self.mean * normal * normal / (2.0 * self.shape);
        let root = self.mean / (1.0 + w + (2.0 * w + w * w).sqrt());
        if draws.unit() * (self.mean + root) <= self.mean {
            root
        } else {
            self.mean * (self.mean / root)
        }
    }

    /// Rounded to the nearest whole number, at least 1.
    pub(crate) fn sample_whole(&self, draws: &mut Draws) -> u32 {
        self.sample(draws).round().max(1.0) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random;

    /// Mean μ with a standard error of √(μ³/λn); the variance μ³/λ with one of about √((2 + 15
    /// μ/λ)/n) of it. Five of each are allowed; rounding adds 1/12 to the variance.
    #[test]
    fn mean_and_variance_are_those_of_the_formula() {
        let n = 400_000;
        for (mean, shape) in [(500.0, 300.0), (100.0, 2000.0), (50.0, 50.0)] {
            let mut draws = random(4, 0).stream("wald");
            let wald = InverseGaussian { mean, shape };
            let values: Vec<f64> = (0..n).map(|_| f64::from(wald.sample_whole(&mut draws))).collect();
            let sample_mean = values.iter().sum::<f64>() / f64::from(n);
            let sample_variance = values
                .iter()
                .map(|value| (value - sample_mean).powi(2))
                .sum::<f64>()
                / f64::from(n);
            let variance = mean.powi(3) / shape;
            let mean_error = 5.0 * (variance / f64::from(n)).sqrt();
            assert!(
                (sample_mean - mean).abs() < mean_error + 0.01,
                "mean {sample_mean} of {mean}, {shape}"
            );
            let relative = 5.0 * ((2.0 + 15.0 * mean / shape) / f64::from(n)).sqrt();
            assert!(
                (sample_variance / variance - 1.0).abs() < relative + 1.0 / variance,
                "variance {sample_variance} instead of {variance}"
            );
        }
    }

    /// P(X ≤ x) by the closed form at x = μ = λ: Φ(0) + e² Φ(−2) = 0.5 + 7.389 · 0.02275 = 0.66810.
    #[test]
    fn two_thirds_lie_below_the_mean() {
        let mut draws = random(8, 0).stream("wald");
        let wald = InverseGaussian {
            mean: 1.0,
            shape: 1.0,
        };
        let n = 200_000;
        let below = (0..n).filter(|_| wald.sample(&mut draws) <= 1.0).count() as f64 / f64::from(n);
        assert!((below - 0.66810).abs() < 0.0053, "{below}");
    }

    #[test]
    fn a_length_is_never_zero_nor_more_than_fits() {
        let mut draws = random(8, 0).stream("wald");
        let tiny = InverseGaussian {
            mean: 1e-9,
            shape: 1.0,
        };
        let huge = InverseGaussian {
            mean: 1e300,
            shape: 1.0,
        };
        for _ in 0..1000 {
            assert_eq!(tiny.sample_whole(&mut draws), 1);
            assert!(huge.sample_whole(&mut draws) >= 1);
        }
    }
}
