//! Problems of rows.

use crate::text::{hint, numbers, quoted, shortened};

/// A problem of a row. Columns have the flavor's name, with the file's name if it differs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowProblem {
    /// Bytes that are not UTF-8.
    #[error("not UTF-8 at byte {at} of the row")]
    NotUtf8 {
        /// Byte position, from 0.
        at: usize,
    },
    /// Longer than the limit.
    #[error("longer than the limit of {limit} bytes per row (`max_row_mib`)")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The file ends within the row.
    #[error("ends in the middle of a JSON value; the file seems to be truncated")]
    CutOff,
    /// The row ends within a value.
    #[error("not JSON: ends in the middle of a value")]
    EndsEarly,
    /// A syntax error.
    #[error("not JSON: {why} at byte {at}, near {}", quoted(near))]
    NotJson {
        /// Description of the error.
        why: &'static str,
        /// Byte of the row, from 0.
        at: usize,
        /// Text at that position.
        near: String,
    },
    /// JSON, but not an object.
    #[error("a row must be a JSON object, got {found}")]
    NotObject {
        /// Type that was found.
        found: &'static str,
    },
    /// A quote that is never closed.
    #[error("a quoted cell has no closing quote")]
    OpenQuote,
    /// Too few or too many cells.
    #[error("{found} cells, but the header has {expected}")]
    CellCount {
        /// Cells of the row.
        found: usize,
        /// Cells of the header.
        expected: usize,
    },
    /// A column without a name.
    #[error("column {number} has no name")]
    NamelessColumn {
        /// Number of the column, from 1.
        number: usize,
    },
    /// An object with a duplicate member: its value is ambiguous.
    #[error("duplicate column {}", quoted(column))]
    Twice {
        /// Name in the file.
        column: String,
    },
    /// A required cell is absent.
    #[error("missing column {}{}", quoted(column), hint(nearest))]
    MissingColumn {
        /// The column.
        column: String,
        /// A column of the row with a similar name.
        nearest: Option<String>,
    },
    /// A cell of another type.
    #[error("column {column}: {} is not {expected}", shortened(value))]
    WrongType {
        /// The column.
        column: String,
        /// The cell.
        value: String,
        /// Expected type.
        expected: &'static str,
    },
    /// A negative count.
    #[error("column {column}: {} must be 0 or more", shortened(value))]
    Negative {
        /// The column.
        column: String,
        /// The cell.
        value: String,
    },
    /// A number that is not finite.
    #[error("column {column}: {} is not a finite number", shortened(value))]
    NotFinite {
        /// The column.
        column: String,
        /// The cell.
        value: String,
    },
    /// A whole number beyond 64 bits.
    #[error("column {column}: {} does not fit into 64 bits", shortened(value))]
    TooLarge {
        /// The column.
        column: String,
        /// The cell.
        value: String,
    },
    /// A malformed date.
    #[error(
        "column {column}: {} is not a date; use 2023-11-16T18:15:46.68Z or 2023-11-16 18:15:46.6805900",
        shortened(value)
    )]
    NotDate {
        /// The column.
        column: String,
        /// The cell.
        value: String,
    },
    /// A time out of range.
    #[error("column {column}: {} is out of range for a time", shortened(value))]
    TimeError {
        /// The column.
        column: String,
        /// The cell.
        value: String,
    },
    /// Two rows with the same id.
    #[error(
        "column {}: the id {} is also that of row {first}",
        quoted(column),
        shortened(id)
    )]
    DuplicateId {
        /// The column.
        column: String,
        /// The id.
        id: String,
        /// The earlier row.
        first: u64,
    },
    /// Rows that continue one another in a cycle.
    #[error(
        "column {}: the rows {} continue one another in a cycle",
        quoted(column),
        numbers(rows)
    )]
    Cycle {
        /// The column with the parents.
        column: String,
        /// The rows.
        rows: Vec<u64>,
    },
    /// A group without an arrival, although the order is by arrival.
    #[error(
        "arrivals cannot be replayed: no row of its session has one (column {})",
        quoted(column)
    )]
    NoArrival {
        /// The column with the arrivals.
        column: String,
    },
    /// The flavor refuses the session.
    #[error("the flavor refuses its session: {message}")]
    Refused {
        /// Message of the flavor.
        message: String,
    },
}
