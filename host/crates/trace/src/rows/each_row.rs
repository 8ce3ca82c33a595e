//! The rows of a file of any format.

use crate::error::TraceError;
use crate::rows::raw_row::{ReadLimits, RowVisitor};
use crate::rows::shape::Shape;
use crate::rows::{csv, document, lines};
use crate::store::Store;
use crate::window::FileWindow;

/// Calls `each` with all rows of a file, in order. The header of a CSV file is not a row.
pub(crate) fn each_row(
    store: &Store,
    region: usize,
    shape: &Shape,
    limits: ReadLimits,
    each: &mut impl RowVisitor,
) -> Result<(), TraceError> {
    let window = |at: u64| FileWindow::new(store, region, at, limits.chunk);
    match shape {
        Shape::Empty => Ok(()),
        Shape::Lines { at } => lines::each(window(*at), limits.row, each),
        Shape::Array { at } => document::each_item(store, region, window(*at), limits.row, each),
        Shape::Member { at, name } => {
            document::each_item_of(store, region, window(*at), name, limits.row, each)
        }
        Shape::Object { at } => document::one(store, region, window(*at), limits.row, each),
        Shape::Csv { at } => csv::each(window(*at), limits.row, each),
    }
}
