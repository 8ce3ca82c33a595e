//! Cell types: a Parquet type and its meaning.

use parquet::{
    basic::{LogicalType, Type as Physical},
    data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type},
};

/// The content of a column's cells.
pub(crate) trait Element {
    /// Storage type of the cells.
    type Type: DataType;
    /// The same, as a value.
    const PHYSICAL: Physical;

    /// Logical type for other readers; `None` if the storage type is sufficient.
    fn logical() -> Option<LogicalType> {
        None
    }
}

/// The value of a cell of an element, as it is stored.
pub(crate) type CellValue<E> = <<E as Element>::Type as DataType>::T;

/// A number or a time: `int64`. Unsigned 64-bit numbers keep their bits.
pub(crate) enum Int {}

impl Element for Int {
    type Type = Int64Type;
    const PHYSICAL: Physical = Physical::INT64;
}

/// A digest: `uint64`.
pub(crate) enum Digest {}

impl Element for Digest {
    type Type = Int64Type;
    const PHYSICAL: Physical = Physical::INT64;

    fn logical() -> Option<LogicalType> {
        Some(LogicalType::integer(64, false))
    }
}

/// A small code: `int8`.
pub(crate) enum Code {}

impl Element for Code {
    type Type = Int32Type;
    const PHYSICAL: Physical = Physical::INT32;

    fn logical() -> Option<LogicalType> {
        Some(LogicalType::integer(8, true))
    }
}

/// Yes or no.
pub(crate) enum Flag {}

impl Element for Flag {
    type Type = BoolType;
    const PHYSICAL: Physical = Physical::BOOLEAN;
}

/// A measured value: `double`.
pub(crate) enum Float {}

impl Element for Float {
    type Type = DoubleType;
    const PHYSICAL: Physical = Physical::DOUBLE;
}

/// UTF-8 text.
pub(crate) enum Utf8 {}

impl Element for Utf8 {
    type Type = ByteArrayType;
    const PHYSICAL: Physical = Physical::BYTE_ARRAY;

    fn logical() -> Option<LogicalType> {
        Some(LogicalType::String)
    }
}
