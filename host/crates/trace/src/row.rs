//! One row: finds its cells, checks them, and writes them for the flavor.

use std::borrow::Cow;

use crate::cell::{CellError, RawCell, TypedCell, check, trimmed, value};
use crate::columns::TraceColumns;
use crate::json::{JsonKind, ScanFault, members, not_json, scan_value, skip_space};
use crate::problem::RowProblem;
use crate::rows::{CsvRecord, split, text_of};
use crate::text::nearest;
use crate::time::{TimeError, instant};

/// Cell positions in a file's rows.
#[derive(Clone, Debug)]
pub(crate) enum CellPositions {
    /// Every row names its cells.
    Json,
    /// The header names them: for each position, the index in [`TraceColumns::names`] of a column
    /// that is read.
    Csv(Vec<Option<usize>>),
}

/// A cell that was found.
#[derive(Clone, Copy, Debug)]
struct FoundCell {
    rank: u16,
    /// Index in [`TraceColumns::names`].
    name: usize,
    /// `None`: a CSV cell.
    kind: Option<JsonKind>,
    start: usize,
    end: usize,
}

/// Finds cells, reusing its buffers from row to row.
#[derive(Debug)]
pub(crate) struct RowReader {
    found: Vec<Option<FoundCell>>,
    record: CsvRecord,
    /// Keys of the last JSON row by position: rows of a trace usually have the same columns in the
    /// same order.
    last_keys: Vec<(Vec<u8>, Option<usize>)>,
    /// Number of rows read.
    rows: u64,
    /// For each of [`TraceColumns::names`], the last row that had it, from 1; 0 for none.
    seen: Vec<u64>,
}

/// A row whose cells have been found.
pub(crate) struct LocatedRow<'a> {
    columns: &'a TraceColumns,
    text: &'a str,
    found: &'a [Option<FoundCell>],
}

impl RowReader {
    /// Creates a reader for rows of these columns.
    pub(crate) fn new(columns: &TraceColumns) -> Self {
        RowReader {
            found: vec![None; columns.slots.len()],
            record: CsvRecord::new(),
            last_keys: Vec::new(),
            rows: 0,
            seen: vec![0; columns.names.len()],
        }
    }

