//! Arrangements of the rows in a file.

/// Arrangement of the rows in a file. `at` is its start, after a byte order mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// No rows.
    Empty,
    /// JSON Lines.
    Lines { at: u64 },
    /// One JSON array.
    Array { at: u64 },
    /// One JSON object with a member that is the array of rows.
    Member { at: u64, name: String },
    /// One JSON object, over several lines, which is one row.
    Object { at: u64 },
    /// A header and records.
    Csv { at: u64 },
}

/// Shape of a file, judged by its beginning.
pub(crate) enum First {
    /// It has this shape, whatever follows.
    Shape(Shape),
    /// It is one object that exceeds the row limit.
    TooLong { line: u64 },
    /// It depends on what follows.
    Unknown,
}
