//! Plots as SVG: a grid of small panels.
//!
//! Text is left to the viewer's sans-serif font; no font of the system is read.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use veeksha_stats::number;

use crate::ReportError;

/// One plot of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Its heading.
    pub title: String,
    /// What runs along it, with the unit: `prompt tokens`, `think time (s)`.
    pub x_label: String,
    /// What stands upright, with the unit.
    pub y_label: String,
    /// How the points are drawn.
    pub kind: PanelKind,
    /// Names and points, by ascending x. Points that are not finite are left out. The names are shown where there are several.
    pub series: Vec<(String, Vec<(f64, f64)>)>,
    /// Whether equal ratios of x have equal lengths. What is not above 0 then stands at the left edge.
    pub log_x: bool,
}

/// How the points of a panel are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanelKind {
    /// Bars: a point is the beginning of a bar and its height; the last one says where the last bar ends, and its height nothing.
    Histogram,
    /// Steps up to a share: y goes from 0 to 1 and is shown in percent.
    Cdf,
    /// A line through the points.
    Line,
}

const WIDTH: u32 = 480;
const HEIGHT: u32 = 300;
const TITLE: u32 = 18;
const LABEL: u32 = 14;

/// Okabe and Ito's colours ("Color Universal Design", 2008), which people of every colour vision tell apart; those that are hard to
/// see on white are left out. Series differ by their dashes too.
const COLOURS: [RGBColor; 5] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(0, 0, 0),
];

/// Dash and gap in pixels; no gap is a whole line.
const DASHES: [(u32, u32); 5] = [(1, 0), (9, 4), (3, 3), (14, 4), (5, 2)];

const GREY: RGBColor = RGBColor(90, 90, 90);
const PALE: RGBColor = RGBColor(225, 225, 225);

/// The panels in a grid, two beside one another.
pub fn portrait_svg(panels: &[Panel]) -> Result<String, ReportError> {
    if panels.is_empty() {
        return Err(ReportError::NothingToPlot);
    }
    let columns = panels.len().min(2);
    let rows = panels.len().div_ceil(columns);
    let mut svg = String::new();
    let size = (WIDTH * columns as u32, HEIGHT * rows as u32);
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        for (panel, area) in panels.iter().zip(root.split_evenly((rows, columns))) {
            draw(panel, &area)?;
        }
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b, X> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, RangedCoordf64>>;

fn failed(error: impl std::fmt::Display) -> ReportError {
    ReportError::Plot(error.to_string())
}

fn draw(panel: &Panel, area: &Area<'_>) -> Result<(), ReportError> {
    let series: Vec<Vec<(f64, f64)>> = panel.series.iter().map(|(_, points)| finite(points)).collect();
    let Some((x, y)) = ranges(panel, &series) else {
        let style = ("sans-serif", LABEL).into_font().color(&GREY);
        let title = format!("{}: no data", panel.title);
        return area.draw_text(&title, &style, (24, 24)).map_err(failed);
    };
    let mut builder = ChartBuilder::on(area);
    builder
        .caption(&panel.title, ("sans-serif", TITLE))
        .margin(10)
        .margin_right(24)
        .x_label_area_size(46)
        .y_label_area_size(66);
    if panel.log_x {
        let chart = builder
            .build_cartesian_2d(x.clone().log_scale(), y)
            .map_err(failed)?;
        fill(panel, &series, x, chart)
    } else {
        let chart = builder.build_cartesian_2d(x.clone(), y).map_err(failed)?;
        fill(panel, &series, x, chart)
    }
}

fn fill<'a, 'b: 'a, X>(
    panel: &Panel,
    series: &[Vec<(f64, f64)>],
    x: Range<f64>,
    mut chart: Chart<'a, 'b, X>,
) -> Result<(), ReportError>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64> + 'a,
{
    let percent = |value: &f64| format!("{} %", number(value * 100.0));
    let plain = |value: &f64| tick(*value);
    let y_labels: &dyn Fn(&f64) -> String = match panel.kind {
        PanelKind::Cdf => &percent,
        PanelKind::Histogram | PanelKind::Line => &plain,
    };
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(PALE)
        .axis_style(GREY)
        .x_labels(7)
        .y_labels(6)
        .x_label_formatter(&plain)
        .y_label_formatter(y_labels)
        .x_desc(&panel.x_label)
        .y_desc(&panel.y_label)
        .label_style(("sans-serif", LABEL))
        .axis_desc_style(("sans-serif", LABEL))
        .draw()
        .map_err(failed)?;
    for (number, points) in series.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let (dash, gap) = DASHES[number % DASHES.len()];
        let inside = |(at, height): (f64, f64)| (at.clamp(x.start, x.end), height);
        let points: Vec<(f64, f64)> = points.iter().copied().map(inside).collect();
        let name = &panel.series[number].0;
        let drawn = match panel.kind {
            PanelKind::Histogram => chart.draw_series(points.windows(2).map(|pair| {
                let [(from, height), (to, _)] = [pair[0], pair[1]];
                Rectangle::new([(from, 0.0), (to, height)], colour.mix(0.75).filled())
            })),
            PanelKind::Cdf | PanelKind::Line => {
                let line = match panel.kind {
                    PanelKind::Cdf => steps(&points, x.end),
                    _ => points,
                };
                let style = colour.stroke_width(2);
                if gap == 0 {
                    chart.draw_series(LineSeries::new(line, style))
                } else {
                    chart.draw_series(DashedLineSeries::new(line, dash, gap, style))
                }
            }
        };
        let drawn = drawn.map_err(failed)?;
        if series.len() > 1 {
            let style = colour.stroke_width(3);
            drawn
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        }
    }
    if series.len() > 1 {
        // Where such curves seldom are.
        let corner = match panel.kind {
            PanelKind::Cdf => SeriesLabelPosition::LowerRight,
            PanelKind::Histogram | PanelKind::Line => SeriesLabelPosition::UpperRight,
        };
        chart
            .configure_series_labels()
            .position(corner)
            .background_style(WHITE.mix(0.85))
            .border_style(PALE)
            .label_font(("sans-serif", LABEL))
            .draw()
            .map_err(failed)?;
    }
    Ok(())
}

