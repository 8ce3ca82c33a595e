//! Colours.

use plotters::style::RGBColor;

/// Okabe and Ito's colours ("Color Universal Design", 2008), which people of every colour vision tell apart; yellow is left out, as it is
/// hard to see on white. What is told by a colour is also told by dashes, form, place or words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hue {
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
    /// Grey, for what is beside the point.
    Grey,
}

impl Hue {
    /// That of the series with this number: the five that stand out most on white.
    pub fn nth(number: usize) -> Hue {
        const SERIES: [Hue; 5] = [Hue::Blue, Hue::Vermillion, Hue::Green, Hue::Purple, Hue::Black];
        SERIES[number % SERIES.len()]
    }

    pub(super) fn colour(self) -> RGBColor {
        match self {
            Hue::Blue => RGBColor(0, 114, 178),
            Hue::Vermillion => RGBColor(213, 94, 0),
            Hue::Green => RGBColor(0, 158, 115),
            Hue::Purple => RGBColor(204, 121, 167),
            Hue::Black => RGBColor(0, 0, 0),
            Hue::Orange => RGBColor(230, 159, 0),
            Hue::Sky => RGBColor(86, 180, 233),
            Hue::Grey => RGBColor(150, 150, 150),
        }
    }
}

/// Titles.
pub(super) const INK: RGBColor = RGBColor(25, 25, 25);
/// Words on axes.
pub(super) const SOFT: RGBColor = RGBColor(80, 80, 80);
/// Axes.
pub(super) const LINE: RGBColor = RGBColor(120, 120, 120);
/// The grid.
pub(super) const GRID: RGBColor = RGBColor(226, 226, 226);
/// Lines of the grid between those that have a number.
pub(super) const FAINT: RGBColor = RGBColor(240, 240, 240);
