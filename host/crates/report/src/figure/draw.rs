//! Draws a figure: where everything stands.

use plotters::prelude::*;

use super::axis::Fitted;
use super::canvas::{Anchor, Canvas, Point};
use super::palette::{FAINT, GRID, INK, LINE, SOFT};
use super::{BoxShape, Chart, Dash, Element, Figure, Fill, Hue, Marker, Shape};
use crate::ReportError;

/// A drawing of its own.
pub(super) const SIZE: (u32, u32) = (800, 500);
/// One of several.
pub(super) const SMALL_SIZE: (u32, u32) = (480, 300);

/// Sizes in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    size: (u32, u32),
    title: f64,
    label: f64,
    tick: f64,
    line: f64,
    margin: f64,
}

impl Style {
    pub(super) const LARGE: Style = Style {
        size: SIZE,
        title: 27.0,
        label: 20.0,
        tick: 18.0,
        line: 2.5,
        margin: 18.0,
    };
    pub(super) const SMALL: Style = Style {
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
struct Frame {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Frame {
    fn height(&self) -> f64 {
        self.bottom - self.top
    }

    fn width(&self) -> f64 {
        self.right - self.left
    }
}

/// Draws the figure at the canvas's zero.
pub(super) fn figure<B: DrawingBackend>(
    figure: &Figure,
    canvas: &Canvas<'_, B>,
    style: Style,
) -> Result<(), ReportError> {
    let (width, height) = (f64::from(style.size.0), f64::from(style.size.1));
    let mut frame = Frame {
        left: style.margin,
        top: style.margin,
        right: width - style.margin,
        bottom: height - style.margin * 0.7,
    };
    let mut headline = |text: &str, size: f64, colour: &RGBColor| {
        if text.is_empty() {
            return Ok(());
        }
        let text = canvas.cut(text, size, frame.width());
        let middle = frame.top + size * 0.5;
        frame.top += size * 1.25;
        canvas.text(&text, (frame.left, middle), size, Anchor::Left, colour)
    };
    headline(&figure.title, style.title, &INK)?;
    headline(&figure.subtitle, style.tick, &SOFT)?;
    frame.top += style.margin * 0.4;

    let count = figure.charts.len().max(1) as f64;
    let each = frame.height() / count;
    // Axes below one another begin at the same place.
    let room = (frame.width() / (style.tick * 5.0), each / (style.tick * 3.2));
    let fitted: Vec<_> = figure
        .charts
        .iter()
        .map(|chart| Prepared::of(chart, room))
        .collect();
    let numbers = fitted
        .iter()
        .flatten()
        .flat_map(|prepared| &prepared.y.ticks)
        .map(|(_, label)| canvas.width_of(label, style.tick))
        .fold(0.0, f64::max);
    let numbers = numbers.min(frame.width() * 0.3);
    for (place, (chart, prepared)) in figure.charts.iter().zip(&fitted).enumerate() {
        let part = Frame {
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
                canvas.text(&chart.empty, middle, style.label, Anchor::Middle, &SOFT)?;
            }
        }
    }
    Ok(())
}

/// A chart whose axes are settled.
struct Prepared {
    x: Fitted,
    y: Fitted,
}

impl Prepared {
    /// `None` if nothing can be drawn. There is room for so many numbers along either axis.
    fn of(chart: &Chart, (across, up): (f64, f64)) -> Option<Self> {
        let points: Vec<Point> = chart.marks.iter().flat_map(reach).collect();
        Some(Prepared {
            x: Fitted::new(&chart.x, points.iter().map(|point| point.0), across)?,
            y: Fitted::new(&chart.y, points.iter().map(|point| point.1), up)?,
        })
    }
}

/// The points that a mark must have room for.
fn reach(mark: &Element) -> Vec<Point> {
    let points: Vec<Point> = match mark {
        Element::Line { points, .. } | Element::Dots { points, .. } | Element::Bars { points, .. } => {
            points.clone()
        }
        Element::Spans { spans, .. } => spans
            .iter()
            .flat_map(|(from, to, lane)| [(*from, *lane), (*to, *lane)])
            .collect(),
        Element::Boxes { boxes, .. } => boxes
            .iter()
            .flat_map(|(at, shape)| {
                let heights = shape.heights.iter().chain(&shape.outliers);
                heights.map(move |height| (*at, *height))
            })
            .collect(),
        Element::Band { stretches, .. } => stretches
            .iter()
            .flat_map(|(at, low, high)| [(*at, *low), (*at, *high)])
            .collect(),
        Element::Words { .. } => Vec::new(),
    };
    finite(&points)
}

fn finite(points: &[Point]) -> Vec<Point> {
    let finite = points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
    finite.copied().collect()
}

struct Painter<'a, 'b, B: DrawingBackend> {
    canvas: &'a Canvas<'b, B>,
    style: Style,
    prepared: &'a Prepared,
}

impl<B: DrawingBackend> Painter<'_, '_, B> {
    fn paint(&self, chart: &Chart, part: Frame, numbers: f64) -> Result<(), ReportError> {
        let style = self.style;
        let legend = legend(chart);
        let mut frame = Frame {
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
            self.mark(mark, &frame)?;
        }
        self.axes(&frame)?;
        let middle = (part.left + style.label * 0.5, (frame.top + frame.bottom) / 2.0);
        let label = self
            .canvas
            .cut(&self.prepared.y.label, style.label, part.height());
        self.canvas.upright_text(&label, middle, style.label, &SOFT)?;
        let below = frame.bottom + style.tick * 1.4 + style.label * 0.65;
        let label = self.canvas.cut(&self.prepared.x.label, style.label, part.width());
        let middle = ((frame.left + frame.right) / 2.0, below);
        self.canvas
            .text(&label, middle, style.label, Anchor::Middle, &SOFT)
    }

    fn place(&self, (x, y): Point, frame: &Frame) -> Point {
        (
            frame.left + frame.width() * self.prepared.x.place(x),
            frame.bottom - frame.height() * self.prepared.y.place(y),
        )
    }

    fn grid(&self, chart: &Chart, frame: &Frame) -> Result<(), ReportError> {
        let Prepared { x, y } = self.prepared;
        let upright = |value: f64, colour: RGBColor| {
            let at = frame.left + frame.width() * x.place(value);
            self.canvas.hairline((at, frame.top), (at, frame.bottom), &colour)
        };
        let level = |value: f64, colour: RGBColor| {
            let at = frame.bottom - frame.height() * y.place(value);
            self.canvas.hairline((frame.left, at), (frame.right, at), &colour)
        };
        x.minor.iter().try_for_each(|value| upright(*value, FAINT))?;
        y.minor.iter().try_for_each(|value| level(*value, FAINT))?;
        // Between names there is nothing to read off.
        if chart.x.names.is_empty() {
            x.ticks.iter().try_for_each(|(value, _)| upright(*value, GRID))?;
        }
        if chart.y.names.is_empty() {
            y.ticks.iter().try_for_each(|(value, _)| level(*value, GRID))?;
        }
        Ok(())
    }

    /// Axes and their numbers, without those that would stand on one another.
    fn axes(&self, frame: &Frame) -> Result<(), ReportError> {
        let Prepared { x, y } = self.prepared;
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
            // The last ones are kept within the drawing.
            let middle = at.min(frame.right + self.style.margin - width / 2.0);
            if middle - width / 2.0 < free_from {
                continue;
            }
            free_from = middle + width / 2.0 + size * 0.5;
            canvas.hairline((at, frame.bottom), (at, frame.bottom + 5.0), &LINE)?;
            let below = (middle, frame.bottom + 6.0 + size * 0.55);
            canvas.text(&label, below, size, Anchor::Middle, &SOFT)?;
        }
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
            canvas.text(&label, (frame.left - 8.0, at), size, Anchor::Right, &SOFT)?;
        }
        Ok(())
    }

