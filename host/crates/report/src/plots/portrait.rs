//! A portrait: a grid of small plots in one SVG.

use crate::drawing::{
    self, AreaFill, AxisScale, AxisSpan, Chart, Color, Dash, Drawing, LineShape, PlotAxis, PlotElement,
};
use crate::error::ReportError;

/// One plot of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Its title.
    pub title: String,
    /// The label of the x axis with the unit: `prompt tokens`, `think time (s)`.
    pub x_label: String,
    /// The label of the y axis with the unit.
    pub y_label: String,
    /// The kind of drawing.
    pub kind: PanelKind,
    /// Names and points, with ascending x. Points that are not finite are skipped. Names are shown
    /// if there are several.
    pub series: Vec<(String, Vec<(f64, f64)>)>,
    /// True for a logarithmic x axis. Lines then begin above 0, and bars that begin at 0 extend to
    /// the left edge.
    pub log_x: bool,
}

/// The kind of a panel's drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanelKind {
    /// Bars: a point is the beginning of a bar and its height; the last one is the end of the last
    /// bar, and its height is ignored.
    Histogram,
    /// Steps up to a share: y goes from 0 to 1 and is shown in percent.
    Cdf,
    /// A line through the points.
    Line,
}

/// Draws the panels in a grid, two per row.
pub fn portrait_svg(panels: &[Panel]) -> Result<String, ReportError> {
    if panels.is_empty() {
        return Err(ReportError::NothingToPlot);
    }
    let drawings: Vec<Drawing> = panels.iter().map(drawing).collect();
    drawing::grid(&drawings)
}

fn drawing(panel: &Panel) -> Drawing {
    let series: Vec<(&String, Vec<(f64, f64)>)> = panel
        .series
        .iter()
        .map(|(name, points)| (name, finite(points)))
        .collect();
    let right = series
        .iter()
        .flat_map(|(_, points)| points.iter().map(|point| point.0))
        .fold(f64::NEG_INFINITY, f64::max);
    let marks = series.into_iter().enumerate().map(|(number, (name, points))| {
        let (name, color) = (name.clone(), Color::nth(number));
        let points = match panel.kind {
            PanelKind::Histogram => return PlotElement::Bars { name, points, color },
            PanelKind::Cdf => cumulative(points, right),
            PanelKind::Line => points,
        };
        PlotElement::Line {
            name,
            points,
            color,
            dash: Dash::nth(number),
            shape: match panel.kind {
                PanelKind::Cdf => LineShape::Steps,
                PanelKind::Histogram | PanelKind::Line => LineShape::Straight,
            },
            fill: AreaFill::None,
        }
    });
    let x = PlotAxis::new(&panel.x_label, "").scaled(if panel.log_x {
        AxisScale::Log
    } else {
        AxisScale::Linear
    });
    let y = match panel.kind {
        PanelKind::Cdf => PlotAxis::new(&panel.y_label, "1").spanning(AxisSpan::Fixed(0.0, 1.0)),
        PanelKind::Histogram | PanelKind::Line => {
            PlotAxis::new(&panel.y_label, "").spanning(AxisSpan::FromZero)
        }
    };
    Drawing {
        title: panel.title.clone(),
        subtitle: String::new(),
        charts: vec![Chart {
            x,
            y,
            marks: marks.collect(),
            empty: "no data".into(),
        }],
    }
}

fn finite(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let finite = points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
    finite.copied().collect()
}

/// Extends a cumulative curve from 0 at its first value and to the right edge.
fn cumulative(mut points: Vec<(f64, f64)>, right: f64) -> Vec<(f64, f64)> {
    if let (Some((first, _)), Some((_, last))) = (points.first().copied(), points.last().copied()) {
        points.insert(0, (first, 0.0));
        points.push((right, last));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cumulative_curve_steps_and_extends_to_the_edge() {
        let line = cumulative(vec![(1.0, 0.25), (3.0, 1.0)], 5.0);
        assert_eq!(line, [(1.0, 0.0), (1.0, 0.25), (3.0, 1.0), (5.0, 1.0)]);
        assert!(cumulative(Vec::new(), 5.0).is_empty());
    }
}
