//! Kernel density estimates, the outlines of violins.

use crate::drawing::AxisScale;

/// Points of an outline.
const POINTS: usize = 64;

/// Returns the density of ascending samples at [`POINTS`] values between the first and the last, as
/// a share of its maximum. Empty if the samples do not vary.
///
/// A Gaussian kernel with Silverman's bandwidth, 0.9 · min(σ, IQR / 1.34) · n^(−1/5) (Density
/// Estimation, 1986, eq. 3.31). For a log axis it is the density of the logarithms, so that the
/// drawn shape has the drawn proportions; samples at or below 0 are skipped then.
pub(super) fn density(ascending: &[f64], scale: AxisScale) -> Vec<(f64, f64)> {
    let values: Vec<f64> = match scale {
        AxisScale::Linear => ascending.to_vec(),
        AxisScale::Log => ascending
            .iter()
            .filter(|value| **value > 0.0)
            .map(|value| value.ln())
            .collect(),
    };
    let (Some(low), Some(high)) = (values.first(), values.last()) else {
        return Vec::new();
    };
    let bandwidth = bandwidth(&values);
    if bandwidth <= 0.0 || !bandwidth.is_finite() {
        return Vec::new();
    }
    let step = (high - low) / (POINTS - 1) as f64;
    let outline: Vec<(f64, f64)> = (0..POINTS)
        .map(|point| {
            let at = low + step * point as f64;
            let kernel = |value: &f64| (-0.5 * ((at - value) / bandwidth).powi(2)).exp();
            (at, values.iter().map(kernel).sum())
        })
        .collect();
    let most = outline.iter().map(|(_, density)| *density).fold(0.0, f64::max);
    let value_at = |at: f64| match scale {
        AxisScale::Linear => at,
        AxisScale::Log => at.exp(),
    };
    outline
        .into_iter()
        .map(|(at, density)| (value_at(at), density / most))
        .collect()
}

fn bandwidth(ascending: &[f64]) -> f64 {
    let count = ascending.len() as f64;
    let mean = ascending.iter().sum::<f64>() / count;
    let variance = ascending.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let quartile = |part: usize| ascending[(ascending.len() - 1) * part / 4];
    let spread = (quartile(3) - quartile(1)) / 1.34;
    // More than half of the samples may be equal: then the deviation alone decides.
    let width = if spread > 0.0 {
        variance.sqrt().min(spread)
    } else {
        variance.sqrt()
    };
    0.9 * width * count.powf(-0.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_clusters_have_two_peaks() {
        let mut samples: Vec<f64> = (0..100).map(|k| 1.0 + f64::from(k) / 1000.0).collect();
        samples.extend((0..100).map(|k| 2.0 + f64::from(k) / 1000.0));
        // A box plot of these is the same as one of evenly spread samples.
        let outline = density(&samples, AxisScale::Linear);
        let near = |at: f64| {
            let distance = |point: &&(f64, f64)| (point.0 - at).abs();
            outline
                .iter()
                .min_by(|a, b| distance(a).total_cmp(&distance(b)))
                .unwrap()
                .1
        };
        assert!(near(1.05) > 0.9 && near(2.05) > 0.9, "{outline:?}");
        assert!(near(1.55) < 0.5, "{outline:?}");
    }

    #[test]
    fn density_of_normal_samples_is_symmetric() {
        // Quantiles of a triangle distribution: symmetric around 0.
        let samples: Vec<f64> = (-500i32..=500)
            .map(|k| f64::from(k.signum()) * (1.0 - (1.0 - f64::from(k.abs()) / 500.0).sqrt()))
            .collect();
        let outline = density(&samples, AxisScale::Linear);
        assert_eq!(outline.len(), POINTS);
        for k in 0..POINTS / 2 {
            let (left, right) = (outline[k].1, outline[POINTS - 1 - k].1);
            assert!((left - right).abs() < 1e-6, "{left} {right}");
        }
        assert!(outline[POINTS / 2].1 > 0.99 && outline[0].1 < 0.2, "{outline:?}");
    }

    #[test]
    fn log_scale_estimates_the_density_of_logarithms() {
        let samples: Vec<f64> = (0..=100).map(|k| 10f64.powf(f64::from(k) / 50.0 - 1.0)).collect();
        let outline = density(&samples, AxisScale::Log);
        assert!((outline[0].0 - 0.1).abs() < 1e-9 && (outline[POINTS - 1].0 - 10.0).abs() < 1e-9);
        // Logarithms are uniform: the middle half is flat.
        assert!(outline[16..48].iter().all(|(_, density)| *density > 0.9));
        assert!(density(&[0.0, 0.0], AxisScale::Log).is_empty());
    }

    #[test]
    fn equal_samples_have_no_outline() {
        assert!(density(&[], AxisScale::Linear).is_empty());
        assert!(density(&[1.0], AxisScale::Linear).is_empty());
        assert!(density(&[1.0; 20], AxisScale::Linear).is_empty());
    }
}
