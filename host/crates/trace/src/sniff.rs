//! Inspection of a trace whose flavor is not known yet.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;

use crate::error::{BadRow, RowPosition, TraceError};
use crate::header::names;
use crate::json::{JsonStream, members, skip_space};
use crate::rows::{RawRow, ReadLimits, Shape, detect, each_row, keys_of, sniff_shape, text_of};
use crate::store::{Store, unreadable};
use crate::window::FileWindow;

/// Number of rows to inspect.
const ROWS: usize = 20;

/// Maximum length of an inspected row: 64 MiB.
const LONGEST: usize = 64 << 20;

/// Number of decompressed bytes to inspect: 16 MiB.
const BEGINNING: u64 = 16 << 20;

/// Arrangement of the rows in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// One JSON object on each line.
    JsonLines,
    /// One JSON array of objects.
    JsonArray,
    /// One JSON object that is the only row of its file.
    JsonObject,
    /// One JSON object with a member that contains the rows.
    JsonDocument,
    /// A header and records.
    Csv,
}

impl Format {
    /// Returns the name used in messages.
    pub fn name(self) -> &'static str {
        match self {
            Format::JsonLines => "JSON Lines",
            Format::JsonArray => "JSON array",
            Format::JsonObject => "JSON object",
            Format::JsonDocument => "JSON object with rows",
            Format::Csv => "CSV",
        }
    }
}

/// Result of sniffing a trace; for a folder, its first file with rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sniffed {
    /// Arrangement of its rows.
    pub format: Format,
    /// Columns of the first rows, in order of appearance, at most 4,096. For
    /// [`Format::JsonDocument`], which may be a frame around rows or a row itself, the keys of the
    /// document, and then those of its rows.
    pub columns: Vec<String>,
    /// For an object that is the whole file: the member with an array of objects, which may be the
    /// rows.
    pub rows_in: Option<String>,
    /// The first row, shortened to 64 KiB; for [`Format::JsonDocument`], the beginning of the
    /// document.
    pub first_row: String,
    /// True if the file is compressed.
    pub compressed: bool,
    /// Number of files of the trace.
    pub files: usize,
}

/// Inspects a trace: a file, or a folder of files.
///
/// # Errors
/// Returns an error if the file does not exist, cannot be read, has no rows, or has a first row
/// longer than 64 MiB.
pub fn sniff(path: &Path) -> Result<Sniffed, TraceError> {
    let store = Store::open_beginnings(path, None, BEGINNING)?;
    let limits = ReadLimits::rows_of(LONGEST);
    for file in 0..store.regions.len() {
        let found = sniff_shape(&store, file, limits)?;
        let format = match (&found.shape, &found.rows_in) {
            (Shape::Empty, _) => continue,
            (_, Some(_)) => Format::JsonDocument,
            (Shape::Lines { .. }, None) => Format::JsonLines,
            (Shape::Array { .. }, None) => Format::JsonArray,
            (Shape::Member { .. } | Shape::Object { .. }, None) => Format::JsonObject,
            (Shape::Csv { .. }, None) => Format::Csv,
        };
        let mut columns = ColumnNames::default();
        let mut first_row = String::new();
        match (&found.shape, &found.rows_in) {
            (Shape::Lines { at } | Shape::Object { at }, Some(name)) => {
                let window = FileWindow::new(&store, file, *at, limits.chunk);
                keys_of(JsonStream::new(window, limits.row), &mut |key| columns.add(key));
                first_row = beginning(&store, file, *at)?;
                let rows = Shape::Member {
                    at: *at,
                    name: name.clone(),
                };
                match look(&store, file, &rows, limits, &mut columns, &mut String::new()) {
                    // The inspected part may end before the rows.
                    Err(TraceError::Frame { .. }) | Ok(()) => {}
                    Err(error) => return Err(error),
                }
            }
            (shape, _) => look(&store, file, shape, limits, &mut columns, &mut first_row)?,
        }
        return Ok(Sniffed {
            format,
            columns: columns.names,
            rows_in: found.rows_in,
            first_row,
            compressed: store.regions[file].packed(),
            files: store.regions.len(),
        });
    }
    Err(TraceError::NoRows {
        path: path.to_owned(),
    })
}

/// Number of bytes of the first row to show.
const SHOWN: usize = 1 << 16;

fn shown(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(SHOWN)];
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

fn beginning(store: &Store, file: usize, at: u64) -> Result<String, TraceError> {
    let mut bytes = vec![0; SHOWN];
    let read = store
        .read_at(file, at, &mut bytes)
        .map_err(|error| unreadable(&store.regions[file].path, &error))?;
    Ok(shown(&bytes[..read]))
}

/// Returns the columns of a trace's first rows, for messages.
pub(crate) fn columns_of(
    store: &Store,
    rows_in: Option<&str>,
    limits: ReadLimits,
) -> Result<Vec<String>, TraceError> {
    let mut columns = ColumnNames::default();
    for file in 0..store.regions.len() {
        let shape = detect(store, file, rows_in, limits)?;
        match look(store, file, &shape, limits, &mut columns, &mut String::new()) {
            // The message concerns something else, and the next file may have columns.
            Err(TraceError::BadRow(_)) | Ok(()) => {}
            Err(error) => return Err(error),
        }
        if !columns.names.is_empty() {
            break;
        }
    }
    Ok(columns.names)
}

fn look(
    store: &Store,
    file: usize,
    shape: &Shape,
    limits: ReadLimits,
    columns: &mut ColumnNames,
    first_row: &mut String,
) -> Result<(), TraceError> {
    if let Shape::Csv { at } = shape {
        for name in names(store, file, *at, limits)? {
            let _ = columns.add(name);
        }
    }
    let json = !matches!(shape, Shape::Csv { .. });
    let mut rows = 0;
    let result = each_row(store, file, shape, limits, &mut |row: RawRow<'_>| {
        match row.bytes {
            Ok(bytes) => {
                if rows == 0 {
                    *first_row = shown(bytes);
                }
                if json {
                    add_keys(bytes, columns);
                }
            }
            // A trace whose first row is unreadable has no known columns, unless a header names
            // them.
            Err(problem) if json && rows == 0 => {
                let place = RowPosition {
                    file: store.regions[file].path.clone(),
                    row: 1,
                    line: Some(row.line),
                };
                return Err(BadRow { place, problem }.into());
            }
            Err(_) => {}
        }
        rows += 1;
        Ok(if rows < ROWS {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        })
    });
    match result {
        // Errors further down do not matter here.
        Err(TraceError::Frame { .. }) if rows > 0 => Ok(()),
        result => result,
    }
}

/// Maximum number of collected names.
const NAMES: usize = 4096;

/// Distinct names in order of appearance.
#[derive(Default)]
struct ColumnNames {
    names: Vec<String>,
    met: HashSet<String>,
}

impl ColumnNames {
    /// Adds a name unless it is present; breaks when there are enough.
    fn add(&mut self, name: String) -> ControlFlow<()> {
        if self.names.len() >= NAMES {
            return ControlFlow::Break(());
        }
        if !self.met.contains(&name) {
            self.met.insert(name.clone());
            self.names.push(name);
        }
        ControlFlow::Continue(())
    }
}

fn add_keys(bytes: &[u8], columns: &mut ColumnNames) {
    let start = skip_space(bytes, 0);
    if bytes.get(start) != Some(&b'{') {
        return;
    }
    // The keys before the error of a broken row count.
    let _ = members(bytes, start, |member| {
        if columns.names.len() < NAMES
            && let Some(key) = text_of(&bytes[member.key - 1..=member.key_end])
        {
            let _ = columns.add(key);
        }
    });
}
