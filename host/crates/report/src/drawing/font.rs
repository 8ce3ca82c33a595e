//! The embedded font: widths of texts, and letters as pixels.

use std::sync::OnceLock;

use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};

use crate::error::ReportError;

/// DejaVu Sans with fewer characters; see `fonts/README.md`.
const BYTES: &[u8] = include_bytes!("../../fonts/DejaVuSans-subset.ttf");

/// The parsed font.
#[derive(Clone, Copy, Debug)]
pub(super) struct Letters {
    font: &'static FontRef<'static>,
}

impl Letters {
    /// Returns the embedded font.
    pub(super) fn new() -> Result<Self, ReportError> {
        static FONT: OnceLock<Option<FontRef<'static>>> = OnceLock::new();
        FONT.get_or_init(|| FontRef::try_from_slice(BYTES).ok())
            .as_ref()
            .map(|font| Letters { font })
            .ok_or_else(|| ReportError::Plot("the embedded font is damaged".into()))
    }

    /// Returns the width of a text of that size. A size is the line height: from the lowest
    /// descender to the highest ascender.
    pub(super) fn width(self, text: &str, size: f64) -> f64 {
        self.places(text, size, |_, _| {})
    }

    /// Calls `put` with each pixel that the text covers at least in part, relative to the start of
    /// its baseline (right, down), and the covered share.
    pub(super) fn draw(self, text: &str, size: f64, mut put: impl FnMut(i32, i32, f64)) {
        let scale = PxScale::from(size as f32);
        self.places(text, size, |letter, x| {
            let glyph = self
                .font
                .glyph_id(letter)
                .with_scale_and_position(scale, point(x as f32, 0.0));
            let Some(outline) = self.font.outline_glyph(glyph) else {
                return;
            };
            let bounds = outline.px_bounds();
            let (left, top) = (bounds.min.x as i32, bounds.min.y as i32);
            outline.draw(|x, y, part| {
                if part > 0.0 {
                    put(left + x as i32, top + y as i32, f64::from(part.min(1.0)));
                }
            });
        });
    }

    /// Calls `tell` with the start of each letter; returns the total width.
    fn places(self, text: &str, size: f64, mut tell: impl FnMut(char, f64)) -> f64 {
        let scaled = self.font.as_scaled(PxScale::from(size as f32));
        let mut x = 0.0;
        let mut before = None;
        for letter in text.chars() {
            let glyph = scaled.glyph_id(letter);
            if let Some(before) = before {
                x += f64::from(scaled.kern(before, glyph));
            }
            tell(letter, x);
            x += f64::from(scaled.h_advance(glyph));
            before = Some(glyph);
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn font_contains_label_characters() {
        let letters = Letters::new().unwrap();
        for sign in "aZ09µ·–…−×≤≥◆±é✓".chars() {
            assert_ne!(letters.font.glyph_id(sign).0, 0, "{sign}");
        }
    }

    #[test]
    fn text_width_matches_drawn_pixels() {
        let letters = Letters::new().unwrap();
        let (mut right, mut lowest, mut highest) = (0, 0, 0);
        letters.draw("HH", 40.0, |x, y, _| {
            right = right.max(x);
            lowest = lowest.max(y);
            highest = highest.min(y);
        });
        let width = letters.width("HH", 40.0);
        // An H is on the baseline, reaches 0.73 em up (an em is 40 / 1.164 = 34.4), and has a small
        // margin at its sides.
        assert!((-1..=0).contains(&lowest), "{lowest}");
        assert!((-26..=-24).contains(&highest), "{highest}");
        assert!(f64::from(right) < width && f64::from(right) > width * 0.85);
        assert!((width - 2.0 * letters.width("H", 40.0)).abs() < 1e-3);
    }
}
