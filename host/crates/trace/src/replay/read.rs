//! Repeated reads of rows and groups.

use veeksha_ports::{Grouping, PluginFailure, PluginFailureKind, TraceGroup, TraceRow};

use crate::problem::RowProblem;
use crate::replay::trace_data::TraceData;
use crate::row::{LocatedRow, RowReader};

/// Minimum read size, and maximum for sequential reads: each read that continues the previous one
/// is twice as long.
const AHEAD: std::ops::RangeInclusive<usize> = 1 << 10..=1 << 17;

/// Reads rows of a trace. Each thread has its own.
pub(crate) struct GroupReader {
    reader: RowReader,
    buffer: Vec<u8>,
    /// File and offset of the buffer's first byte.
    file: usize,
    offset: u64,
    /// Size of the next read in bytes.
    ahead: usize,
}

impl GroupReader {
    /// Creates a reader for a trace.
    pub(crate) fn new(trace: &TraceData) -> Self {
        GroupReader {
            reader: RowReader::new(&trace.columns),
            buffer: Vec::new(),
            file: usize::MAX,
            offset: 0,
            ahead: *AHEAD.start(),
        }
    }

    /// Reads the rows of a group.
    pub(crate) fn group(
        &mut self,
        trace: &TraceData,
        index: u64,
        rows: impl IntoIterator<Item = u32>,
    ) -> Result<TraceGroup, PluginFailure> {
        let mut group = TraceGroup {
            index,
            key: String::new(),
            rows: Vec::new(),
        };
        let mut ids = Vec::new();
        for row in rows {
            let key = match trace.layout.grouping {
                Grouping::Column(_) if group.rows.is_empty() => trace.columns.key,
                _ => None,
            };
            let (fields, key, tree) = self.row(trace, row, |cells| {
                let own = |slot: usize| Ok(cells.key(slot)?.map(std::borrow::Cow::into_owned));
                let key = key.map(own).transpose()?.flatten();
                let tree = trace
                    .columns
                    .tree
                    .map(|(id, parent)| Ok((own(id)?, own(parent)?)))
                    .transpose()?;
                Ok((cells.fields()?, key, tree))
            })?;
            group.key.push_str(key.as_deref().unwrap_or_default());
            ids.extend(tree);
            group.rows.push(TraceRow {
                number: trace.rows.number(row),
                at: trace.rows.arrival(row),
                fields,
            });
        }
        if trace.columns.tree.is_some() {
            group.key = root(&ids).unwrap_or_default();
        }
        Ok(group)
    }

    /// Returns the text of one column of a row.
    pub(crate) fn key(&mut self, trace: &TraceData, row: u32, slot: usize) -> Result<String, PluginFailure> {
        let key = self.row(trace, row, |cells| {
            Ok(cells.key(slot)?.map(std::borrow::Cow::into_owned))
        })?;
        Ok(key.unwrap_or_default())
    }

    fn row<R>(
        &mut self,
        trace: &TraceData,
        row: u32,
        take: impl FnOnce(&LocatedRow<'_>) -> Result<R, RowProblem>,
    ) -> Result<R, PluginFailure> {
        let changed = |why: &dyn std::fmt::Display| {
            PluginFailure::new(
                trace.flavor.info().name.clone(),
                "reading rows",
                PluginFailureKind::Load,
                format!(
                    "{}: {why}; the file has changed since it was opened",
                    trace.place(row)
                ),
            )
        };
        let file = trace.rows.file_of(row);
        let bytes = self.load(trace, file, row).map_err(|error| changed(&error))?;
        let (from, to) = bytes;
        let cells = self
            .reader
            .read(&trace.columns, &trace.headers[file], &self.buffer[from..to]);
        cells
            .and_then(|cells| take(&cells))
            .map_err(|problem| changed(&problem))
    }

    /// Loads a row into the buffer; returns its bounds there.
    fn load(&mut self, trace: &TraceData, file: usize, row: u32) -> std::io::Result<(usize, usize)> {
        let (at, len) = (
            trace.rows.offsets[row as usize],
            trace.rows.lens[row as usize] as usize,
        );
        let end = self.offset + self.buffer.len() as u64;
        if file == self.file && at >= self.offset && at + len as u64 <= end {
            let from = (at - self.offset) as usize;
            return Ok((from, from + len));
        }
        // A row directly behind the last read is likely to be followed by the next one.
        self.ahead = if file == self.file && at >= self.offset && at <= end + 4096 {
            (self.ahead * 2).min(*AHEAD.end())
        } else {
            *AHEAD.start()
        };
        self.file = usize::MAX;
        self.buffer.resize(len.max(self.ahead), 0);
        let read = trace.store.read_at(file, at, &mut self.buffer)?;
        self.buffer.truncate(read);
        let held = self.buffer.len();
        if held < len {
            self.buffer.resize(len, 0);
            trace
                .store
                .read_exact_at(file, at + held as u64, &mut self.buffer[held..])?;
        }
        (self.file, self.offset) = (file, at);
        Ok((0, len))
    }
}

/// Returns the id of the row whose parent is not among the others.
fn root(ids: &[(Option<String>, Option<String>)]) -> Option<String> {
    let known: std::collections::HashSet<&str> = ids.iter().filter_map(|(id, _)| id.as_deref()).collect();
    let is_root = |parent: &Option<String>| match parent.as_deref() {
        None | Some("-1") => true,
        Some(parent) => !known.contains(parent),
    };
    let (id, _) = ids.iter().find(|(_, parent)| is_root(parent))?;
    id.clone()
}