    fn mark(&self, mark: &Element, frame: &Frame) -> Result<(), ReportError> {
        match mark {
            Element::Line {
                points,
                hue,
                dash,
                shape,
                fill,
                ..
            } => self.line(&finite(points), *hue, (*dash, *shape, *fill), frame),
            Element::Dots {
                points, hue, marker, ..
            } => self.dots(&finite(points), *hue, *marker, frame),
            Element::Bars { points, hue, .. } => finite(points).windows(2).try_for_each(|pair| {
                let [(from, height), (to, _)] = [pair[0], pair[1]];
                let corner = self.place((to, self.prepared.y.low().max(0.0)), frame);
                let place = self.place((from, height), frame);
                if place.1 == corner.1 {
                    return Ok(());
                }
                self.canvas.rectangle(place, corner, hue.colour().mix(0.75))
            }),
            Element::Spans {
                spans, hue, height, ..
            } => {
                let lane = self.place((0.0, 0.0), frame).1 - self.place((0.0, 1.0), frame).1;
                let half = lane.abs() * height / 2.0;
                spans.iter().try_for_each(|(from, to, at)| {
                    let (from, to) = (self.place((*from, *at), frame), self.place((*to, *at), frame));
                    self.canvas
                        .rectangle((from.0, from.1 - half), (to.0, to.1 + half), hue.colour().into())
                })
            }
            Element::Boxes { boxes, hue } => {
                let room = frame.width() / boxes.len().max(1) as f64;
                let half = (room * 0.3).min(60.0);
                boxes
                    .iter()
                    .filter(|(at, shape)| {
                        at.is_finite() && shape.heights.iter().all(|height| height.is_finite())
                    })
                    .try_for_each(|(at, shape)| self.boxed(*at, shape, half, *hue, frame))
            }
            Element::Band { stretches, hue } => {
                let finite = stretches
                    .iter()
                    .filter(|(at, low, high)| (at + low + high).is_finite());
                let lower = finite.clone().map(|(at, low, _)| self.place((*at, *low), frame));
                let upper = finite.map(|(at, _, high)| self.place((*at, *high), frame));
                let around: Vec<Point> = upper.chain(lower.rev()).collect();
                if around.len() < 4 {
                    return Ok(());
                }
                self.canvas.polygon(&around, hue.colour().mix(0.25))
            }
            Element::Words { words } => words
                .iter()
                .filter(|((x, y), _)| x.is_finite() && y.is_finite())
                .try_for_each(|(at, word)| self.word(*at, word, frame)),
        }
    }