    /// Returns a predicate: true for an index of [`TraceColumns::names`] seen in any row.
    pub(crate) fn seen(&self) -> impl Fn(usize) -> bool + '_ {
        |name| self.seen[name] != 0
    }

    /// Finds the cells of a row.
    pub(crate) fn read<'a>(
        &'a mut self,
        columns: &'a TraceColumns,
        header: &CellPositions,
        bytes: &'a [u8],
    ) -> Result<LocatedRow<'a>, RowProblem> {
        let whole = std::str::from_utf8(bytes).map_err(|error| RowProblem::NotUtf8 {
            at: error.valid_up_to(),
        })?;
        self.found.fill(None);
        let text = match header {
            CellPositions::Json => {
                self.json(columns, bytes)?;
                whole
            }
            CellPositions::Csv(positions) => {
                split(bytes, &mut self.record);
                self.csv(columns, positions)?;
                // Removing the quotes from UTF-8 text leaves UTF-8 text.
                match self.record.unquoted() {
                    Some(text) => std::str::from_utf8(text).map_err(|_| RowProblem::NotUtf8 { at: 0 })?,
                    None => whole,
                }
            }
        };
        Ok(LocatedRow {
            columns,
            text,
            found: &self.found,
        })
    }

    fn json(&mut self, columns: &TraceColumns, bytes: &[u8]) -> Result<(), RowProblem> {
        let start = skip_space(bytes, 0);
        let fault = |fault| match fault {
            ScanFault::Early => RowProblem::EndsEarly,
            ScanFault::At { at, why } => not_json(bytes, at, why),
        };
        if bytes.get(start).is_some_and(|byte| *byte != b'{') {
            let (kind, _) = scan_value(bytes, start).map_err(fault)?;
            return Err(RowProblem::NotObject {
                found: described(kind),
            });
        }
        let RowReader {
            found,
            last_keys,
            seen,
            rows,
            ..
        } = self;
        *rows += 1;
        let mut position = 0;
        let mut twice = None;
        let end = members(bytes, start, |member| {
            let key = &bytes[member.key..member.key_end];
            let name = match last_keys.get(position) {
                Some((last, name)) if last == key => *name,
                _ => {
                    let name = if member.key_escaped {
                        text_of(&bytes[member.key - 1..=member.key_end]).and_then(|key| columns.find(&key))
                    } else {
                        std::str::from_utf8(key).ok().and_then(|key| columns.find(key))
                    };
                    remember(last_keys, position, key, name);
                    name
                }
            };
            position += 1;
            let Some(name) = name else { return };
            if seen[name] == *rows {
                twice = Some(name);
            }
            seen[name] = *rows;
            if member.kind == JsonKind::Null {
                return;
            }
            for (slot, rank) in &columns.names[name].targets {
                let slot = &mut found[usize::from(*slot)];
                if slot.is_none_or(|other| *rank < other.rank) {
                    *slot = Some(FoundCell {
                        rank: *rank,
                        name,
                        kind: Some(member.kind),
                        start: member.start,
                        end: member.end,
                    });
                }
            }
        })
        .map_err(fault)?;
        match (skip_space(bytes, end), twice) {
            (at, _) if at < bytes.len() => Err(not_json(bytes, at, "unexpected text after the object")),
            (_, Some(name)) if !columns.names[name].targets.is_empty() => Err(RowProblem::Twice {
                column: columns.names[name].name.clone(),
            }),
            _ => Ok(()),
        }
    }

    fn csv(&mut self, columns: &TraceColumns, positions: &[Option<usize>]) -> Result<(), RowProblem> {
        let cells = self.record.cells();
        if cells.len() != positions.len() {
            return Err(RowProblem::CellCount {
                found: cells.len(),
                expected: positions.len(),
            });
        }
        for ((start, end), name) in cells.zip(positions) {
            let Some(name) = *name else { continue };
            if start == end {
                continue;
            }
            for (slot, rank) in &columns.names[name].targets {
                let slot = &mut self.found[usize::from(*slot)];
                if slot.is_none_or(|other| *rank < other.rank) {
                    *slot = Some(FoundCell {
                        rank: *rank,
                        name,
                        kind: None,
                        start,
                        end,
                    });
                }
            }
        }
        Ok(())
    }
}

/// Keys beyond this number are looked up each time.
const REMEMBERED_KEYS: usize = 256;

fn remember(keys: &mut Vec<(Vec<u8>, Option<usize>)>, position: usize, key: &[u8], name: Option<usize>) {
    if position >= REMEMBERED_KEYS || key.len() > 256 {
        return;
    }
    let next = position == keys.len();
    match keys.get_mut(position) {
        Some((last, known)) => {
            last.clear();
            last.extend_from_slice(key);
            *known = name;
        }
        None if next => keys.push((key.to_owned(), name)),
        None => {}
    }
}

fn described(kind: JsonKind) -> &'static str {
    match kind {
        JsonKind::Text { .. } => "a string",
        JsonKind::Number => "a number",
        JsonKind::True | JsonKind::False => "a boolean",
        JsonKind::Null => "null",
        JsonKind::Items => "an array",
        JsonKind::Members => "an object",
    }
}

impl<'a> LocatedRow<'a> {
    /// Returns the cell of a slot, if it is present.
    fn raw(&self, slot: usize) -> Option<(RawCell<'a>, FoundCell)> {
        let found = self.found[slot]?;
        let text = &self.text[found.start..found.end];
        let raw = match found.kind {
            Some(kind) => RawCell::Json(kind, text),
            None => RawCell::Csv(text),
        };
        Some((raw, found))
    }

