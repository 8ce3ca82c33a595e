//! A drawing as data: the positions of its elements, independent of the output format. PNG and SVG
//! are made from the same [`Drawing`].

mod axis;
mod canvas;
mod draw;
mod elements;
mod font;
mod palette;
mod png_file;
mod raster;
mod svg_file;

pub use axis::{AxisScale, AxisSpan, PlotAxis};
pub use elements::{AreaFill, BoxShape, Chart, Dash, Drawing, LineShape, Marker, PlotElement};
pub use palette::Color;
pub(crate) use svg_file::grid;
