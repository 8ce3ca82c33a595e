//! Colors.

use plotters::style::RGBColor;

/// Okabe and Ito's colors ("Color Universal Design", 2008), which are distinguishable with every
/// kind of color vision; yellow is omitted, because it is hard to see on white. Every distinction
/// by color is also made by dashes, shape, position or text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Blue.
    Blue,
    /// Vermillion.
    Vermillion,
    /// Bluish green.
    Green,
    /// Reddish purple.
    Purple,
    /// Black.
    Black,
    /// Orange.
    Orange,
    /// Sky blue.
    Sky,
    /// Gray, for secondary elements.
    Grey,
}

impl Color {
    /// Returns the color of the series with this number: the five with the most contrast on white.
    pub fn nth(number: usize) -> Color {
        const SERIES: [Color; 5] = [
            Color::Blue,
            Color::Vermillion,
            Color::Green,
            Color::Purple,
            Color::Black,
        ];
        SERIES[number % SERIES.len()]
    }

    pub(super) fn rgb(self) -> RGBColor {
        match self {
            Color::Blue => RGBColor(0, 114, 178),
            Color::Vermillion => RGBColor(213, 94, 0),
            Color::Green => RGBColor(0, 158, 115),
            Color::Purple => RGBColor(204, 121, 167),
            Color::Black => RGBColor(0, 0, 0),
            Color::Orange => RGBColor(230, 159, 0),
            Color::Sky => RGBColor(86, 180, 233),
            Color::Grey => RGBColor(150, 150, 150),
        }
    }
}

/// Titles.
pub(super) const INK: RGBColor = RGBColor(25, 25, 25);
/// Text on axes.
pub(super) const SOFT: RGBColor = RGBColor(80, 80, 80);
/// Axes.
pub(super) const LINE: RGBColor = RGBColor(120, 120, 120);
/// The grid.
pub(super) const GRID: RGBColor = RGBColor(226, 226, 226);
/// Minor grid lines.
pub(super) const FAINT: RGBColor = RGBColor(240, 240, 240);
