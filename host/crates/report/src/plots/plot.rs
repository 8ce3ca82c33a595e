//! A drawing with its data.

use crate::drawing::Drawing;

/// A drawing and its data.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// The drawing.
    pub drawing: Drawing,
    /// Its data as CSV, with units in the headings; all values, even if the drawing shows fewer.
    pub csv: String,
}
