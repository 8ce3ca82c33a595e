//! Generated pictures: soft areas of color under fine noise, which compress about as well as a
//! photograph.

use png::{BitDepth, ColorType, Compression, Encoder, EncodingError};
use veeksha_model::Seed;
use veeksha_stats::RandomStream;

/// Pixels between two colors of the coarse grid.
const GRID: u32 = 32;
/// The bits of each color that are noise.
const NOISE: u32 = 0x0707_0707;

/// Returns a PNG with eight bits for each of red, green and blue. Equal arguments give equal bytes.
pub(super) fn png(width: u32, height: u32, seed: Seed) -> Result<Vec<u8>, EncodingError> {
    let stream = RandomStream::new(seed.into(), 0, "image");
    // One color per crossing of the grid, then one word of noise per pixel.
    let columns = width / GRID + 2;
    let mut colours = vec![0u32; (columns * (height / GRID + 2)) as usize];
    stream.fill(0, &mut colours);
    let mut noise = vec![0u32; width as usize];
    let mut pixels = Vec::with_capacity(3 * width as usize * height as usize);
    for y in 0..height {
        let first = colours.len() as u64 + u64::from(y) * u64::from(width);
        stream.fill(first, &mut noise);
        let (row, down) = (y / GRID * columns, y % GRID);
        for (x, noise) in (0..width).zip(&noise) {
            let (corner, right) = (row + x / GRID, x % GRID);
            let at = |index: u32| colours[index as usize].to_le_bytes();
            let corners = [
                at(corner),
                at(corner + 1),
                at(corner + columns),
                at(corner + columns + 1),
            ];
            let noise = (noise & NOISE).to_le_bytes();
            for channel in 0..3 {
                let [here, east, south, both] = corners.map(|colour| u32::from(colour[channel]));
                let north = here * (GRID - right) + east * right;
                let south = south * (GRID - right) + both * right;
                let soft = (north * (GRID - down) + south * down) / (GRID * GRID);
                pixels.push(soft as u8 ^ noise[channel]);
            }
        }
    }
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, width, height);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fast);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(bytes)
}
