//! A look at a trace by somebody who does not know its flavor yet.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;

use crate::error::{BadRow, Place, TraceError};
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
    /// The columns of the first rows, in the order in which they appear, up to 4,096 of them. Of [`Format::JsonDocument`], which may be a frame
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
/// There is no such file, it cannot be read, it has no rows, or its first row is longer than 64 MiB.
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
        let mut columns = Names::default();
        let mut first_row = String::new();
        match (&found.shape, &found.rows_in) {
            (Shape::Lines { at } | Shape::Object { at }, Some(name)) => {
                let window = Window::new(&store, file, *at, limits.chunk);
                keys_of(Stream::new(window, limits.row), &mut |key| columns.add(key));
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
    let mut columns = Names::default();
    for file in 0..store.regions.len() {
        let shape = detect(store, file, rows_in, limits)?;
        match look(store, file, &shape, limits, &mut columns, &mut String::new()) {
            // The message is about another matter; the next file may name columns.
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
    limits: Limits,
    columns: &mut Names,
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
            // Nothing is known of a trace whose first row cannot be looked at, unless a header says it.
            Err(problem) if json && rows == 0 => {
                let place = Place {
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
        // What is broken further down is no matter for a first look.
        Err(TraceError::Frame { .. }) if rows > 0 => Ok(()),
        result => result,
    }
}

/// Names that are collected at most.
const NAMES: usize = 4096;

/// Names in the order in which they appear, each once.
#[derive(Default)]
struct Names {
    names: Vec<String>,
    met: HashSet<String>,
}

impl Names {
    /// Adds a name that is not there yet; breaks when there are enough.
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

fn add_keys(bytes: &[u8], columns: &mut Names) {
    let start = skip_space(bytes, 0);
    if bytes.get(start) != Some(&b'{') {
        return;
    }
    // Of a broken row, the keys before the break count.
    let _ = members(bytes, start, |member| {
        if columns.names.len() < NAMES
            && let Some(key) = text_of(&bytes[member.key - 1..=member.key_end])
        {
            let _ = columns.add(key);
        }
    });
}
