//! Drawing of blocks of cells, and statistics of resamples.

use veeksha_stats::Draws;

use crate::block_length::block_length;
use crate::series::{QuantileAnchor, Series};
use crate::statistic::Resampled;

/// The scheme by which cells are drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks {
    cells: usize,
    length: usize,
}

impl Blocks {
    /// Creates blocks whose length is chosen from the contributions of the cells; `None` for fewer
    /// than two blocks.
    pub(crate) fn new(influence: &[f64]) -> Option<Blocks> {
        let cells = influence.len();
        let length = block_length(influence).min(cells);
        (cells >= 2 * length && length > 0).then_some(Blocks { cells, length })
    }

    /// Returns the number of blocks.
    pub(crate) fn count(&self) -> f64 {
        self.cells as f64 / self.length as f64
    }

    /// Returns the variance of the statistic itself, given that of its resamples, which is too
    /// small by the factor `(b - 1) / b`.
    pub(crate) fn whole(&self, variance: f64) -> f64 {
        variance * self.count() / (self.freedom())
    }

    /// Returns the degrees of freedom of a variance.
    pub(crate) fn freedom(&self) -> f64 {
        self.count() - 1.0
    }

    /// Draws how often each cell counts in one resample; blocks wrap around from the last cell to
    /// the first.
    pub(crate) fn draw(&self, draws: &mut Draws, times: &mut Vec<f64>) {
        times.clear();
        times.resize(self.cells, 0.0);
        let mut left = self.cells;
        while left > 0 {
            let start = draws.below(self.cells as u32) as usize;
            for place in start..start + self.length.min(left) {
                times[place % self.cells] += 1.0;
            }
            left = left.saturating_sub(self.length);
        }
    }
}

/// A statistic of a series, prepared for resampling.
#[derive(Debug)]
pub(crate) struct DrawnStatistic<'a> {
    pub(crate) value: f64,
    kind: DrawnKind<'a>,
}

#[derive(Debug)]
enum DrawnKind<'a> {
    Mean(&'a Series),
    Quantile(f64, QuantileAnchor<'a>),
}

impl<'a> DrawnStatistic<'a> {
    /// Prepares the statistic; `None` without samples.
    pub(crate) fn new(series: &'a Series, of: Resampled) -> Option<Self> {
        Some(match of {
            Resampled::Mean => DrawnStatistic {
                value: series.mean()?,
                kind: DrawnKind::Mean(series),
            },
            Resampled::Quantile(p) => {
                let value = series.quantile(p)?;
                DrawnStatistic {
                    value,
                    kind: DrawnKind::Quantile(p, series.anchor(series.place_of(value))),
                }
            }
        })
    }

    /// Returns the deviation of a resample's statistic from that of the samples. `None` if only
    /// cells without samples were drawn.
    pub(crate) fn deviation(&self, times: &[f64]) -> Option<f64> {
        let drawn = match &self.kind {
            DrawnKind::Mean(series) => series.mean_of(times),
            DrawnKind::Quantile(p, anchor) => anchor.quantile(*p, times),
        };
        Some(drawn? - self.value)
    }
}

/// Returns the contribution of each cell to the statistic's error, in order of time.
pub(crate) fn influence(series: &Series, of: Resampled) -> Vec<f64> {
    match of {
        Resampled::Mean => series.influence_on_mean(),
        Resampled::Quantile(p) => series.influence_on_quantile(p),
    }
}

/// Running variance (Welford).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunningVariance {
    count: f64,
    mean: f64,
    squares: f64,
}

impl RunningVariance {
    pub(crate) fn push(&mut self, value: f64) {
        self.count += 1.0;
        let step = value - self.mean;
        self.mean += step / self.count;
        self.squares += step * (value - self.mean);
    }

    /// Returns the variance; `None` for fewer than two numbers.
    pub(crate) fn variance(&self) -> Option<f64> {
        (self.count >= 2.0).then(|| self.squares / (self.count - 1.0))
    }
}
