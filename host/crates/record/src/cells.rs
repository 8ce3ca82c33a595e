//! Names, texts and numbers in cells.

use bytes::Bytes;
use parquet::{
    data_type::ByteArray,
    errors::{ParquetError, Result},
};

/// A name that lives as long as the program, without a copy.
pub(crate) fn name(name: &'static str) -> ByteArray {
    Bytes::from_static(name.as_bytes()).into()
}

/// A cell that no recorder writes.
pub(crate) fn invalid_cell(column: &str, cell: impl std::fmt::Display) -> ParquetError {
    ParquetError::General(format!("column {column}: {cell} is not possible there"))
}

/// A number of at most 32 (or 16) bits.
pub(crate) fn small<T: TryFrom<i64>>(column: &str, cell: i64) -> Result<T> {
    T::try_from(cell).map_err(|_| invalid_cell(column, cell))
}

/// The text of a cell.
pub(crate) fn text<'a>(column: &str, cell: &'a ByteArray) -> Result<&'a str> {
    std::str::from_utf8(cell.data()).map_err(|_| invalid_cell(column, "text that is not UTF-8"))
}