    fn value(&self, slot: usize) -> Result<Option<TypedCell<'a>>, RowProblem> {
        let Some((raw, found)) = self.raw(slot) else {
            return Ok(None);
        };
        match value(self.columns.slots[slot].cell, raw) {
            Ok(value) => Ok(Some(value)),
            Err(wrong) => Err(self.wrong(wrong, slot, found)),
        }
    }

    fn called(&self, slot: usize, found: FoundCell) -> String {
        self.columns.called(slot, &self.columns.names[found.name].name)
    }

    fn shown(&self, found: FoundCell) -> &'a str {
        &self.text[found.start..found.end]
    }

    /// Checks every cell against its column.
    pub(crate) fn check(&self) -> Result<(), RowProblem> {
        for (slot, column) in self.columns.slots.iter().enumerate() {
            match self.raw(slot) {
                Some((raw, found)) => {
                    if let Err(wrong) = check(column.cell, raw) {
                        return Err(self.wrong(wrong, slot, found));
                    }
                }
                None if column.required => return Err(self.missing(slot)),
                None => {}
            }
        }
        Ok(())
    }

    #[cold]
    fn wrong(&self, wrong: CellError, slot: usize, found: FoundCell) -> RowProblem {
        wrong.problem(self.called(slot, found), self.shown(found))
    }

    #[cold]
    fn missing(&self, slot: usize) -> RowProblem {
        let column = self.columns.slots[slot].name.clone();
        RowProblem::MissingColumn {
            nearest: self.nearest(&column),
            column,
        }
    }

    /// Returns a member of the row that belongs to no column and has a name similar to `wanted`.
    fn nearest(&self, wanted: &str) -> Option<String> {
        let bytes = self.text.as_bytes();
        let mut names = Vec::new();
        if bytes.get(skip_space(bytes, 0)) == Some(&b'{') {
            // The row has been scanned before, so this does not fail.
            let _ = members(bytes, skip_space(bytes, 0), |member| {
                names.extend(text_of(&bytes[member.key - 1..=member.key_end]));
            });
        }
        names.retain(|name| self.columns.find(name).is_none());
        nearest(wanted, names.iter().map(String::as_str)).map(str::to_owned)
    }

    /// Returns the text by which a column groups; `None` if the cell is absent.
    pub(crate) fn key(&self, slot: usize) -> Result<Option<Cow<'a, str>>, RowProblem> {
        Ok(self.value(slot)?.map(TypedCell::key))
    }

    /// Returns the recorded arrival, relative to the trace's own origin.
    pub(crate) fn arrival(&self) -> Result<Option<i64>, RowProblem> {
        let Some((slot, unit)) = self.columns.arrival else {
            return Ok(None);
        };
        let Some((raw, found)) = self.raw(slot) else {
            return Ok(None);
        };
        let text = match raw {
            RawCell::Json(JsonKind::Text { .. }, json) => {
                crate::cell::decoded(json).unwrap_or(Cow::Borrowed(json))
            }
            RawCell::Json(_, text) | RawCell::Csv(text) => Cow::Borrowed(text),
        };
        instant(trimmed(&text), unit).map(Some).map_err(|error| {
            let column = self.called(slot, found);
            let value = self.shown(found).to_owned();
            match error {
                TimeError::NotNumber => RowProblem::WrongType {
                    column,
                    value,
                    expected: "a number",
                },
                TimeError::NotDate => RowProblem::NotDate { column, value },
                TimeError::TooFar => RowProblem::TimeError { column, value },
            }
        })
    }

    /// Returns the columns of the layout as a JSON object, in the layout's order.
    pub(crate) fn fields(&self) -> Result<String, RowProblem> {
        let mut out = String::with_capacity(self.text.len() + 16);
        out.push('{');
        for (slot, column) in self.columns.slots.iter().enumerate().take(self.columns.projected) {
            let Some(value) = self.value(slot)? else { continue };
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&column.json_key);
            value.write(&mut out);
        }
        out.push('}');
        Ok(out)
    }
}
