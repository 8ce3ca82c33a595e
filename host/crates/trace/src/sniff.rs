//! A look at a trace by somebody who does not know its flavor yet.

use std::ops::ControlFlow;
use std::path::Path;

use crate::error::TraceError;
use crate::header::names;
use crate::json::{Stream, members, skip_space};
use crate::rows::{Limits, RawRow, Shape, detect, each_row, keys_of, sniff_shape, text_of};
use crate::store::{Store, unreadable};
use crate::window::Window;

/// Rows that are looked at.
const ROWS: usize = 20;

/// The longest row that is looked at: 64 MiB.
const LONGEST: usize = 64 << 20;

/// How much of a packed file is unpacked for it: 16 MiB.
const BEGINNING: u64 = 16 << 20;

/// How the rows of a file stand in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// One JSON object on each line.
    JsonLines,
    /// One JSON array of objects.
    JsonArray,
    /// One JSON object that is the only row of its file.
    JsonObject,
    /// One JSON object, in a member of which the rows stand.
    JsonDocument,
    /// A header and records.
    Csv,
}

impl Format {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Format::JsonLines => "JSON Lines",
            Format::JsonArray => "JSON array",
            Format::JsonObject => "JSON object",
            Format::JsonDocument => "JSON object with rows in it",
            Format::Csv => "CSV",
        }
    }
}

/// What a first look at a trace finds; in a folder, in its first file that has rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sniffed {
    /// How its rows stand in it.
    pub format: Format,
    /// The columns of the first rows, in the order in which they appear. Of [`Format::JsonDocument`], which may be a frame
    /// around rows or a row itself, the keys of the document, and then those of the rows in it.
    pub columns: Vec<String>,
    /// Of an object that is all of its file: the member that holds an array of objects, which may be the rows.
    pub rows_in: Option<String>,
    /// The first row as it stands there, shortened to 64 KiB; of [`Format::JsonDocument`], the beginning of the document.
    pub first_row: String,
    /// Whether the file is packed.
    pub compressed: bool,
    /// How many files the trace has.
    pub files: usize,
}

/// Looks at a trace: a file, or a folder of files.
///
/// # Errors
/// There is no such file, it cannot be read, or it has no rows.
pub fn sniff(path: &Path) -> Result<Sniffed, TraceError> {
    let store = Store::open_beginnings(path, None, BEGINNING)?;
    let limits = Limits::rows_of(LONGEST);
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
        let mut columns = Vec::new();
        let mut first_row = String::new();
        match (&found.shape, &found.rows_in) {
            (Shape::Lines { at } | Shape::Object { at }, Some(name)) => {
                columns = keys_of(Stream::new(
                    Window::new(&store, file, *at, limits.chunk),
                    limits.row,
                ));
                first_row = beginning(&store, file, *at)?;
                let rows = Shape::Member {
                    at: *at,
                    name: name.clone(),
                };
                match look(&store, file, &rows, limits, &mut columns, &mut String::new()) {
                    // A first look need not reach the rows.
                    Err(TraceError::Frame { .. }) | Ok(()) => {}
                    Err(error) => return Err(error),
                }
            }
            (shape, _) => look(&store, file, shape, limits, &mut columns, &mut first_row)?,
        }
        return Ok(Sniffed {
            format,
            columns,
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

/// Bytes of the first row that are shown.
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

/// The columns of a trace's first rows, for messages.
pub(crate) fn columns_of(
    store: &Store,
    rows_in: Option<&str>,
    limits: Limits,
) -> Result<Vec<String>, TraceError> {
    let mut columns = Vec::new();
    for file in 0..store.regions.len() {
        let shape = detect(store, file, rows_in, limits)?;
        look(store, file, &shape, limits, &mut columns, &mut String::new())?;
        if !columns.is_empty() {
            break;
        }
    }
    Ok(columns)
}

fn look(
    store: &Store,
    file: usize,
    shape: &Shape,
    limits: Limits,
    columns: &mut Vec<String>,
    first_row: &mut String,
) -> Result<(), TraceError> {
    if let Shape::Csv { at } = shape {
        *columns = names(store, file, *at, limits)?;
    }
    let json = !matches!(shape, Shape::Csv { .. });
    let mut rows = 0;
    let result = each_row(store, file, shape, limits, &mut |row: RawRow<'_>| {
        if let Ok(bytes) = row.bytes {
            if rows == 0 {
                *first_row = shown(bytes);
            }
            rows += 1;
            if json {
                add_keys(bytes, columns);
            }
        }
        Ok(if rows < ROWS {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        })
    });
    match result {
        // What is broken further down is no matter for a first look.
        Err(TraceError::Frame { .. }) if rows > 0 => Ok(()),
        result => result,
    }
}

fn add_keys(bytes: &[u8], columns: &mut Vec<String>) {
    let start = skip_space(bytes, 0);
    if bytes.get(start) != Some(&b'{') {
        return;
    }
    // Of a broken row, the keys before the break count.
    let _ = members(bytes, start, |member| {
        if let Some(key) = text_of(&bytes[member.key - 1..=member.key_end])
            && !columns.contains(&key)
        {
            columns.push(key);
        }
    });
}
