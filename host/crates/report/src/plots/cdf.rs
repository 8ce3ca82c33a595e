//! The distribution of a metric: the share of its samples at or below each value.

use veeksha_stats::{duration, number};

use super::plot::Plot;
use super::scale;
use super::selection::select_evenly;
use super::table::{cell, csv_table};
use crate::drawing::{
    AreaFill, AxisScale, AxisSpan, Chart, Color, Dash, Drawing, LineShape, PlotAxis, PlotElement,
};

/// Maximum number of drawn steps: about one per pixel.
const DRAWN: usize = 800;

/// The distribution of a metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CdfData {
    /// Its name in files: `ttfc`.
    pub metric: String,
    /// Its display name: `Time to First Chunk`.
    pub display: String,
    /// The unit of its values: `s`, `tokens`, `1` for a ratio.
    pub unit: String,
    /// Number of samples there are.
    pub count: u64,
    /// Values with the share of samples at or below them, ascending; Veeksha's files have 101 of
    /// them, at 0, 0.01, ..., 1.
    pub points: Vec<(f64, f64)>,
    /// The distinct values with the share of samples at or below them, ascending, if all samples
    /// are whole numbers, which a line between percentiles would not show; otherwise empty.
    pub counts: Vec<(f64, f64)>,
}

impl CdfData {
    /// Returns the share of samples at or below 0, which a log axis cannot show.
    fn share_at_zero(&self) -> f64 {
        let known = if self.counts.is_empty() {
            &self.points
        } else {
            &self.counts
        };
        let shares = known
            .iter()
            .filter(|(value, _)| *value <= 0.0)
            .map(|point| point.1);
        shares.fold(0.0, f64::max)
    }

    /// Returns the line of the distribution, and its path between points.
    fn line(&self) -> (Vec<(f64, f64)>, LineShape) {
        match self.counts.first() {
            None => (self.points.clone(), LineShape::Straight),
            Some((first, _)) => {
                let mut line = vec![(*first, 0.0)];
                line.extend(select_evenly(&self.counts, DRAWN));
                (line, LineShape::Steps)
            }
        }
    }

    /// Returns the value at a share, interpolated between points; `None` without points.
    fn at(&self, share: f64) -> Option<f64> {
        let after = self.points.partition_point(|(_, at)| *at < share);
        let (high, upper) = self.points.get(after).or(self.points.last()).copied()?;
        let (low, lower) = self.points[after.saturating_sub(1).min(self.points.len() - 1)];
        let part = if upper > lower {
            ((share - lower) / (upper - lower)).clamp(0.0, 1.0)
        } else {
            1.0
        };
        Some(low + part * (high - low))
    }

    fn shown(&self, value: f64) -> String {
        match self.unit.as_str() {
            "s" => duration(value),
            "1" => format!("{} %", number(value * 100.0)),
            unit if unit.starts_with("s/") => format!("{}{}", duration(value), &unit[1..]),
            "" => number(value),
            unit => format!("{} {unit}", number(value)),
        }
    }
}

/// Returns Veeksha's `metrics/<metric>.csv`: an index without a heading, `cdf` and the metric's
/// display name. A metric without samples has only the headings; Veeksha writes 101 zeros.
pub fn cdf_csv(data: &CdfData) -> String {
    let rows = data.points.iter().enumerate();
    csv_table(
        &["", "cdf", &data.display],
        rows.map(|(index, (value, share))| [index.to_string(), cell(*share), cell(*value)]),
    )
}

/// Returns true if a metric has a second plot with a log axis, `<metric>_log_x.png`: if a linear
/// one would squeeze its samples together (`scale.rs`), and never for shares. Veeksha draws it if
/// P95 is at least 50 times P5, and takes every metric within 0 and 1 for a ratio, even times of
/// less than a second; here the unit decides.
pub fn wants_log_axis(data: &CdfData) -> bool {
    let values: Vec<f64> = data.points.iter().map(|point| point.0).collect();
    data.unit != "1" && scale::scale_for(data.count, &values) == AxisScale::Log
}

/// Returns the plot `metrics/<metric>.png`.
pub fn cdf_plot(data: &CdfData) -> Plot {
    plot(data, AxisScale::Linear)
}

/// Returns the plot `metrics/<metric>_log_x.png`, for metrics with [`wants_log_axis`].
pub fn cdf_log_plot(data: &CdfData) -> Plot {
    plot(data, AxisScale::Log)
}

fn plot(data: &CdfData, scale: AxisScale) -> Plot {
    let (points, shape) = data.line();
    let line = PlotElement::Line {
        name: String::new(),
        points,
        color: Color::Blue,
        dash: Dash::Whole,
        shape,
        fill: AreaFill::None,
    };
    let quantiles: Vec<(f64, f64)> = [0.5, 0.9, 0.99]
        .into_iter()
        .filter_map(|share| Some((data.at(share)?, share)))
        .collect();
    let mut subtitle = vec![samples(data.count)];
    for ((value, _), name) in quantiles.iter().zip(["P50", "P90", "P99"]) {
        subtitle.push(format!("{name} {}", data.shown(*value)));
    }
    let at_zero = data.share_at_zero();
    if scale == AxisScale::Log && at_zero > 0.0 {
        subtitle.push(format!("{} % at 0, not on the log axis", number(at_zero * 100.0)));
    }
    let dots = PlotElement::Dots {
        name: String::new(),
        points: quantiles.clone(),
        color: Color::Vermillion,
        marker: crate::drawing::Marker::Disc,
    };
    let words = PlotElement::Texts {
        words: quantiles
            .into_iter()
            .zip(["P50", "P90", "P99"])
            .map(|(at, word)| (at, word.to_owned()))
            .collect(),
    };
    let drawing = Drawing {
        title: data.display.clone(),
        subtitle: subtitle.join(" · "),
        charts: vec![Chart {
            x: axis(data).scaled(scale),
            y: PlotAxis::new("share of samples", "1").spanning(AxisSpan::Fixed(0.0, 1.0)),
            marks: vec![line, dots, words],
            empty: "no samples".into(),
        }],
    };
    Plot {
        drawing,
        csv: cdf_csv(data),
    }
}

