//! Distribution of a quantity, as statistics and as a curve.

use serde::Serialize;

use crate::tally::{Tally, quantile};

/// Unit of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QuantityUnit {
    /// Tokens.
    Tokens,
    /// Seconds.
    Seconds,
    /// A number of items, such as requests per session.
    Count,
}

impl QuantityUnit {
    /// Returns the symbol after a number; empty for a count.
    pub fn symbol(self) -> &'static str {
        match self {
            QuantityUnit::Tokens => "tokens",
            QuantityUnit::Seconds => "s",
            QuantityUnit::Count => "",
        }
    }
}

/// A distribution in its unit. Percentiles interpolate between ranks like numpy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// Unit of all values.
    pub unit: QuantityUnit,
    /// Number of values, at least one.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Population standard deviation.
    pub std: f64,
    /// Smallest value.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest value.
    pub max: f64,
    /// Sum of all values.
    pub total: f64,
    /// True if the percentiles are exact; else they are within 0.1 %.
    pub exact: bool,
    /// Cumulative distribution: (value, share of values up to it), at most 201 points, the last
    /// with share 1.
    pub cdf: Vec<(f64, f64)>,
    /// Counts by adjacent ranges of values, ascending; at most 32.
    pub histogram: Vec<Bin>,
}

/// A bar of a histogram: values `from <= value < to` (the last one: `<= to`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// Lower bound.
    pub from: f64,
    /// Upper bound.
    pub to: f64,
    /// Number of values.
    pub count: u64,
}

/// Number of intervals of a cumulative curve.
const CURVE: u64 = 200;

/// Maximum number of bars of a histogram.
const BARS: u64 = 32;

/// Ratio of maximum to median above which bars have equal ratio instead of equal width.
const WIDE: f64 = 10.0;

impl Distribution {
    /// Computes the distribution of a tally, `per_unit` of whose values make a unit; `None` if it
    /// is empty.
    pub(crate) fn of(tally: &Tally, unit: QuantityUnit, per_unit: f64) -> Option<Distribution> {
        let cumulative = tally.cumulative();
        let (min, max) = tally.range()?;
        // Rounding must not carry a percentile past the extremes.
        let quantile_at = |p| Some(quantile(&cumulative, p)?.clamp(min as f64, max as f64) / per_unit);
        Some(Distribution {
            unit,
            count: tally.count(),
            mean: tally.mean()? / per_unit,
            std: tally.std()? / per_unit,
            min: min as f64 / per_unit,
            p50: quantile_at(0.5)?,
            p90: quantile_at(0.9)?,
            p99: quantile_at(0.99)?,
            max: max as f64 / per_unit,
            total: tally.sum() / per_unit,
            exact: tally.is_exact(),
            cdf: curve(&cumulative, per_unit),
            histogram: bars(&cumulative, per_unit),
        })
    }

    /// Returns true if a plot needs a logarithmic axis.
    pub fn is_wide(&self) -> bool {
        self.p50 > 0.0 && self.max > WIDE * self.p50
    }
}

fn curve(cumulative: &[(u64, u64)], per_unit: f64) -> Vec<(f64, f64)> {
    let Some((_, count)) = cumulative.last() else {
        return Vec::new();
    };
    let mut points = Vec::new();
    let mut next = 0;
    for (value, up_to) in cumulative {
        // One point per two-hundredth of the values, and the first and the last one.
        if up_to * CURVE >= next * count || up_to == count {
            points.push((*value as f64 / per_unit, *up_to as f64 / *count as f64));
            next = up_to * CURVE / count + 1;
        }
    }
    points
}

fn bars(cumulative: &[(u64, u64)], per_unit: f64) -> Vec<Bin> {
    let (Some(first), Some(last)) = (cumulative.first(), cumulative.last()) else {
        return Vec::new();
    };
    let median = quantile(cumulative, 0.5).unwrap_or(0.0);
    let wide = median > 0.0 && last.0 as f64 > WIDE * median;
    let edges = if wide {
        ratio_edges(first.0, last.0)
    } else {
        even_edges(first.0, last.0)
    };
    let below = |edge: u64| {
        let place = cumulative.partition_point(|(value, _)| *value < edge);
        place.checked_sub(1).map_or(0, |place| cumulative[place].1)
    };
    let bin = |pair: &[u64]| Bin {
        from: pair[0] as f64 / per_unit,
        to: pair[1] as f64 / per_unit,
        count: below(pair[1]) - below(pair[0]),
    };
    let mut bars: Vec<Bin> = edges.windows(2).map(bin).collect();
    if let Some(bar) = bars.last_mut() {
        bar.to = last.0 as f64 / per_unit;
    }
    bars
}

