//! Time to first chunk by the number of new prompt tokens: the cost of a prefill if history is
//! cached.

use veeksha_stats::percentile;

use super::cdf::{grouped, samples};
use super::plot::Plot;
use super::scale;
use super::selection::select_evenly;
use super::table::{cell, csv_table};
use crate::drawing::{
    AreaFill, AxisSpan, Chart, Color, Dash, Drawing, LineShape, Marker, PlotAxis, PlotElement,
};

/// Times to first chunk by the tokens of new messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrefillData {
    /// Prompt tokens without history, ascending, and times to first chunk in seconds.
    pub groups: Vec<(f64, Vec<f64>)>,
}

/// Maximum number of drawn points.
const DRAWN: usize = 3_000;
/// Maximum number of points of the median line: with more lengths, ranges of lengths with about
/// equal numbers of samples are merged.
const MEDIANS: usize = 40;

/// Returns the plot `metrics/prefill_by_length.png`: a point per request, a line through the
/// medians.
pub fn prefill_plot(data: &PrefillData) -> Plot {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (length, times) in &data.groups {
        points.extend(times.iter().map(|time| (*length, *time)));
    }
    points.retain(|(length, time)| length.is_finite() && time.is_finite());
    let count = points.len();
    let drawn = select_evenly(&points, DRAWN);
    let mut subtitle = samples(count as u64);
    if drawn.len() < count {
        subtitle.push_str(&format!(" · {} of them drawn", grouped(drawn.len() as u64)));
    }
    let scale_of = |axis: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = points.iter().map(axis).collect();
        values.sort_unstable_by(f64::total_cmp);
        scale::scale_for_all(count as u64, &values)
    };
    let median_line = PlotElement::Line {
        name: "median".into(),
        points: medians(&points),
        color: Color::Vermillion,
        dash: Dash::Whole,
        shape: LineShape::Straight,
        fill: AreaFill::None,
    };
    let drawing = Drawing {
        title: "Time to First Chunk of each request".into(),
        subtitle,
        charts: vec![Chart {
            x: PlotAxis::new("new prompt tokens (without history)", "")
                .scaled(scale_of(|point| point.0))
                .spanning(AxisSpan::FromZero),
            y: PlotAxis::new("Time to First Chunk", "s")
                .scaled(scale_of(|point| point.1))
                .spanning(AxisSpan::FromZero),
            marks: vec![
                PlotElement::Dots {
                    name: "request".into(),
                    points: drawn,
                    color: Color::Blue,
                    marker: Marker::Dot,
                },
                median_line,
            ],
            empty: "no samples".into(),
        }],
    };
    let csv = csv_table(
        &["new prompt tokens", "ttfc (s)"],
        points.iter().map(|(length, time)| [cell(*length), cell(*time)]),
    );
    Plot { drawing, csv }
}

/// Returns the median time of each length, or of ranges of lengths at their median length. Points
/// are sorted by length.
fn medians(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let by_length: Vec<&[(f64, f64)]> = points.chunk_by(|a, b| a.0 == b.0).collect();
    let each = if by_length.len() <= MEDIANS {
        1
    } else {
        points.len().div_ceil(MEDIANS)
    };
    let mut line = Vec::new();
    let mut range: Vec<(f64, f64)> = Vec::new();
    for (place, same) in by_length.iter().enumerate() {
        range.extend_from_slice(same);
        if range.len() >= each || place + 1 == by_length.len() {
            let median = |axis: fn(&(f64, f64)) -> f64| {
                let mut values: Vec<f64> = range.iter().map(axis).collect();
                values.sort_unstable_by(f64::total_cmp);
                percentile(&values, 0.5)
            };
            line.extend(median(|point| point.0).zip(median(|point| point.1)));
            range.clear();
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_connects_the_medians() {
        let points = [
            (128.0, 1.0),
            (128.0, 9.0),
            (128.0, 2.0),
            (512.0, 4.0),
            (512.0, 6.0),
        ];
        assert_eq!(medians(&points), [(128.0, 2.0), (512.0, 5.0)]);
        assert!(medians(&[]).is_empty());
    }

    #[test]
    fn merges_many_lengths() {
        let points: Vec<(f64, f64)> = (0..1_000)
            .map(|at| (f64::from(at), f64::from(at) * 2.0))
            .collect();
        let line = medians(&points);
        assert_eq!(line.len(), 40);
        // 25 lengths each: the first range is 0..=24 with the medians 12 and 24.
        assert_eq!(line[0], (12.0, 24.0));
    }
}
