//! The content of a drawing: charts, and the elements in them.

use super::axis::PlotAxis;
use super::palette::Color;

/// A drawing: a title, a subtitle, and charts below each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// Its title.
    pub title: String,
    /// A line below the title: the number of samples, for example. May be empty.
    pub subtitle: String,
    /// The charts, from the top.
    pub charts: Vec<Chart>,
}

/// A pair of axes with the elements drawn between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The horizontal axis.
    pub x: PlotAxis,
    /// The vertical axis.
    pub y: PlotAxis,
    /// The elements in drawing order. Points that are not finite are skipped.
    pub marks: Vec<PlotElement>,
    /// The text shown in place of the axes if there is nothing to draw.
    pub empty: String,
}

/// An element of a chart. Named elements are listed in the legend if there are several names.
#[derive(Clone, Debug, PartialEq)]
pub enum PlotElement {
    /// A line through points with ascending x.
    Line {
        /// Its name.
        name: String,
        /// Its points.
        points: Vec<(f64, f64)>,
        /// Its color.
        color: Color,
        /// Its dashes, which distinguish lines in addition to the color.
        dash: Dash,
        /// Its path between points.
        shape: LineShape,
        /// The area below it.
        fill: AreaFill,
    },
    /// Points.
    Dots {
        /// Their name.
        name: String,
        /// Their positions.
        points: Vec<(f64, f64)>,
        /// Their color.
        color: Color,
        /// Their marker.
        marker: Marker,
    },
    /// Bars: a point is the beginning of a bar and its height; the last one is the end of the last
    /// bar, and its height is ignored.
    Bars {
        /// Their name.
        name: String,
        /// Beginnings and heights.
        points: Vec<(f64, f64)>,
        /// Their color.
        color: Color,
    },
    /// Horizontal bars, each in a lane.
    Spans {
        /// Their name.
        name: String,
        /// Begin, end, and lane.
        spans: Vec<(f64, f64, f64)>,
        /// Their color.
        color: Color,
        /// Their height as a share of a lane.
        height: f64,
    },
    /// Boxes with whiskers, each at a position of the x axis.
    Boxes {
        /// Positions and boxes.
        boxes: Vec<(f64, BoxShape)>,
        /// Their color.
        color: Color,
    },
    /// Texts at points, below and to the right if there is space.
    Texts {
        /// Points and texts.
        words: Vec<((f64, f64), String)>,
    },
    /// The area between two heights along the x axis.
    Band {
        /// Positions with the lower and the upper height, ascending.
        stretches: Vec<(f64, f64, f64)>,
        /// Its color, which is drawn as a tint.
        color: Color,
    },
}

/// A box with whiskers, as heights.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxShape {
    /// Lower whisker, lower edge, middle line, upper edge, upper whisker.
    pub heights: [f64; 5],
    /// A marker within the box.
    pub mean: f64,
    /// Points beyond the whiskers.
    pub outliers: Vec<f64>,
    /// Heights with the relative width (0 to 1) of the shape around the box; empty for none.
    pub density: Vec<(f64, f64)>,
}

/// The dashes of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dash {
    /// A solid line.
    #[default]
    Whole,
    /// Long dashes.
    Long,
    /// Short dashes.
    Short,
    /// Long dashes with small gaps.
    Longer,
    /// Medium dashes.
    Middle,
}

impl Dash {
    /// Returns the dashes of the series with this number.
    pub fn nth(number: usize) -> Dash {
        const ALL: [Dash; 5] = [Dash::Whole, Dash::Long, Dash::Short, Dash::Longer, Dash::Middle];
        ALL[number % ALL.len()]
    }

    /// Returns dash and gap in pixels; `None` for a solid line.
    pub(super) fn lengths(self) -> Option<(f64, f64)> {
        match self {
            Dash::Whole => None,
            Dash::Long => Some((9.0, 4.0)),
            Dash::Short => Some((3.0, 3.0)),
            Dash::Longer => Some((14.0, 4.0)),
            Dash::Middle => Some((5.0, 2.0)),
        }
    }
}

/// The path of a line between points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineShape {
    /// A straight segment.
    Straight,
    /// A step: the height is constant until the next point.
    Steps,
}

/// The area below a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AreaFill {
    /// Nothing.
    None,
    /// Filled with a tint of its color, down to the lower edge.
    Below,
}

/// The marker of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A small translucent disc, for many points.
    Dot,
    /// A disc.
    Disc,
    /// A diagonal cross.
    Cross,
}
