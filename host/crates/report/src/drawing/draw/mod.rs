//! Draws a drawing: layout of titles, charts, axes and legends.

mod legend;
mod marks;
mod painter;

use plotters::prelude::*;

use super::canvas::{Canvas, Point, TextAnchor};
use super::elements::{Chart, Drawing};
use super::palette::{FAINT, GRID, INK, LINE, SOFT};
use crate::error::ReportError;
use painter::{Painter, PlotFrame, PreparedDrawing};
pub(super) use painter::{SIZE, SMALL_SIZE, Style};

/// Minimum size of the names of lanes, as a share of the size of tick labels.
const SMALLEST_NAME: f64 = 0.7;

/// Draws at the canvas's origin.
pub(super) fn drawing<B: DrawingBackend>(
    drawing: &Drawing,
    canvas: &Canvas<'_, B>,
    style: Style,
) -> Result<(), ReportError> {
    let (width, height) = (f64::from(style.size.0), f64::from(style.size.1));
    let mut frame = PlotFrame {
        left: style.margin,
        top: style.margin,
        right: width - style.margin,
        bottom: height - style.margin * 0.7,
    };
    let mut headline = |text: &str, size: f64, color: &RGBColor| {
        if text.is_empty() {
            return Ok(());
        }
        let text = canvas.cut(text, size, frame.width());
        let middle = frame.top + size * 0.5;
        frame.top += size * 1.25;
        canvas.text(&text, (frame.left, middle), size, TextAnchor::Left, color)
    };
    headline(&drawing.title, style.title, &INK)?;
    headline(&drawing.subtitle, style.tick, &SOFT)?;
    frame.top += style.margin * 0.4;

    let count = drawing.charts.len().max(1) as f64;
    let each = frame.height() / count;
    // Axes below each other begin at the same position.
    let room = (frame.width() / (style.tick * 5.0), each / (style.tick * 3.2));
    let fitted: Vec<_> = drawing
        .charts
        .iter()
        .map(|chart| PreparedDrawing::of(chart, room))
        .collect();
    let numbers = fitted
        .iter()
        .flatten()
        .flat_map(|prepared| &prepared.y.ticks)
        .map(|(_, label)| canvas.width_of(label, style.tick))
        .fold(0.0, f64::max);
    let numbers = numbers.min(frame.width() * 0.3);
    for (place, (chart, prepared)) in drawing.charts.iter().zip(&fitted).enumerate() {
        let part = PlotFrame {
            top: frame.top + each * place as f64,
            bottom: frame.top + each * (place as f64 + 1.0),
            ..frame
        };
        match prepared {
            Some(prepared) => Painter {
                canvas,
                style,
                prepared,
            }
            .paint(chart, part, numbers)?,
            None => {
                let middle = ((part.left + part.right) / 2.0, (part.top + part.bottom) / 2.0);
                canvas.text(&chart.empty, middle, style.label, TextAnchor::Middle, &SOFT)?;
            }
        }
    }
    Ok(())
}

impl<B: DrawingBackend> Painter<'_, '_, B> {
    fn paint(&self, chart: &Chart, part: PlotFrame, numbers: f64) -> Result<(), ReportError> {
        let style = self.style;
        let legend = legend::of(chart);
        let mut frame = PlotFrame {
            left: part.left + style.label * 1.2 + numbers + 10.0,
            top: part.top + style.tick * 0.6,
            right: part.right - style.margin * 0.4,
            bottom: part.bottom - style.tick * 1.3 - style.label * 1.3,
        };
        let legend_rows = self.legend_rows(&legend, &frame);
        frame.top += style.tick * 1.35 * legend_rows.len() as f64;
        self.legend(&legend_rows, part.top)?;
        self.grid(chart, &frame)?;
        for mark in &chart.marks {
            self.mark(mark, chart, &frame)?;
        }
        self.axes(chart, &frame)?;
        let middle = (part.left + style.label * 0.5, (frame.top + frame.bottom) / 2.0);
        let label = self
            .canvas
            .cut(&self.prepared.y.label, style.label, part.height());
        self.canvas.upright_text(&label, middle, style.label, &SOFT)?;
        let below = frame.bottom + style.tick * 1.4 + style.label * 0.65;
        let label = self.canvas.cut(&self.prepared.x.label, style.label, part.width());
        let middle = ((frame.left + frame.right) / 2.0, below);
        self.canvas
            .text(&label, middle, style.label, TextAnchor::Middle, &SOFT)
    }

