//! What can be wrong with a row.

use crate::text::{hint, numbers, quoted, shortened};

/// What is wrong with a row. Columns stand under the flavor's name, with the file's name where it is another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowProblem {
    /// Bytes that are no text.
    #[error("not UTF-8 at byte {at} of the row")]
    NotUtf8 {
        /// The byte, from 0.
        at: usize,
    },
    /// Longer than rows may be.
    #[error("longer than the {limit} bytes that a row may have (`max_row_mib`)")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The file ends within the row.
    #[error("ends in the middle of a JSON value; the file seems to be cut off")]
    CutOff,
    /// The row ends within a value.
    #[error("not JSON: it ends in the middle of a value")]
    EndsEarly,
    /// A syntax error.
    #[error("not JSON: {why} at byte {at}, near {}", quoted(near))]
    NotJson {
        /// What was met or missed.
        why: &'static str,
        /// The byte of the row, from 0.
        at: usize,
        /// The text there.
        near: String,
    },
    /// JSON, and not an object.
    #[error("a row is a JSON object, this one is {found}")]
    NotObject {
        /// What it is.
        found: &'static str,
    },
    /// A quote that is opened and never closed.
    #[error("a quoted cell has no closing quote")]
    OpenQuote,
    /// Too few or too many cells.
    #[error("it has {found} cells, the header has {expected}")]
    CellCount {
        /// Cells of the row.
        found: usize,
        /// Cells of the header.
        expected: usize,
    },
    /// A column without a name.
    #[error("column {number} has no name")]
    NamelessColumn {
        /// Which, from 1.
        number: usize,
    },
    /// A member that stands in its object more than once: which of its values counts is not known.
    #[error("{} stands twice", quoted(column))]
    Twice {
        /// The name in the file.
        column: String,
    },
    /// A cell that every row must have is absent.
    #[error("the column {} is missing{}", quoted(column), hint(nearest))]
    MissingColumn {
        /// The column.
        column: String,
        /// A column of the row with a name much like it.
        nearest: Option<String>,
    },
    /// A cell of another type.
    #[error("column {column}: {} is not {expected}", shortened(value))]
    WrongType {
        /// The column.
        column: String,
        /// The cell.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A negative cell where a count is needed.
    #[error("column {column}: {} is negative, a count is 0 or more", shortened(value))]
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
    /// A date that cannot be read.
    #[error(
        "column {column}: {} is not a date; written as 2023-11-16T18:15:46.68Z or 2023-11-16 18:15:46.6805900 it is",
        shortened(value)
    )]
    NotDate {
        /// The column.
        column: String,
        /// The cell.
        value: String,
    },
    /// A time that no clock tells.
    #[error("column {column}: {} is too far away to be a time", shortened(value))]
    NotTime {
        /// The column.
        column: String,
        /// The cell.
        value: String,
    },
    /// Two rows with the same id.
    #[error(
        "column {}: the id {} is already that of row {first}",
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
    /// Rows that continue one another in a circle.
    #[error(
        "column {}: the rows {} continue one another in a circle",
        quoted(column),
        numbers(rows)
    )]
    Cycle {
        /// The column with the parents.
        column: String,
        /// The rows.
        rows: Vec<u64>,
    },
    /// No arrival in any row of a group, and the order is by arrival.
    #[error(
        "no row of its session has an arrival (column {}), and arrivals are to be replayed",
        quoted(column)
    )]
    NoArrival {
        /// The column with the arrivals.
        column: String,
    },
    /// The flavor makes no session of it.
    #[error("the flavor refuses its session: {message}")]
    Refused {
        /// What the flavor says.
        message: String,
    },
}