/// Returns edges of bars of equal integer width.
fn even_edges(min: u64, max: u64) -> Vec<u64> {
    let width = (max - min + 1).div_ceil(BARS);
    let bars = (max - min + 1).div_ceil(width);
    (0..=bars).map(|bar| min + bar * width).collect()
}

/// Returns edges of about equal ratio. 0 has a separate bar.
fn ratio_edges(min: u64, max: u64) -> Vec<u64> {
    let begin = min.max(1);
    let ratio = ((max + 1) as f64 / begin as f64).powf(1.0 / (BARS - 1) as f64);
    let mut edges = if min == 0 { vec![0, begin] } else { vec![begin] };
    for bar in 1..BARS {
        let edge = (begin as f64 * ratio.powi(bar as i32)).round() as u64;
        if edges.last().is_some_and(|last| edge > *last) && edge <= max {
            edges.push(edge);
        }
    }
    edges.push(max + 1);
    edges
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tally(values: impl IntoIterator<Item = u64>) -> Tally {
        let mut tally = Tally::default();
        values.into_iter().for_each(|value| tally.add(value));
        tally
    }

    #[test]
    fn statistics_worked_out_by_hand() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, standard deviation 2; in milliseconds.
        let distribution =
            Distribution::of(&tally([9, 2, 4, 5, 4, 7, 4, 5]), QuantityUnit::Seconds, 1e3).unwrap();
        assert_eq!((distribution.mean, distribution.std), (0.005, 0.002));
        assert_eq!(
            (distribution.min, distribution.p50, distribution.max),
            (0.002, 0.0045, 0.009)
        );
        assert_eq!(distribution.cdf.first(), Some(&(0.002, 0.125)));
        assert_eq!(distribution.cdf.last(), Some(&(0.009, 1.0)));
        assert!(Distribution::of(&Tally::default(), QuantityUnit::Count, 1.0).is_none());
    }

    #[test]
    fn few_integers_get_a_bar_each() {
        let distribution = Distribution::of(&tally([1, 2, 2, 4]), QuantityUnit::Count, 1.0).unwrap();
        let counts: Vec<_> = distribution
            .histogram
            .iter()
            .map(|bin| (bin.from, bin.count))
            .collect();
        assert_eq!(counts, [(1.0, 1), (2.0, 2), (3.0, 0), (4.0, 1)]);
        assert!(!distribution.is_wide());
    }

    #[test]
    fn long_tail_gets_bars_of_equal_ratio() {
        let wide = (0..1000u64).chain([1_000_000]);
        let distribution = Distribution::of(&tally(wide), QuantityUnit::Tokens, 1.0).unwrap();
        assert!(distribution.is_wide());
        // 1, 2, 3: the first bars are single numbers, the later ones are half as large again as the
        // preceding one.
        let bins = &distribution.histogram;
        assert_eq!((bins[0].from, bins[0].count), (0.0, 1));
        let ratio = bins[20].to / bins[20].from;
        assert!((1.4..1.7).contains(&ratio), "{ratio}");
    }

    proptest! {
        #[test]
        fn bars_and_curve_hold_every_value(values in prop::collection::vec(prop_oneof![0u64..30, 0u64..1_000_000], 1..300)) {
            let distribution = Distribution::of(&tally(values.clone()), QuantityUnit::Tokens, 1.0).unwrap();
            let bins = &distribution.histogram;
            prop_assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), values.len() as u64);
            prop_assert!(bins.len() <= 33);
            prop_assert!(bins.windows(2).all(|pair| pair[0].to == pair[1].from));
            let curve = &distribution.cdf;
            prop_assert!(curve.len() <= 202);
            prop_assert!(curve.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
            for (value, share) in curve {
                let up_to = values.iter().filter(|other| **other as f64 <= *value).count();
                prop_assert!((up_to as f64 / values.len() as f64 - share).abs() < 1e-12);
            }
            prop_assert_eq!(curve.last().unwrap().1, 1.0);
        }
    }
}
