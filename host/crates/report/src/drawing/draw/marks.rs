//! Draws the elements of a chart.

use plotters::prelude::{Color as _, *};

use super::painter::{Painter, PlotFrame, finite, shown};
use crate::drawing::canvas::{Point, TextAnchor};
use crate::drawing::elements::{AreaFill, BoxShape, Chart, Dash, LineShape, Marker, PlotElement};
use crate::drawing::palette::{Color, INK};
use crate::error::ReportError;

impl<B: DrawingBackend> Painter<'_, '_, B> {
    /// Draws an element between the axes.
    pub(super) fn mark(
        &self,
        mark: &PlotElement,
        chart: &Chart,
        frame: &PlotFrame,
    ) -> Result<(), ReportError> {
        match mark {
            PlotElement::Line {
                points,
                color,
                dash,
                shape,
                fill,
                ..
            } => self.line(&shown(points, chart), *color, (*dash, *shape, *fill), frame),
            PlotElement::Dots {
                points,
                color,
                marker,
                ..
            } => self.dots(&shown(points, chart), *color, *marker, frame),
            PlotElement::Bars { points, color, .. } => finite(points).windows(2).try_for_each(|pair| {
                let [(from, height), (to, _)] = [pair[0], pair[1]];
                let corner = self.place((to, self.prepared.y.low().max(0.0)), frame);
                let place = self.place((from, height), frame);
                if place.1 == corner.1 {
                    return Ok(());
                }
                self.canvas.rectangle(place, corner, color.rgb().mix(0.75))
            }),
            PlotElement::Spans {
                spans, color, height, ..
            } => {
                let lane = self.place((0.0, 0.0), frame).1 - self.place((0.0, 1.0), frame).1;
                let half = lane.abs() * height / 2.0;
                spans.iter().try_for_each(|(from, to, at)| {
                    let (from, to) = (self.place((*from, *at), frame), self.place((*to, *at), frame));
                    self.canvas
                        .rectangle((from.0, from.1 - half), (to.0, to.1 + half), color.rgb().into())
                })
            }
            PlotElement::Boxes { boxes, color } => {
                let room = frame.width() / boxes.len().max(1) as f64;
                let half = (room * 0.3).min(60.0);
                boxes
                    .iter()
                    .filter(|(at, shape)| {
                        at.is_finite() && shape.heights.iter().all(|height| height.is_finite())
                    })
                    .try_for_each(|(at, shape)| {
                        if shape.density.is_empty() {
                            return self.box_with_whiskers(*at, shape, half, *color, frame);
                        }
                        self.violin(*at, &shape.density, half, *color, frame)?;
                        self.box_with_whiskers(*at, shape, half * 0.25, *color, frame)
                    })
            }
            PlotElement::Band { stretches, color } => {
                let finite = stretches
                    .iter()
                    .filter(|(at, low, high)| (at + low + high).is_finite());
                let lower = finite.clone().map(|(at, low, _)| self.place((*at, *low), frame));
                let upper = finite.map(|(at, _, high)| self.place((*at, *high), frame));
                let around: Vec<Point> = upper.chain(lower.rev()).collect();
                if around.len() < 4 {
                    return Ok(());
                }
                self.canvas.polygon(&around, color.rgb().mix(0.25))
            }
            PlotElement::Texts { words } => words
                .iter()
                .filter(|((x, y), _)| chart.x.can_show(*x) && chart.y.can_show(*y))
                .try_for_each(|(at, word)| self.word(*at, word, frame)),
        }
    }

    fn word(&self, at: Point, word: &str, frame: &PlotFrame) -> Result<(), ReportError> {
        let size = self.style.tick;
        let (x, y) = self.place(at, frame);
        let fits = x + 10.0 + self.canvas.width_of(word, size) < frame.right + self.style.margin;
        let anchor = if fits { TextAnchor::Left } else { TextAnchor::Right };
        let aside = if fits { 10.0 } else { -10.0 };
        let below = (y + size * 0.75).min(frame.bottom - size * 0.5);
        self.canvas.text(word, (x + aside, below), size, anchor, &INK)
    }

