//! The legend.

use plotters::prelude::*;

use super::painter::{Painter, PlotFrame};
use crate::drawing::canvas::{Point, TextAnchor};
use crate::drawing::elements::{Chart, Marker, PlotElement};
use crate::drawing::palette::INK;
use crate::error::ReportError;

impl<B: DrawingBackend> Painter<'_, '_, B> {
    /// Arranges names in as many rows as they need, with the position of each.
    pub(super) fn legend_rows<'e>(
        &self,
        entries: &[&'e PlotElement],
        frame: &PlotFrame,
    ) -> Vec<Vec<(f64, &'e PlotElement)>> {
        let mut rows: Vec<Vec<(f64, &PlotElement)>> = Vec::new();
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

    /// Draws the rows, starting at `top`.
    pub(super) fn legend(&self, rows: &[Vec<(f64, &PlotElement)>], top: f64) -> Result<(), ReportError> {
        let size = self.style.tick;
        for (number, row) in rows.iter().enumerate() {
            let y = top + size * (0.6 + 1.35 * number as f64);
            for (x, mark) in row {
                self.swatch(mark, (*x, y))?;
                let at = (x + SWATCH + 6.0, y);
                self.canvas
                    .text(name_of(mark), at, size, TextAnchor::Left, &INK)?;
            }
        }
        Ok(())
    }

    fn swatch(&self, mark: &PlotElement, (x, y): Point) -> Result<(), ReportError> {
        let ends = [(x, y), (x + SWATCH, y)];
        let middle = (x + SWATCH / 2.0, y);
        let line = self.style.line;
        match mark {
            PlotElement::Line { color, dash, .. } => match dash.lengths() {
                None => self.canvas.line(&ends, color.rgb().into(), line),
                Some(lengths) => self.canvas.dashed(&ends, lengths, color.rgb().into(), line),
            },
            PlotElement::Dots { color, marker, .. } => match marker {
                Marker::Dot | Marker::Disc => self.canvas.disc(middle, line * 1.8, color.rgb().into()),
                Marker::Cross => self.cross(middle, *color),
            },
            PlotElement::Bars { color, .. }
            | PlotElement::Spans { color, .. }
            | PlotElement::Boxes { color, .. } => {
                let half = self.style.tick * 0.32;
                let from = (x + 4.0, y - half);
                self.canvas
                    .rectangle(from, (x + SWATCH - 2.0, y + half), color.rgb().into())
            }
            PlotElement::Texts { .. } | PlotElement::Band { .. } => Ok(()),
        }
    }
}

/// Width of the sample before a name in the legend.
const SWATCH: f64 = 26.0;

fn name_of(mark: &PlotElement) -> &str {
    match mark {
        PlotElement::Line { name, .. }
        | PlotElement::Dots { name, .. }
        | PlotElement::Bars { name, .. }
        | PlotElement::Spans { name, .. } => name,
        PlotElement::Boxes { .. } | PlotElement::Texts { .. } | PlotElement::Band { .. } => "",
    }
}

/// Returns the elements of the legend: the named ones, if there are several.
pub(super) fn of(chart: &Chart) -> Vec<&PlotElement> {
    let named: Vec<_> = chart
        .marks
        .iter()
        .filter(|mark| !name_of(mark).is_empty())
        .collect();
    if named.len() > 1 { named } else { Vec::new() }
}
