//! A drawing as data: what stands where, without how it is drawn. PNG and SVG are made from the same [`Figure`].

mod axis;
mod canvas;
mod draw;
mod font;
mod palette;
mod png_file;
mod raster;
mod svg_file;

pub use axis::{Axis, Scale, Span};
pub use palette::Hue;
pub(crate) use svg_file::grid;

/// A drawing: a title, a line under it, and charts below one another.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its heading.
    pub title: String,
    /// A line under it: of what, how many samples. May be empty.
    pub subtitle: String,
    /// The charts, from the top.
    pub charts: Vec<Chart>,
}

/// One pair of axes with what is drawn between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The axis along the bottom.
    pub x: Axis,
    /// The axis that stands upright.
    pub y: Axis,
    /// What is drawn, the first first. Points that are not finite are left out.
    pub marks: Vec<Element>,
    /// What is said in place of the axes where nothing can be drawn.
    pub empty: String,
}

/// Something that is drawn. What has a name stands in the legend if there are several names.
#[derive(Clone, Debug, PartialEq)]
pub enum Element {
    /// A line through points by ascending x.
    Line {
        /// Its name.
        name: String,
        /// Where it goes.
        points: Vec<(f64, f64)>,
        /// Its colour.
        hue: Hue,
        /// Its dashes: lines differ by them too.
        dash: Dash,
        /// How it gets from point to point.
        shape: Shape,
        /// What is under it.
        fill: Fill,
    },
    /// Points.
    Dots {
        /// Their name.
        name: String,
        /// Where they are.
        points: Vec<(f64, f64)>,
        /// Their colour.
        hue: Hue,
        /// Their form.
        marker: Marker,
    },
    /// Bars: a point is the beginning of a bar and its height; the last one says where the last bar ends, and its height nothing.
    Bars {
        /// Their name.
        name: String,
        /// Beginnings and heights.
        points: Vec<(f64, f64)>,
        /// Their colour.
        hue: Hue,
    },
    /// Lying bars, each in a lane of its own.
    Spans {
        /// Their name.
        name: String,
        /// From, to, and the lane.
        spans: Vec<(f64, f64, f64)>,
        /// Their colour.
        hue: Hue,
        /// How much of a lane's height they take.
        height: f64,
    },
    /// Boxes with whiskers, each at a place of the x axis.
    Boxes {
        /// Places and boxes.
        boxes: Vec<(f64, BoxShape)>,
        /// Their colour.
        hue: Hue,
    },
    /// Words at points, below and to the right where there is room.
    Words {
        /// Points and words.
        words: Vec<((f64, f64), String)>,
    },
    /// The stretch between two heights along the x axis.
    Band {
        /// Places with the lower and the upper height, ascending.
        stretches: Vec<(f64, f64, f64)>,
        /// Its colour, of which it has a tint.
        hue: Hue,
    },
}

/// Five heights and the points beyond.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxShape {
    /// Lower whisker, lower edge, middle line, upper edge, upper whisker.
    pub heights: [f64; 5],
    /// A mark within the box.
    pub mean: f64,
    /// Points beyond the whiskers.
    pub outliers: Vec<f64>,
}

/// The dashes of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dash {
    /// None: it is whole.
    #[default]
    Whole,
    /// Long ones.
    Long,
    /// Short ones.
    Short,
    /// Long ones with small gaps.
    Longer,
    /// Middling ones.
    Middle,
}

impl Dash {
    /// Those of the series with this number.
    pub fn nth(number: usize) -> Dash {
        const ALL: [Dash; 5] = [Dash::Whole, Dash::Long, Dash::Short, Dash::Longer, Dash::Middle];
        ALL[number % ALL.len()]
    }

    /// Dash and gap in pixels; `None` for a whole line.
    fn lengths(self) -> Option<(f64, f64)> {
        match self {
            Dash::Whole => None,
            Dash::Long => Some((9.0, 4.0)),
            Dash::Short => Some((3.0, 3.0)),
            Dash::Longer => Some((14.0, 4.0)),
            Dash::Middle => Some((5.0, 2.0)),
        }
    }
}

/// How a line gets from point to point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Straight.
    Straight,
    /// It keeps its height until the next point.
    Steps,
}

/// What is under a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Nothing.
    None,
    /// A tint of its colour, down to the lower edge.
    Below,
}

/// The form of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A small, see-through disc: for many points.
    Dot,
    /// A disc.
    Disc,
    /// A diagonal cross.
    Cross,
}
