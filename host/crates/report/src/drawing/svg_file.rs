//! Renders a drawing as SVG.

use plotters::prelude::*;

use super::canvas::{Canvas, FINE, Medium};
use super::draw;
use super::elements::Drawing;
use crate::error::ReportError;

impl Drawing {
    /// Returns the text of an SVG file of 800 by 500 pixels; texts use the viewer's sans-serif
    /// font.
    pub fn svg(&self) -> Result<String, ReportError> {
        drawn(draw::SIZE, |canvas| {
            draw::drawing(self, canvas, draw::Style::LARGE)
        })
    }
}

/// Renders several drawings as one SVG, each 480 by 300 pixels, two per row.
pub(crate) fn grid(drawings: &[Drawing]) -> Result<String, ReportError> {
    let (width, height) = draw::SMALL_SIZE;
    let columns = drawings.len().clamp(1, 2);
    let size = (
        width * columns as u32,
        height * drawings.len().div_ceil(columns) as u32,
    );
    drawn(size, |canvas| {
        for (number, drawing) in drawings.iter().enumerate() {
            let place = (
                f64::from(width) * (number % columns) as f64,
                f64::from(height) * (number / columns) as f64,
            );
            draw::drawing(drawing, &canvas.at(place), draw::Style::SMALL)?;
        }
        Ok(())
    })
}

type SvgCanvas<'a, 'b> = Canvas<'a, SVGBackend<'b>>;

fn drawn(
    (width, height): (u32, u32),
    draw: impl FnOnce(&SvgCanvas<'_, '_>) -> Result<(), ReportError>,
) -> Result<String, ReportError> {
    let (wide, high) = (width * FINE, height * FINE);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (wide, high)).into_drawing_area();
        let canvas = Canvas::new(&area, Medium::Vector)?;
        canvas.fill(&WHITE)?;
        draw(&canvas)?;
        area.present()
            .map_err(|error| ReportError::Plot(error.to_string()))?;
    }
    // Drawn larger, so that whole pixels are fine enough; displayed at its nominal size.
    let fine = format!(r#"<svg width="{wide}" height="{high}" "#);
    Ok(svg.replacen(&fine, &format!(r#"<svg width="{width}" height="{height}" "#), 1))
}