    fn word(&self, at: Point, word: &str, frame: &Frame) -> Result<(), ReportError> {
        let size = self.style.tick;
        let (x, y) = self.place(at, frame);
        let fits = x + 10.0 + self.canvas.width_of(word, size) < frame.right + self.style.margin;
        let anchor = if fits { Anchor::Left } else { Anchor::Right };
        let aside = if fits { 10.0 } else { -10.0 };
        let below = (y + size * 0.75).min(frame.bottom - size * 0.5);
        self.canvas.text(word, (x + aside, below), size, anchor, &INK)
    }

    fn line(
        &self,
        points: &[Point],
        hue: Hue,
        (dash, shape, fill): (Dash, Shape, Fill),
        frame: &Frame,
    ) -> Result<(), ReportError> {
        let mut way: Vec<Point> = Vec::with_capacity(2 * points.len());
        for point in points {
            let place = self.place(*point, frame);
            if shape == Shape::Steps
                && let Some(before) = way.last().copied()
            {
                go_on(&mut way, (place.0, before.1));
            }
            go_on(&mut way, place);
        }
        let colour: RGBAColor = hue.colour().into();
        if fill == Fill::Below
            && let (Some(first), Some(last)) = (way.first(), way.last())
        {
            let mut area = way.clone();
            area.extend([(last.0, frame.bottom), (first.0, frame.bottom)]);
            self.canvas.polygon(&area, hue.colour().mix(0.18))?;
        }
        if let [only] = way.as_slice() {
            return self.canvas.disc(*only, self.style.line * 1.4, colour);
        }
        match dash.lengths() {
            None => self.canvas.line(&way, colour, self.style.line),
            Some(lengths) => self.canvas.dashed(&way, lengths, colour, self.style.line),
        }
    }

    fn dots(&self, points: &[Point], hue: Hue, marker: Marker, frame: &Frame) -> Result<(), ReportError> {
        let line = self.style.line;
        points.iter().try_for_each(|point| {
            let (x, y) = self.place(*point, frame);
            match marker {
                Marker::Dot => self.canvas.disc((x, y), line, hue.colour().mix(0.45)),
                Marker::Disc => self.canvas.disc((x, y), line * 1.8, hue.colour().into()),
                Marker::Cross => self.cross((x, y), hue),
            }
        })
    }

    fn cross(&self, (x, y): Point, hue: Hue) -> Result<(), ReportError> {
        let (half, line) = (self.style.line * 1.8, self.style.line * 0.8);
        let colour: RGBAColor = hue.colour().into();
        self.canvas
            .line(&[(x - half, y - half), (x + half, y + half)], colour, line)?;
        self.canvas
            .line(&[(x - half, y + half), (x + half, y - half)], colour, line)
    }

