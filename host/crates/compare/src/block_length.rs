//! Length of the blocks of a block bootstrap.

/// Returns the block length that minimizes the mean squared error of the variance in the circular
/// block bootstrap of a mean, estimated from the series itself: Politis and White, "Automatic
/// Block-Length Selection for the Dependent Bootstrap", Econometric Reviews 23 (2004), with the
/// correction of Patton, Politis and White, Econometric Reviews 28 (2009). In elements of the
/// series; at least 1, at most `min(3 √n, n / 3)`.
pub(crate) fn block_length(series: &[f64]) -> usize {
    let n = series.len();
    if n < 6 {
        return 1;
    }
    let size = n as f64;
    let mean = series.iter().sum::<f64>() / size;
    let centred: Vec<f64> = series.iter().map(|value| value - mean).collect();
    let longest = (3.0 * size.sqrt()).min(size / 3.0).ceil();
    // In their notation: K_N, c = 2, M_max.
    let run = size.log10().sqrt().max(5.0) as usize;
    let furthest = (size.sqrt().ceil() as usize + run).min(n - 1);
    let covariances: Vec<f64> = (0..=furthest).map(|lag| covariance(&centred, lag)).collect();
    if covariances[0] <= 0.0 {
        return 1;
    }
    let insignificant = 2.0 * (size.log10() / size).sqrt();
    let is_small = |lag: usize| (covariances[lag] / covariances[0]).abs() < insignificant;
    // The smallest lag that is followed by `run` negligible correlations.
    let after = (0..=furthest.saturating_sub(run)).find(|lag| (lag + 1..=lag + run).all(is_small));
    let bandwidth = after.map_or(furthest, |lag| (2 * lag.max(1)).min(furthest));
    let (mut first_moment, mut long_run) = (0.0, covariances[0]);
    for (lag, covariance) in covariances.iter().enumerate().take(bandwidth + 1).skip(1) {
        let share = lag as f64 / bandwidth as f64;
        // The flat-top window of Politis and Romano (1995).
        let window = if share <= 0.5 { 1.0 } else { 2.0 * (1.0 - share) };
        first_moment += 2.0 * window * lag as f64 * covariance;
        long_run += 2.0 * window * covariance;
    }
    let denominator = 4.0 / 3.0 * long_run.powi(2);
    if denominator <= 0.0 {
        return 1;
    }
    let best = (2.0 * first_moment.powi(2) / denominator * size).cbrt();
    best.min(longest).round().max(1.0) as usize
}

/// Returns the autocovariance of a centered series at a lag.
fn covariance(centred: &[f64], lag: usize) -> f64 {
    let products = centred.iter().zip(&centred[lag..]).map(|(a, b)| a * b);
    products.sum::<f64>() / centred.len() as f64
}

#[cfg(test)]
mod tests {
    use veeksha_stats::RandomStream;

    use super::*;

    fn autoregressive(correlation: f64, n: usize, seed: u64) -> Vec<f64> {
        let mut draws = RandomStream::new(seed, 0, "block length").draws();
        let mut value = draws.normal() / (1.0 - correlation.powi(2)).sqrt();
        (0..n)
            .map(|_| {
                value = correlation * value + draws.normal();
                value
            })
            .collect()
    }

    /// For an AR(1) process with coefficient r the optimum is known: G = Σ |k| R(k) and the
    /// long-run variance g(0) = Σ R(k) give G / g(0) = 2 r / (1 - r²), so b = (3/2 · (2 r / (1 -
    /// r²))² · n)^(1/3).
    #[test]
    fn an_autoregressive_series_gets_its_known_best_length() {
        for correlation in [0.3f64, 0.6, 0.8] {
            let n = 4000;
            let ratio = 2.0 * correlation / (1.0 - correlation.powi(2));
            let best = (1.5 * ratio.powi(2) * n as f64).cbrt();
            let lengths: f64 = (0..20)
                .map(|seed| block_length(&autoregressive(correlation, n, seed)) as f64)
                .sum();
            let mean = lengths / 20.0;
            assert!(
                (mean / best - 1.0).abs() < 0.25,
                "{correlation}: {mean} is not {best}"
            );
        }
    }

    #[test]
    fn independent_samples_get_short_blocks() {
        let lengths: usize = (0..20)
            .map(|seed| block_length(&autoregressive(0.0, 256, seed)))
            .sum();
        assert!(lengths <= 20 * 4, "{lengths}");
        assert_eq!(block_length(&[1.0; 100]), 1);
        assert_eq!(block_length(&[]), 1);
    }

    #[test]
    fn a_drift_gets_long_blocks() {
        let drift: Vec<f64> = (0..100).map(f64::from).collect();
        let length = block_length(&drift);
        assert!((10..=30).contains(&length), "{length}");
    }
}
