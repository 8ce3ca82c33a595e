//! The results of a run as a test states them.

use veeksha_model::{Label, Nanos};
use veeksha_ports::{MetricStats, RunResults, WindowStats};

use super::format::ResultsInput;

/// Results without labels and times: a filter selects nothing, and there are no windows.
pub(crate) struct StatedResults {
    input: ResultsInput,
}

impl StatedResults {
    pub(crate) fn new(mut input: ResultsInput) -> Self {
        for samples in input.metrics.values_mut() {
            samples.sort_by(f64::total_cmp);
        }
        StatedResults { input }
    }

    fn samples(&self, metric: &str, filter: &[Label]) -> &[f64] {
        let samples = self.input.metrics.get(metric).filter(|_| filter.is_empty());
        samples.map_or(&[], Vec::as_slice)
    }
}

impl RunResults for StatedResults {
    fn metrics(&self) -> Vec<String> {
        self.input.metrics.keys().cloned().collect()
    }

    fn run_metric(&self, name: &str) -> Option<f64> {
        self.input.aggregates.get(name).copied()
    }

    fn stats(&self, metric: &str, filter: &[Label]) -> MetricStats {
        let samples = self.samples(metric, filter);
        let (Some(min), Some(max)) = (samples.first(), samples.last()) else {
            return MetricStats::default();
        };
        let count = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / count;
        let square = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
        let at = |share| veeksha_stats::percentile(samples, share).unwrap_or_default();
        MetricStats {
            count: samples.len() as u64,
            mean,
            std: (square / count).sqrt(),
            min: *min,
            max: *max,
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
        }
    }

    fn percentile(&self, metric: &str, percent: f64, filter: &[Label]) -> Option<f64> {
        veeksha_stats::percentile(self.samples(metric, filter), percent / 100.0)
    }

    fn windows(&self, _metric: &str, _filter: &[Label], _length: Nanos) -> Vec<WindowStats> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_stated_samples() {
        let input = ResultsInput {
            metrics: [("ttfc".to_owned(), vec![3.0, 1.0, 2.0, 4.0])].into(),
            aggregates: [("error_rate".to_owned(), 0.1)].into(),
        };
        let results = StatedResults::new(input);
        let stats = results.stats("ttfc", &[]);
        assert_eq!(
            (stats.count, stats.mean, stats.min, stats.max, stats.p50),
            (4, 2.5, 1.0, 4.0, 2.5)
        );
        assert_eq!(stats.std, 1.25_f64.sqrt());
        assert_eq!(results.percentile("ttfc", 100.0, &[]), Some(4.0));
        assert_eq!(results.run_metric("error_rate"), Some(0.1));
        assert_eq!(
            results
                .stats("ttfc", &[("tier".to_owned(), "gold".to_owned())])
                .count,
            0
        );
    }
}