/// Formats a count: `1 sample`, `12 samples`.
pub(super) fn samples(count: u64) -> String {
    let word = if count == 1 { "sample" } else { "samples" };
    format!("{} {word}", grouped(count))
}

/// Formats a count with thousands separators: `12,345`.
pub(super) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// From zero, unless that would squeeze the samples at the right; shares that are all equal have
/// the full range.
fn axis(data: &CdfData) -> PlotAxis {
    let least = data.points.first().map_or(0.0, |point| point.0);
    let most = data.points.last().map_or(0.0, |point| point.0);
    let span = if data.unit == "1" && least == most && (0.0..=1.0).contains(&least) {
        AxisSpan::Fixed(0.0, 1.0)
    } else if least >= 0.0 && least <= most / 2.0 {
        AxisSpan::FromZero
    } else {
        AxisSpan::Values
    };
    let axis = PlotAxis::new(&data.display, &data.unit).spanning(span);
    // Shares and times have units with fractions, even if all values are whole.
    let is_count = !data.counts.is_empty() && data.unit != "1" && !data.unit.starts_with('s');
    if is_count { axis.counting() } else { axis }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(unit: &str, values: &[f64]) -> CdfData {
        let last = (values.len() - 1) as f64;
        CdfData {
            metric: "m".into(),
            display: "M".into(),
            unit: unit.into(),
            count: 100,
            points: values
                .iter()
                .enumerate()
                .map(|(place, value)| (*value, place as f64 / last))
                .collect(),
            counts: Vec::new(),
        }
    }

    #[test]
    fn interpolates_between_points() {
        let data = data("s", &[0.0, 10.0, 30.0]);
        assert_eq!(data.at(0.0), Some(0.0));
        assert_eq!(data.at(0.25), Some(5.0));
        assert_eq!(data.at(0.5), Some(10.0));
        assert_eq!(data.at(0.75), Some(20.0));
        assert_eq!(data.at(1.0), Some(30.0));
        assert_eq!(CdfData::default().at(0.5), None);
    }

    #[test]
    fn log_axis_for_squeezed_samples() {
        // 101 values 1..=101: P25 = 26, and the largest is not ten times that.
        let even: Vec<f64> = (1..=101).map(f64::from).collect();
        assert!(!wants_log_axis(&data("s", &even)));
        // The largest is 10^(75 / 45) = 46 times P25.
        let steep: Vec<f64> = (0..=100)
            .map(|place| 10f64.powf(f64::from(place) / 45.0))
            .collect();
        assert!(wants_log_axis(&data("s", &steep)));
        let small: Vec<f64> = steep.iter().map(|value| value / 1e4).collect();
        assert!(
            wants_log_axis(&data("s", &small)),
            "seconds below one are not a ratio"
        );
        assert!(!wants_log_axis(&data("1", &small)));
        let few = CdfData {
            count: 9,
            ..data("s", &steep)
        };
        assert!(!wants_log_axis(&few));
        assert!(!wants_log_axis(&data("s", &[0.0; 101])));
    }

    #[test]
    fn counts_are_steps() {
        let counts = CdfData {
            counts: vec![(1.0, 0.25), (2.0, 0.75), (5.0, 1.0)],
            ..data("tokens", &[1.0, 2.0, 5.0])
        };
        let steps = vec![(1.0, 0.0), (1.0, 0.25), (2.0, 0.75), (5.0, 1.0)];
        assert_eq!(counts.line(), (steps, LineShape::Steps));
        assert!(axis(&counts).counts);
        let times = data("s", &[1.0, 2.0, 5.0]);
        assert_eq!(times.line().1, LineShape::Straight);
        assert!(!axis(&times).counts);
    }

    #[test]
    fn log_plot_states_the_share_of_zeros() {
        let mut values = vec![0.0; 31];
        values.extend((0..70).map(|place| 10f64.powf(f64::from(place) / 30.0)));
        let gaps = data("s", &values);
        assert!(wants_log_axis(&gaps));
        let note = "30 % at 0, not on the log axis";
        assert!(cdf_log_plot(&gaps).drawing.subtitle.ends_with(note));
        assert!(!cdf_plot(&gaps).drawing.subtitle.contains("log axis"));
        assert!(
            !cdf_log_plot(&data("s", &values[31..]))
                .drawing
                .subtitle
                .contains("log axis")
        );
    }

    #[test]
    fn axes_span_the_samples() {
        let span = |unit, values: &[f64]| axis(&data(unit, values)).span;
        assert_eq!(span("s", &[1.0, 2.0, 9.0]), AxisSpan::FromZero);
        assert_eq!(span("s", &[7.0, 8.0, 9.0]), AxisSpan::Values);
        // A share cannot be 150 %.
        assert_eq!(span("1", &[1.0, 1.0, 1.0]), AxisSpan::Fixed(0.0, 1.0));
        assert_eq!(span("1", &[0.9, 0.95, 1.0]), AxisSpan::Values);
        assert_eq!(span("", &[3.0, 3.0]), AxisSpan::Values);
    }

    #[test]
    fn groups_digits_of_counts() {
        assert_eq!(grouped(12), "12");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(samples(1), "1 sample");
    }
}
