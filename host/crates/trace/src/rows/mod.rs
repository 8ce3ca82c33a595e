//! Iteration over the rows of a file of any format, in bounded memory.

mod beginning;
mod csv;
mod document;
mod each_row;
mod format;
mod lines;
mod raw_row;
mod shape;

pub(crate) use beginning::check_beginning;
pub(crate) use csv::{CsvRecord, header_of, split};
pub(crate) use document::{keys_of, text_of};
pub(crate) use each_row::each_row;
pub(crate) use format::{detect, sniff_shape};
pub(crate) use raw_row::{RawRow, ReadLimits};
pub(crate) use shape::Shape;
