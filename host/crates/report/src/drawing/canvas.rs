//! Draws lines, areas and text in pixels of the drawing, independent of the backend.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::font::Letters;
use super::raster::stroke;
use crate::error::ReportError;

/// The kind of a backend. Backends accept whole pixels only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Medium {
    /// Pixels, with those of the backend being those of the drawing. Slanted edges are smoothed
    /// here.
    Raster,
    /// Shapes and text that a viewer draws. The backend has [`FINE`] pixels for each of the
    /// drawing.
    Vector,
}

/// Pixels of a vector drawing per displayed pixel, in either direction.
pub(super) const FINE: u32 = 2;

/// The position of a text relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextAnchor {
    /// The text begins at the point.
    Left,
    /// The text is centered at the point.
    Middle,
    /// The text ends at the point.
    Right,
}

pub(super) type Point = (f64, f64);

/// Draws in pixels of the drawing. The vertical middle of a text's capitals is at its point.
pub(super) struct Canvas<'a, B: DrawingBackend> {
    area: &'a DrawingArea<B, Shift>,
    medium: Medium,
    letters: Letters,
    origin: Point,
}

fn failed(error: impl std::fmt::Display) -> ReportError {
    ReportError::Plot(error.to_string())
}

/// Half the height of a capital, as a share of the line height: DejaVu's capitals have 0.729 em,
/// its lines 1.164.
const HALF_CAPITAL: f64 = 0.729 / 1.164 / 2.0;

impl<'a, B: DrawingBackend> Canvas<'a, B> {
    pub(super) fn new(area: &'a DrawingArea<B, Shift>, medium: Medium) -> Result<Self, ReportError> {
        Ok(Canvas {
            area,
            medium,
            letters: Letters::new()?,
            origin: (0.0, 0.0),
        })
    }

    /// Returns the same canvas with another origin.
    pub(super) fn at(&self, origin: Point) -> Self {
        Canvas {
            origin: (self.origin.0 + origin.0, self.origin.1 + origin.1),
            ..*self
        }
    }

    fn detail(&self) -> f64 {
        match self.medium {
            Medium::Raster => 1.0,
            Medium::Vector => f64::from(FINE),
        }
    }

    /// Converts to pixels of the backend.
    fn fine(&self, (x, y): Point) -> Point {
        let detail = self.detail();
        ((x + self.origin.0) * detail, (y + self.origin.1) * detail)
    }

    fn pixel(&self, point: Point) -> (i32, i32) {
        let (x, y) = self.fine(point);
        (x.round() as i32, y.round() as i32)
    }

    fn width(&self, width: f64) -> u32 {
        (width * self.detail()).round().max(1.0) as u32
    }

    fn put(&self, x: i32, y: i32, color: &RGBAColor) {
        // The raster backend ignores pixels outside, and has no other error.
        let _ = self.area.draw_pixel((x, y), color);
    }

    pub(super) fn fill(&self, color: &RGBColor) -> Result<(), ReportError> {
        self.area.fill(color).map_err(failed)
    }

    /// Draws a line through the points.
    pub(super) fn line(&self, points: &[Point], color: RGBAColor, width: f64) -> Result<(), ReportError> {
        match self.medium {
            Medium::Vector => {
                let mut pixels: Vec<_> = points.iter().map(|point| self.pixel(*point)).collect();
                pixels.dedup();
                let style = color.stroke_width(self.width(width));
                self.area.draw(&PathElement::new(pixels, style)).map_err(failed)
            }
            Medium::Raster => {
                for pair in points.windows(2) {
                    let (from, to) = (self.fine(pair[0]), self.fine(pair[1]));
                    stroke(from, to, width, |x, y, part| self.put(x, y, &color.mix(part)));
                }
                Ok(())
            }
        }
    }

    /// Draws a horizontal or vertical line of one pixel.
    pub(super) fn hairline(&self, from: Point, to: Point, color: &RGBColor) -> Result<(), ReportError> {
        let width = self.width(1.0);
        let line = PathElement::new([self.pixel(from), self.pixel(to)], color.stroke_width(width));
        self.area.draw(&line).map_err(failed)
    }

    /// Draws a dashed line through the points.
    pub(super) fn dashed(
        &self,
        points: &[Point],
        (dash, gap): (f64, f64),
        color: RGBAColor,
        width: f64,
    ) -> Result<(), ReportError> {
        // Round ends are part of a dash.
        let (dash, gap) = match self.medium {
            Medium::Raster => ((dash - width).max(0.5), gap + width.min(dash - 0.5)),
            Medium::Vector => (dash, gap),
        };
        dashes(points, dash, gap)
            .iter()
            .try_for_each(|piece| self.line(piece, color, width))
    }

    /// Draws a filled rectangle, at least one pixel wide and high.
    pub(super) fn rectangle(&self, from: Point, to: Point, color: RGBAColor) -> Result<(), ReportError> {
        let (left, right) = (from.0.min(to.0), from.0.max(to.0));
        let (top, bottom) = (from.1.min(to.1), from.1.max(to.1));
        let corner = (right.max(left + 1.0), bottom.max(top + 1.0));
        let shape = Rectangle::new([self.pixel((left, top)), self.pixel(corner)], color.filled());
        self.area.draw(&shape).map_err(failed)
    }

    /// Draws a filled polygon.
    pub(super) fn polygon(&self, points: &[Point], color: RGBAColor) -> Result<(), ReportError> {
        let pixels: Vec<_> = points.iter().map(|point| self.pixel(*point)).collect();
        self.area
            .draw(&Polygon::new(pixels, color.filled()))
            .map_err(failed)
    }

