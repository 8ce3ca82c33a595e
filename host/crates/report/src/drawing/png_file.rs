//! Renders a drawing as PNG.

use plotters::prelude::*;

use super::canvas::{Canvas, Medium};
use super::draw;
use super::elements::Drawing;
use crate::error::ReportError;

impl Drawing {
    /// Returns the bytes of a PNG file of 800 by 500 pixels.
    pub fn png(&self) -> Result<Vec<u8>, ReportError> {
        let (width, height) = draw::SIZE;
        // White background; three bytes per pixel.
        let mut pixels = vec![255u8; (width * height * 3) as usize];
        {
            let area = BitMapBackend::with_buffer(&mut pixels, draw::SIZE).into_drawing_area();
            draw::drawing(self, &Canvas::new(&area, Medium::Raster)?, draw::Style::LARGE)?;
            area.present()
                .map_err(|error| ReportError::Plot(error.to_string()))?;
        }
        encode(&pixels, width, height)
    }
}

fn encode(pixels: &[u8], width: u32, height: u32) -> Result<Vec<u8>, ReportError> {
    let refused = |error: png::EncodingError| ReportError::Plot(error.to_string());
    let mut bytes = Vec::with_capacity(64 * 1024);
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    // Most of a plot is white, which any level compresses well.
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header().map_err(refused)?;
    writer.write_image_data(pixels).map_err(refused)?;
    writer.finish().map_err(refused)?;
    Ok(bytes)
}
