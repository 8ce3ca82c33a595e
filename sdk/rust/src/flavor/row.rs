//! Rows of a trace, their groups, and the errors that name them.

use std::cell::OnceCell;

use serde::de::DeserializeOwned;

use crate::config;
use crate::types::{Error, Nanos};

/// A row of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<R> {
    /// Its number in the trace, from 1.
    pub number: u64,
    /// Its recorded arrival, relative to the earliest of the trace.
    pub at: Option<Nanos>,
    /// Its cells.
    pub cells: R,
}

impl<R> Row<R> {
    /// An error about this row: code `row`, with the row's number before the message.
    pub fn error(&self, message: impl AsRef<str>) -> Error {
        row_error(self.number, message.as_ref())
    }

    /// A count that must be 1 or more.
    ///
    /// # Errors
    /// A count of 0, by its row and its column.
    pub fn positive(&self, column: &str, count: u32) -> Result<u32, Error> {
        if count == 0 {
            return Err(self
                .error(format!("`{column}` is 0; it is 1 or more"))
                .hint("`on_bad_row: skip` leaves such rows out, with all rows of their session"));
        }
        Ok(count)
    }
}

fn row_error(number: u64, message: &str) -> Error {
    Error::new("row", format!("row {number}: {message}"))
}

/// The rows of one session, in the order of the file; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group<R> {
    /// Its number in the trace, from 0.
    pub index: u64,
    /// The value of the grouping column, or the id of the tree's root; else empty.
    pub key: String,
    /// The rows.
    pub rows: Vec<Row<R>>,
}

/// What is known of the whole trace.
pub struct Trace<R> {
    /// Rows that are used.
    pub rows: u64,
    /// Groups of rows: sessions of one pass.
    pub groups: u64,
    first: String,
    read: OnceCell<Option<R>>,
}

impl<R: DeserializeOwned> Trace<R> {
    /// A trace, for tests: the host makes the others. `first_row` is a JSON object.
    pub fn new(rows: u64, groups: u64, first_row: impl Into<String>) -> Self {
        Trace {
            rows,
            groups,
            first: first_row.into(),
            read: OnceCell::new(),
        }
    }

    /// The first row of the trace; read when it is asked for. `None` if there is none.
    pub fn first_row(&self) -> Option<&R> {
        self.read
            .get_or_init(|| serde_json::from_str(&self.first).ok())
            .as_ref()
    }
}

/// Reads the rows of a group, for the host's calls and for tests: each is its number, its arrival
/// and a JSON object.
///
/// # Errors
/// The first row that does not fit `R`, by its number.
pub fn group<R: DeserializeOwned>(
    index: u64,
    key: impl Into<String>,
    rows: impl IntoIterator<Item = (u64, Option<Nanos>, String)>,
) -> Result<Group<R>, Error> {
    let rows = rows.into_iter().map(|(number, at, fields)| {
        let cells = serde_json::from_str(&fields)
            .map_err(|error| row_error(number, &misfit::<R>(&fields, &error)))?;
        Ok(Row { number, at, cells })
    });
    Ok(Group {
        index,
        key: key.into(),
        rows: rows.collect::<Result<_, Error>>()?,
    })
}

/// Why a row does not fit its type. The reader of configurations is slower than `serde_json`, and
/// knows the place.
fn misfit<R: DeserializeOwned>(fields: &str, error: &serde_json::Error) -> String {
    match config::from_json::<R>(fields) {
        Err(Error { message, path, .. }) => match path.as_deref() {
            None | Some("") => message,
            Some(path) => format!("`{}`: {message}", path[1..].replace('/', ".")),
        },
        Ok(_) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Cells {
        length: u32,
        inner: Option<Vec<u32>>,
    }

    fn read(fields: &str) -> Result<Group<Cells>, Error> {
        group(0, "", [(7, None, fields.to_owned())])
    }

    #[test]
    fn a_row_that_does_not_fit_is_named_with_its_column() {
        assert_eq!(
            read(r#"{"length": 3, "other": 1}"#).unwrap().rows[0].cells.length,
            3
        );
        let refused = |fields| read(fields).unwrap_err().message;
        assert_eq!(
            refused(r#"{"length": 5000000000}"#),
            "row 7: `length`: expected a whole number from 0 to 4294967295, found integer `5000000000`"
        );
        assert_eq!(
            refused(r#"{"length": 1, "inner": [1, "x"]}"#),
            "row 7: `inner.1`: expected a whole number from 0 to 4294967295, found string \"x\""
        );
        assert_eq!(refused("{}"), "row 7: the key `length` is missing");
    }

    #[test]
    fn a_count_of_nothing_is_refused() {
        let group = read(r#"{"length": 3}"#).unwrap();
        let row = &group.rows[0];
        assert_eq!(row.positive("n", 1), Ok(1));
        assert_eq!(
            row.positive("n", 0).unwrap_err().message,
            "row 7: `n` is 0; it is 1 or more"
        );
    }
}