fn finite(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let finite = points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
    finite.copied().collect()
}

/// What the axes span; `None` if there is nothing to show.
fn ranges(panel: &Panel, series: &[Vec<(f64, f64)>]) -> Option<(Range<f64>, Range<f64>)> {
    let all = || series.iter().flatten();
    let least = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::min);
    let most = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::max);
    let (mut left, mut right) = (
        least(&mut all().map(|point| point.0))?,
        most(&mut all().map(|point| point.0))?,
    );
    if panel.log_x {
        let positive = least(&mut all().map(|point| point.0).filter(|x| *x > 0.0));
        // Something at or below 0 has its place at the left, apart from the smallest value above it.
        left = match positive {
            Some(positive) if left <= 0.0 => positive / 2.0,
            Some(positive) => positive,
            None => 0.5,
        };
        right = right.max(left * 10.0);
    } else if right - left < f64::EPSILON * right.abs().max(1.0) {
        (left, right) = (left - 0.5, right + 0.5);
    }
    let bottom = least(&mut all().map(|point| point.1))?.min(0.0);
    let top = match panel.kind {
        PanelKind::Cdf => 1.0,
        PanelKind::Histogram | PanelKind::Line => most(&mut all().map(|point| point.1))? * 1.05,
    };
    Some((left..right, bottom..if top > bottom { top } else { bottom + 1.0 }))
}

/// The steps of a cumulative curve: from 0 up at each value, and on to the right edge.
fn steps(points: &[(f64, f64)], right: f64) -> Vec<(f64, f64)> {
    let mut line = Vec::with_capacity(2 * points.len() + 2);
    let mut height = 0.0;
    for (at, share) in points {
        line.push((*at, height));
        line.push((*at, *share));
        height = *share;
    }
    line.push((right, height));
    line
}

/// A number short enough for an axis.
fn tick(value: f64) -> String {
    match value.abs() {
        size if size >= 1e9 => format!("{}G", number(value / 1e9)),
        size if size >= 1e6 => format!("{}M", number(value / 1e6)),
        size if size >= 1e4 => format!("{}k", number(value / 1e3)),
        _ => number(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short() {
        let cases = [
            (0.0, "0"),
            (0.25, "0.25"),
            (512.0, "512"),
            (12_000.0, "12k"),
            (2_500_000.0, "2.5M"),
            (3e9, "3G"),
        ];
        for (value, expected) in cases {
            assert_eq!(tick(value), expected);
        }
    }

    #[test]
    fn a_cumulative_curve_goes_up_at_its_values() {
        let line = steps(&[(1.0, 0.25), (3.0, 1.0)], 5.0);
        assert_eq!(
            line,
            [(1.0, 0.0), (1.0, 0.25), (3.0, 0.25), (3.0, 1.0), (5.0, 1.0)]
        );
    }

    #[test]
    fn axes_span_the_points() {
        let mut panel = Panel {
            title: String::new(),
            x_label: String::new(),
            y_label: String::new(),
            kind: PanelKind::Cdf,
            series: Vec::new(),
            log_x: false,
        };
        let of = |panel: &Panel, points: &[(f64, f64)]| ranges(panel, &[points.to_vec()]);
        assert_eq!(of(&panel, &[(2.0, 0.5), (8.0, 1.0)]), Some((2.0..8.0, 0.0..1.0)));
        assert_eq!(of(&panel, &[(7.0, 1.0)]), Some((6.5..7.5, 0.0..1.0)));
        assert_eq!(of(&panel, &[]), None);
        panel.log_x = true;
        assert_eq!(
            of(&panel, &[(0.0, 0.1), (4.0, 0.5), (800.0, 1.0)]),
            Some((2.0..800.0, 0.0..1.0))
        );
        assert_eq!(of(&panel, &[(0.0, 1.0)]), Some((0.5..5.0, 0.0..1.0)));
        panel.kind = PanelKind::Line;
        assert_eq!(
            of(&panel, &[(1.0, 0.0), (100.0, 0.0)]),
            Some((1.0..100.0, 0.0..1.0))
        );
    }
}