    fn boxed(
        &self,
        at: f64,
        shape: &BoxShape,
        half: f64,
        hue: Hue,
        frame: &Frame,
    ) -> Result<(), ReportError> {
        let place = |height: f64| self.place((at, height), frame);
        let [low, lower, middle, upper, high] = shape.heights.map(place);
        let (x, line) = (middle.0, self.style.line);
        let colour: RGBAColor = hue.colour().into();
        let canvas = self.canvas;
        for outlier in &shape.outliers {
            let (x, y) = place(*outlier);
            canvas.disc((x, y), line * 0.9, hue.colour().mix(0.45))?;
        }
        canvas.line(&[low, lower], colour, line * 0.7)?;
        canvas.line(&[upper, high], colour, line * 0.7)?;
        for end in [low, high] {
            canvas.line(
                &[(x - half / 2.0, end.1), (x + half / 2.0, end.1)],
                colour,
                line * 0.7,
            )?;
        }
        let (left, right) = (x - half, x + half);
        canvas.rectangle((left, upper.1), (right, lower.1), hue.colour().mix(0.25))?;
        let around = [
            (left, upper.1),
            (right, upper.1),
            (right, lower.1),
            (left, lower.1),
            (left, upper.1),
        ];
        canvas.line(&around, colour, line * 0.7)?;
        canvas.line(
            &[(left, middle.1), (right, middle.1)],
            Hue::Vermillion.colour().into(),
            line * 1.2,
        )?;
        let mean = place(shape.mean);
        canvas.disc(mean, line * 1.6, Hue::Black.colour().into())
    }

    fn legend_rows<'e>(&self, entries: &[&'e Element], frame: &Frame) -> Vec<Vec<(f64, &'e Element)>> {
        let mut rows: Vec<Vec<(f64, &Element)>> = Vec::new();
        let mut x = f64::INFINITY;
        for entry in entries {
            let width = SWATCH + 6.0 + self.canvas.width_of(name_of(entry), self.style.tick) + 22.0;
            if x + width > frame.right + 22.0 {
                rows.push(Vec::new());
                x = frame.left;
            }
            if let Some(row) = rows.last_mut() {
                row.push((x, *entry));
            }
            x += width;
        }
        rows
    }

    fn legend(&self, rows: &[Vec<(f64, &Element)>], top: f64) -> Result<(), ReportError> {
        let size = self.style.tick;
        for (number, row) in rows.iter().enumerate() {
            let y = top + size * (0.6 + 1.35 * number as f64);
            for (x, mark) in row {
                self.swatch(mark, (*x, y))?;
                let at = (x + SWATCH + 6.0, y);
                self.canvas.text(name_of(mark), at, size, Anchor::Left, &INK)?;
            }
        }
        Ok(())
    }

    fn swatch(&self, mark: &Element, (x, y): Point) -> Result<(), ReportError> {
        let ends = [(x, y), (x + SWATCH, y)];
        let middle = (x + SWATCH / 2.0, y);
        let line = self.style.line;
        match mark {
            Element::Line { hue, dash, .. } => match dash.lengths() {
                None => self.canvas.line(&ends, hue.colour().into(), line),
                Some(lengths) => self.canvas.dashed(&ends, lengths, hue.colour().into(), line),
            },
            Element::Dots { hue, marker, .. } => match marker {
                Marker::Dot | Marker::Disc => self.canvas.disc(middle, line * 1.8, hue.colour().into()),
                Marker::Cross => self.cross(middle, *hue),
            },
            Element::Bars { hue, .. } | Element::Spans { hue, .. } | Element::Boxes { hue, .. } => {
                let half = self.style.tick * 0.32;
                let from = (x + 4.0, y - half);
                self.canvas
                    .rectangle(from, (x + SWATCH - 2.0, y + half), hue.colour().into())
            }
            Element::Words { .. } | Element::Band { .. } => Ok(()),
        }
    }
}

/// Adds the next point of a line. Of a level stretch only the ends are kept, so that it is drawn in one piece.
fn go_on(way: &mut Vec<Point>, place: Point) {
    if let [.., first, second] = way.as_slice()
        && first.1 == second.1
        && second.1 == place.1
        && second.0 <= place.0
    {
        way.pop();
    }
    way.push(place);
}

/// Width of what stands before a name in the legend.
const SWATCH: f64 = 26.0;

fn name_of(mark: &Element) -> &str {
    match mark {
        Element::Line { name, .. }
        | Element::Dots { name, .. }
        | Element::Bars { name, .. }
        | Element::Spans { name, .. } => name,
        Element::Boxes { .. } | Element::Words { .. } | Element::Band { .. } => "",
    }
}

/// What stands in the legend: what has a name, if there are several.
fn legend(chart: &Chart) -> Vec<&Element> {
    let named: Vec<_> = chart
        .marks
        .iter()
        .filter(|mark| !name_of(mark).is_empty())
        .collect();
    if named.len() > 1 { named } else { Vec::new() }
}
