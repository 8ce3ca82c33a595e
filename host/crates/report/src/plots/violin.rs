//! Violins with box plots inside: density, median, quartiles, whiskers and outliers, by group.

use veeksha_stats::percentile;

use super::cdf::{grouped, samples};
use super::density::density;
use super::plot::Plot;
use super::scale;
use super::selection::select_evenly;
use super::table::{cell, csv_table, heading};
use crate::drawing::{AxisScale, AxisSpan, BoxShape, Chart, Color, Drawing, PlotAxis, PlotElement};

/// The statistics of a box by Tukey's convention: whiskers extend to the last samples within 1.5
/// times the interquartile range.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxStats {
    /// Number of samples.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest sample.
    pub min: f64,
    /// Smallest sample not below the lower quartile − 1.5 × (upper − lower quartile).
    pub whisker_low: f64,
    /// 25th percentile, interpolated linearly.
    pub lower_quartile: f64,
    /// Median.
    pub median: f64,
    /// 75th percentile.
    pub upper_quartile: f64,
    /// Largest sample not above the upper quartile + 1.5 × (upper − lower quartile).
    pub whisker_high: f64,
    /// Largest sample.
    pub max: f64,
    /// Number of samples beyond the whiskers.
    pub beyond: u64,
    /// The drawn ones: at most 100, evenly selected, including the extremes.
    pub outliers: Vec<f64>,
}

/// Maximum number of drawn outliers per box.
const OUTLIERS: usize = 100;

impl BoxStats {
    /// Computes the box of samples in any order; samples that are not finite are skipped. `None` if
    /// none remain.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = samples
            .iter()
            .copied()
            .filter(|value| value.is_finite())
            .collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let lower_quartile = percentile(&sorted, 0.25)?;
        let upper_quartile = percentile(&sorted, 0.75)?;
        let reach = 1.5 * (upper_quartile - lower_quartile);
        let first = sorted.partition_point(|value| *value < lower_quartile - reach);
        let end = sorted.partition_point(|value| *value <= upper_quartile + reach);
        let beyond: Vec<f64> = sorted[..first].iter().chain(&sorted[end..]).copied().collect();
        Some(BoxStats {
            count: sorted.len() as u64,
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            min,
            max,
            median: percentile(&sorted, 0.5)?,
            // A whisker does not end inside its box, even if the nearest sample is there.
            whisker_low: sorted[first].min(lower_quartile),
            whisker_high: sorted[end - 1].max(upper_quartile),
            lower_quartile,
            upper_quartile,
            beyond: beyond.len() as u64,
            outliers: select_evenly(&beyond, OUTLIERS),
        })
    }
}

/// A group of samples.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxGroup {
    /// The common property of its samples: `128 tokens`.
    pub label: String,
    /// Its box.
    pub stats: BoxStats,
    /// Samples that its shape is computed of: at most 1,000, evenly selected, ascending.
    pub shape: Vec<f64>,
}

impl BoxGroup {
    /// Creates a group of samples in any order; `None` without finite samples.
    pub fn new(label: String, samples: Vec<f64>) -> Option<Self> {
        let stats = BoxStats::of(&samples)?;
        let mut finite: Vec<f64> = samples.into_iter().filter(|value| value.is_finite()).collect();
        finite.sort_by(f64::total_cmp);
        Some(BoxGroup {
            label,
            stats,
            shape: select_evenly(&finite, SHAPE_SAMPLES),
        })
    }
}

/// Boxes of a metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoxPlotData {
    /// The metric's display name.
    pub display: String,
    /// The unit of its values.
    pub unit: String,
    /// The property that distinguishes the groups: `prompt tokens`.
    pub grouped_by: String,
    /// The groups, in order.
    pub groups: Vec<BoxGroup>,
}

/// Maximum number of samples that a shape is computed of.
const SHAPE_SAMPLES: usize = 1_000;

/// More boxes cannot be distinguished in a thumbnail.
const MOST_GROUPS: usize = 8;

/// Groups by ascending length, for [`BoxPlotData`]. More than 8 lengths are merged into ranges with
/// about equal numbers of samples.
pub fn length_groups<'a>(by_length: impl IntoIterator<Item = (u32, &'a [f64])>) -> Vec<BoxGroup> {
    let lengths: Vec<(u32, &[f64])> = by_length
        .into_iter()
        .filter(|(_, samples)| !samples.is_empty())
        .collect();
    let total: usize = lengths.iter().map(|(_, samples)| samples.len()).sum();
    let mut ranges: Vec<(u32, u32, Vec<f64>)> = Vec::new();
    let mut seen = 0;
    let mut last_slot = None;
    for (length, samples) in &lengths {
        // A length is not split: it belongs to the range of its middle sample.
        let slot = if lengths.len() <= MOST_GROUPS {
            None
        } else {
            Some((seen + samples.len() / 2) * MOST_GROUPS / total.max(1))
        };
        seen += samples.len();
        match ranges.last_mut() {
            Some(range) if slot.is_some() && slot == last_slot => {
                range.1 = *length;
                range.2.extend_from_slice(samples);
            }
            _ => ranges.push((*length, *length, samples.to_vec())),
        }
        last_slot = slot;
    }
    ranges
        .into_iter()
        .filter_map(|(from, to, samples)| {
            let label = if from == to {
                grouped(from.into())
            } else {
                format!("{}–{}", grouped(from.into()), grouped(to.into()))
            };
            BoxGroup::new(label, samples)
        })
        .collect()
}

