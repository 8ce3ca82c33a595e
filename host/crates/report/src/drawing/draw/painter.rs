//! The state of a drawing in progress: sizes, rectangles, fitted axes.

use plotters::prelude::*;

use crate::drawing::axis::Fitted;
use crate::drawing::canvas::{Canvas, Point};
use crate::drawing::elements::{Chart, PlotElement};

/// Size of a single drawing in pixels.
pub(in crate::drawing) const SIZE: (u32, u32) = (800, 500);
/// Size of a drawing in a grid.
pub(in crate::drawing) const SMALL_SIZE: (u32, u32) = (480, 300);

/// Sizes in pixels.
#[derive(Clone, Copy, Debug)]
pub(in crate::drawing) struct Style {
    pub(super) size: (u32, u32),
    pub(super) title: f64,
    pub(super) label: f64,
    pub(super) tick: f64,
    pub(super) line: f64,
    pub(super) margin: f64,
}

impl Style {
    pub(in crate::drawing) const LARGE: Style = Style {
        size: SIZE,
        title: 27.0,
        label: 20.0,
        tick: 18.0,
        line: 2.5,
        margin: 18.0,
    };
    pub(in crate::drawing) const SMALL: Style = Style {
        size: SMALL_SIZE,
        title: 18.0,
        label: 14.0,
        tick: 13.0,
        line: 2.0,
        margin: 12.0,
    };
}

/// A rectangle of the drawing.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlotFrame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl PlotFrame {
    pub(super) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }
}

/// A chart with fitted axes.
pub(super) struct PreparedDrawing {
    pub(super) x: Fitted,
    pub(super) y: Fitted,
}

impl PreparedDrawing {
    /// Returns `None` if there is nothing to draw. The tuple is the number of tick labels that fit
    /// along either axis.
    pub(super) fn of(chart: &Chart, (across, up): (f64, f64)) -> Option<Self> {
        let points: Vec<Point> = chart.marks.iter().flat_map(|mark| reach(mark, chart)).collect();
        Some(PreparedDrawing {
            x: Fitted::new(&chart.x, points.iter().map(|point| point.0), across)?,
            y: Fitted::new(&chart.y, points.iter().map(|point| point.1), up)?,
        })
    }
}

/// Returns the points that the axes must include for an element.
fn reach(mark: &PlotElement, chart: &Chart) -> Vec<Point> {
    let points: Vec<Point> = match mark {
        PlotElement::Line { points, .. } | PlotElement::Dots { points, .. } => shown(points, chart),
        PlotElement::Bars { points, .. } => points.clone(),
        PlotElement::Spans { spans, .. } => spans
            .iter()
            .flat_map(|(from, to, lane)| [(*from, *lane), (*to, *lane)])
            .collect(),
        PlotElement::Boxes { boxes, .. } => boxes
            .iter()
            .flat_map(|(at, shape)| {
                let heights = shape.heights.iter().chain(&shape.outliers);
                heights.map(move |height| (*at, *height))
            })
            .collect(),
        PlotElement::Band { stretches, .. } => stretches
            .iter()
            .flat_map(|(at, low, high)| [(*at, *low), (*at, *high)])
            .collect(),
        PlotElement::Texts { .. } => Vec::new(),
    };
    finite(&points)
}

/// Returns the points that both axes can show.
pub(super) fn shown(points: &[Point], chart: &Chart) -> Vec<Point> {
    let shown = points
        .iter()
        .filter(|(x, y)| chart.x.can_show(*x) && chart.y.can_show(*y));
    shown.copied().collect()
}

pub(super) fn finite(points: &[Point]) -> Vec<Point> {
    let finite = points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
    finite.copied().collect()
}

pub(super) struct Painter<'a, 'b, B: DrawingBackend> {
    pub(super) canvas: &'a Canvas<'b, B>,
    pub(super) style: Style,
    pub(super) prepared: &'a PreparedDrawing,
}