    /// Draws a disc.
    pub(super) fn disc(&self, at: Point, radius: f64, color: RGBAColor) -> Result<(), ReportError> {
        match self.medium {
            Medium::Vector => {
                let shape = Circle::new(self.pixel(at), self.width(radius), color.filled());
                self.area.draw(&shape).map_err(failed)
            }
            Medium::Raster => {
                let middle = self.fine(at);
                stroke(middle, middle, 2.0 * radius, |x, y, part| {
                    self.put(x, y, &color.mix(part));
                });
                Ok(())
            }
        }
    }

    /// Returns the width of a text.
    pub(super) fn width_of(&self, text: &str, size: f64) -> f64 {
        self.letters.width(text, size)
    }

    /// Draws a text.
    pub(super) fn text(
        &self,
        text: &str,
        at: Point,
        size: f64,
        anchor: TextAnchor,
        color: &RGBColor,
    ) -> Result<(), ReportError> {
        self.words(text, at, size, anchor, color, FontTransform::None)
    }

    /// Draws a vertical text, centered at the point.
    pub(super) fn upright_text(
        &self,
        text: &str,
        at: Point,
        size: f64,
        color: &RGBColor,
    ) -> Result<(), ReportError> {
        self.words(
            text,
            at,
            size,
            TextAnchor::Middle,
            color,
            FontTransform::Rotate270,
        )
    }

    fn words(
        &self,
        text: &str,
        (x, y): Point,
        size: f64,
        anchor: TextAnchor,
        color: &RGBColor,
        turn: FontTransform,
    ) -> Result<(), ReportError> {
        let upwards = matches!(turn, FontTransform::Rotate270);
        if self.medium == Medium::Vector {
            let across = match anchor {
                TextAnchor::Left => HPos::Left,
                TextAnchor::Middle => HPos::Center,
                TextAnchor::Right => HPos::Right,
            };
            // The library's lines are 1.24 em high, and it puts the middle of lower-case letters at
            // the point.
            let style = ("sans-serif", size * self.detail() * 1.24 / 1.164)
                .into_font()
                .transform(turn)
                .color(color)
                .pos(Pos::new(across, VPos::Center));
            let sunk = size * 0.07;
            let at = if upwards { (x + sunk, y) } else { (x, y + sunk) };
            return self.area.draw_text(text, &style, self.pixel(at)).map_err(failed);
        }
        let width = self.letters.width(text, size);
        let before = match anchor {
            TextAnchor::Left => 0.0,
            TextAnchor::Middle => width / 2.0,
            TextAnchor::Right => width,
        };
        let base = size * HALF_CAPITAL;
        let start = if upwards {
            (x + base, y + before)
        } else {
            (x - before, y + base)
        };
        let (left, top) = self.pixel(start);
        self.letters.draw(text, size, |x, y, part| {
            let (x, y) = if upwards {
                (left + y, top - x)
            } else {
                (left + x, top + y)
            };
            self.put(x, y, &color.mix(part));
        });
        Ok(())
    }

    /// Truncates a text to the width; a longer one ends with `…`.
    pub(super) fn cut(&self, text: &str, size: f64, width: f64) -> String {
        if self.width_of(text, size) <= width {
            return text.to_owned();
        }
        let short = |end: usize| format!("{}…", text[..end].trim_end());
        let ends: Vec<usize> = text.char_indices().map(|(end, _)| end).collect();
        let fitting = ends.partition_point(|end| self.width_of(&short(*end), size) <= width);
        match fitting.checked_sub(1) {
            Some(last) => short(ends[last]),
            None => String::new(),
        }
    }
}

/// Splits a line into its dashes, alternating `dash` drawn and `gap` skipped along its length.
fn dashes(points: &[Point], dash: f64, gap: f64) -> Vec<Vec<Point>> {
    let mut pieces = Vec::new();
    let mut piece: Vec<Point> = points.first().copied().into_iter().collect();
    let (mut drawing, mut left) = (true, dash);
    for pair in points.windows(2) {
        let (mut from, to) = (pair[0], pair[1]);
        loop {
            let length = ((to.0 - from.0).powi(2) + (to.1 - from.1).powi(2)).sqrt();
            if length < left {
                left -= length;
                if drawing {
                    piece.push(to);
                }
                break;
            }
            let share = left / length;
            from = (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share);
            if drawing {
                piece.push(from);
                pieces.push(std::mem::take(&mut piece));
            } else {
                piece = vec![from];
            }
            drawing = !drawing;
            left = if drawing { dash } else { gap };
        }
    }
    if drawing && piece.len() > 1 {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_continue_around_corners() {
        // 10 to the right, 10 down: 4 drawn, 2 skipped. Drawn along the path: 0..4, 6..10, 12..16,
        // 18..20.
        let pieces = dashes(&[(0.0, 0.0), (10.0, 0.0), (10.0, 10.0)], 4.0, 2.0);
        let drawn: Vec<f64> = pieces
            .iter()
            .map(|piece| {
                piece
                    .windows(2)
                    .map(|pair| (pair[1].0 - pair[0].0).abs() + (pair[1].1 - pair[0].1).abs())
                    .sum()
            })
            .collect();
        assert_eq!(drawn, [4.0, 4.0, 4.0, 2.0]);
        assert_eq!(pieces[0], [(0.0, 0.0), (4.0, 0.0)]);
        assert_eq!(pieces[2], [(10.0, 2.0), (10.0, 6.0)]);
    }
}