/// Returns the plot `metrics/ttfc_violin_plot.png`: densities with box plots inside. The axis is
/// logarithmic if a linear one would squeeze the lowest box (`scale.rs`) and all samples are above
/// 0.
pub fn violin_plot(data: &BoxPlotData) -> Plot {
    let stats = || data.groups.iter().map(|group| &group.stats);
    let count: u64 = stats().map(|stats| stats.count).sum();
    let lowest = stats()
        .map(|stats| stats.lower_quartile)
        .fold(f64::INFINITY, f64::min);
    let most = stats().map(|stats| stats.max).fold(0.0, f64::max);
    let scale = if stats().all(|stats| stats.min > 0.0) {
        scale::scale_for_quartile(count, lowest, most)
    } else {
        AxisScale::Linear
    };
    let several = data.groups.len() > 1;
    let title = if several {
        format!("{} by {}", data.display, data.grouped_by)
    } else {
        format!("Distribution of {}", data.display)
    };
    let boxes = data.groups.iter().enumerate().map(|(place, group)| {
        let stats = &group.stats;
        let shape = BoxShape {
            heights: [
                stats.whisker_low,
                stats.lower_quartile,
                stats.median,
                stats.upper_quartile,
                stats.whisker_high,
            ],
            mean: stats.mean,
            outliers: stats.outliers.clone(),
            density: density(&group.shape, scale),
        };
        (place as f64, shape)
    });
    let names = data.groups.iter().map(|group| group.label.clone()).collect();
    let x = PlotAxis::new(&data.grouped_by, "").named(names);
    let drawing = Drawing {
        title,
        subtitle: format!(
            "{} · shape: density, box: quartiles and median, whiskers: 1.5 × box, dot: mean",
            samples(count)
        ),
        charts: vec![Chart {
            x,
            y: PlotAxis::new(&data.display, &data.unit)
                .scaled(scale)
                .spanning(AxisSpan::FromZero),
            marks: vec![PlotElement::Boxes {
                boxes: boxes.collect(),
                color: Color::Blue,
            }],
            empty: "no samples".into(),
        }],
    };
    Plot {
        drawing,
        csv: table(data),
    }
}

fn table(data: &BoxPlotData) -> String {
    let unit = &data.unit;
    let group = data.grouped_by.clone();
    let names = [
        "mean",
        "min",
        "whisker_low",
        "lower_quartile",
        "median",
        "upper_quartile",
        "whisker_high",
        "max",
    ]
    .map(|name| heading(name, unit));
    let mut headings = vec![group.as_str(), "count"];
    headings.extend(names.iter().map(String::as_str));
    headings.push("beyond_whiskers");
    let rows = data.groups.iter().map(|BoxGroup { label, stats, .. }| {
        let values = [
            stats.mean,
            stats.min,
            stats.whisker_low,
            stats.lower_quartile,
            stats.median,
            stats.upper_quartile,
            stats.whisker_high,
            stats.max,
        ];
        let mut row = vec![label.replace(',', ""), stats.count.to_string()];
        row.extend(values.map(cell));
        row.push(stats.beyond.to_string());
        row
    });
    csv_table(&headings, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_box_statistics() {
        // 1..=9 and 30. Quartiles of ten values: ranks 2.25 and 6.75, so 3.25 and 7.75; the box is
        // 4.5 high and whiskers extend up to 6.75 further: from -3.5 to 14.5. 30 is an outlier.
        // Mean 75 / 10.
        let mut samples: Vec<f64> = (1..=9).map(f64::from).collect();
        samples.insert(3, 30.0);
        let seen = BoxStats::of(&samples).unwrap();
        assert_eq!(
            (seen.lower_quartile, seen.median, seen.upper_quartile),
            (3.25, 5.5, 7.75)
        );
        assert_eq!((seen.whisker_low, seen.whisker_high), (1.0, 9.0));
        assert_eq!((seen.min, seen.max, seen.mean), (1.0, 30.0, 7.5));
        assert_eq!((seen.count, seen.beyond, seen.outliers), (10, 1, vec![30.0]));
        let one = BoxStats::of(&[2.0, f64::NAN]).unwrap();
        assert_eq!((one.count, one.whisker_low, one.whisker_high), (1, 2.0, 2.0));
        assert_eq!(BoxStats::of(&[f64::INFINITY]), None);
    }

    #[test]
    fn whiskers_never_end_inside_the_box() {
        // 0, 10, 10, 10, 100: quartiles 10 and 10, so both ends are outliers and the whiskers have
        // no length.
        let seen = BoxStats::of(&[0.0, 10.0, 10.0, 10.0, 100.0]).unwrap();
        assert_eq!(
            (seen.whisker_low, seen.whisker_high, seen.beyond),
            (10.0, 10.0, 2)
        );
        // 0, 0, 0, 4: the upper quartile is 1, between two samples, 4 is beyond 2.5, and the next
        // lower sample is 0.
        let seen = BoxStats::of(&[0.0, 0.0, 0.0, 4.0]).unwrap();
        assert_eq!(
            (seen.upper_quartile, seen.whisker_high, seen.beyond),
            (1.0, 1.0, 1)
        );
    }

    #[test]
    fn merges_many_lengths_into_ranges() {
        let of = |lengths: &[u32]| -> Vec<(String, u64)> {
            let samples = [0.1, 0.2];
            length_groups(lengths.iter().map(|length| (*length, samples.as_slice())))
                .into_iter()
                .map(|group| (group.label, group.stats.count))
                .collect()
        };
        assert_eq!(of(&[128, 256]), [("128".into(), 2), ("256".into(), 2)]);
        // 16 lengths of two samples each: 8 ranges of two lengths.
        let ranges = of(&(1..=16).collect::<Vec<_>>());
        assert_eq!(ranges.len(), 8);
        assert_eq!(ranges[0], ("1–2".into(), 4));
        assert_eq!(ranges[7], ("15–16".into(), 4));
        assert!(of(&[]).is_empty());
    }
}