    fn place(&self, (x, y): Point, frame: &PlotFrame) -> Point {
        (
            frame.left + frame.width() * self.prepared.x.place(x),
            frame.bottom - frame.height() * self.prepared.y.place(y),
        )
    }

    fn grid(&self, chart: &Chart, frame: &PlotFrame) -> Result<(), ReportError> {
        let PreparedDrawing { x, y } = self.prepared;
        let upright = |value: f64, color: RGBColor| {
            let at = frame.left + frame.width() * x.place(value);
            self.canvas.hairline((at, frame.top), (at, frame.bottom), &color)
        };
        let level = |value: f64, color: RGBColor| {
            let at = frame.bottom - frame.height() * y.place(value);
            self.canvas.hairline((frame.left, at), (frame.right, at), &color)
        };
        x.minor.iter().try_for_each(|value| upright(*value, FAINT))?;
        y.minor.iter().try_for_each(|value| level(*value, FAINT))?;
        // There are no values between names.
        if chart.x.names.is_empty() {
            x.ticks.iter().try_for_each(|(value, _)| upright(*value, GRID))?;
        }
        if chart.y.names.is_empty() {
            y.ticks.iter().try_for_each(|(value, _)| level(*value, GRID))?;
        }
        Ok(())
    }

    /// Draws axes and their labels, without overlapping ones.
    fn axes(&self, chart: &Chart, frame: &PlotFrame) -> Result<(), ReportError> {
        let PreparedDrawing { x, y } = self.prepared;
        let (canvas, size) = (self.canvas, self.style.tick);
        let corner = (frame.left, frame.bottom);
        canvas.hairline((frame.left, frame.top), corner, &LINE)?;
        canvas.hairline(corner, (frame.right, frame.bottom), &LINE)?;
        let mut free_from = f64::NEG_INFINITY;
        for (value, label) in &x.ticks {
            let room = frame.width() / x.ticks.len() as f64;
            let label = canvas.cut(label, size, room.max(frame.width() * 0.2));
            let width = canvas.width_of(&label, size);
            let at = frame.left + frame.width() * x.place(*value);
            // The last labels are kept within the drawing.
            let middle = at.min(frame.right + self.style.margin - width / 2.0);
            if middle - width / 2.0 < free_from {
                continue;
            }
            free_from = middle + width / 2.0 + size * 0.5;
            canvas.hairline((at, frame.bottom), (at, frame.bottom + 5.0), &LINE)?;
            let below = (middle, frame.bottom + 6.0 + size * 0.55);
            canvas.text(&label, below, size, TextAnchor::Middle, &SOFT)?;
        }
        // Names of low lanes are shrunk a little before some of them are omitted.
        let size = match chart.y.names.len() {
            0 => size,
            lanes => (frame.height() / lanes as f64 * 0.98).clamp(size * SMALLEST_NAME, size),
        };
        let mut free_to = f64::INFINITY;
        let widest = frame.left - 10.0;
        for (value, label) in y.ticks.iter().filter(|(_, label)| !label.is_empty()) {
            let at = frame.bottom - frame.height() * y.place(*value);
            if at + size * 0.5 > free_to {
                continue;
            }
            free_to = at - size * 0.5;
            let label = canvas.cut(label, size, widest.min(f64::from(self.style.size.0) * 0.3));
            canvas.hairline((frame.left - 5.0, at), (frame.left, at), &LINE)?;
            canvas.text(&label, (frame.left - 8.0, at), size, TextAnchor::Right, &SOFT)?;
        }
        Ok(())
    }
}