    fn line(
        &self,
        points: &[Point],
        color: Color,
        (dash, shape, fill): (Dash, LineShape, AreaFill),
        frame: &PlotFrame,
    ) -> Result<(), ReportError> {
        let mut way: Vec<Point> = Vec::with_capacity(2 * points.len());
        for point in points {
            let place = self.place(*point, frame);
            if shape == LineShape::Steps
                && let Some(before) = way.last().copied()
            {
                extend_path(&mut way, (place.0, before.1));
            }
            extend_path(&mut way, place);
        }
        let rgba: RGBAColor = color.rgb().into();
        if fill == AreaFill::Below
            && let (Some(first), Some(last)) = (way.first(), way.last())
        {
            let mut area = way.clone();
            area.extend([(last.0, frame.bottom), (first.0, frame.bottom)]);
            self.canvas.polygon(&area, color.rgb().mix(0.18))?;
        }
        if let [only] = way.as_slice() {
            return self.canvas.disc(*only, self.style.line * 1.4, rgba);
        }
        match dash.lengths() {
            None => self.canvas.line(&way, rgba, self.style.line),
            Some(lengths) => self.canvas.dashed(&way, lengths, rgba, self.style.line),
        }
    }

    fn dots(
        &self,
        points: &[Point],
        color: Color,
        marker: Marker,
        frame: &PlotFrame,
    ) -> Result<(), ReportError> {
        let line = self.style.line;
        points.iter().try_for_each(|point| {
            let (x, y) = self.place(*point, frame);
            match marker {
                Marker::Dot => self.canvas.disc((x, y), line, color.rgb().mix(0.45)),
                Marker::Disc => self.canvas.disc((x, y), line * 1.8, color.rgb().into()),
                Marker::Cross => self.cross((x, y), color),
            }
        })
    }

    pub(super) fn cross(&self, (x, y): Point, color: Color) -> Result<(), ReportError> {
        let (half, line) = (self.style.line * 1.8, self.style.line * 0.8);
        let rgba: RGBAColor = color.rgb().into();
        self.canvas
            .line(&[(x - half, y - half), (x + half, y + half)], rgba, line)?;
        self.canvas
            .line(&[(x - half, y + half), (x + half, y - half)], rgba, line)
    }

    fn violin(
        &self,
        at: f64,
        density: &[(f64, f64)],
        half: f64,
        color: Color,
        frame: &PlotFrame,
    ) -> Result<(), ReportError> {
        let side = |sign: f64| {
            density.iter().map(move |(height, width)| {
                let (x, y) = self.place((at, *height), frame);
                (x + sign * half * width, y)
            })
        };
        let mut outline: Vec<Point> = side(-1.0).collect();
        let mut right: Vec<Point> = side(1.0).collect();
        right.reverse();
        outline.extend(right);
        self.canvas.polygon(&outline, color.rgb().mix(0.18))?;
        outline.extend(outline.first().copied());
        self.canvas
            .line(&outline, color.rgb().mix(0.8), self.style.line * 0.5)
    }

    fn box_with_whiskers(
        &self,
        at: f64,
        shape: &BoxShape,
        half: f64,
        color: Color,
        frame: &PlotFrame,
    ) -> Result<(), ReportError> {
        let place = |height: f64| self.place((at, height), frame);
        let [low, lower, middle, upper, high] = shape.heights.map(place);
        let (x, line) = (middle.0, self.style.line);
        let rgba: RGBAColor = color.rgb().into();
        let canvas = self.canvas;
        for outlier in &shape.outliers {
            let (x, y) = place(*outlier);
            canvas.disc((x, y), line * 0.9, color.rgb().mix(0.45))?;
        }
        canvas.line(&[low, lower], rgba, line * 0.7)?;
        canvas.line(&[upper, high], rgba, line * 0.7)?;
        for end in [low, high] {
            canvas.line(
                &[(x - half / 2.0, end.1), (x + half / 2.0, end.1)],
                rgba,
                line * 0.7,
            )?;
        }
        let (left, right) = (x - half, x + half);
        canvas.rectangle((left, upper.1), (right, lower.1), color.rgb().mix(0.25))?;
        let around = [
            (left, upper.1),
            (right, upper.1),
            (right, lower.1),
            (left, lower.1),
            (left, upper.1),
        ];
        canvas.line(&around, rgba, line * 0.7)?;
        canvas.line(
            &[(left, middle.1), (right, middle.1)],
            Color::Vermillion.rgb().into(),
            line * 1.2,
        )?;
        let mean = place(shape.mean);
        canvas.disc(mean, line * 1.6, Color::Black.rgb().into())
    }
}

/// Adds the next point of a line. Only the ends of a horizontal stretch are kept, so that it is
/// drawn in one piece.
fn extend_path(way: &mut Vec<Point>, place: Point) {
    if let [.., first, second] = way.as_slice()
        && first.1 == second.1
        && second.1 == place.1
        && second.0 <= place.0
    {
        way.pop();
    }
    way.push(place);
}
