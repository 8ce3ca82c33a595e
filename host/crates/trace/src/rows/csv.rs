//! CSV by RFC 4180: a header, cells between commas, quotes around cells with commas, quotes and
//! line ends.
//!
//! Most lines of traces have no quote; they are split here, at the speed of memory. Records with
//! quotes go through `csv-core`, which implements the other rules.

use std::ops::ControlFlow;

use csv_core::ReadRecordResult;

use crate::error::TraceError;
use crate::problem::RowProblem;
use crate::rows::lines::{blank, skip_line};
use crate::rows::raw_row::{RawRow, ReadLimits, RowVisitor};
use crate::store::Store;
use crate::window::FileWindow;

/// Calls `each` with the records after the header.
pub(crate) fn each(
    window: FileWindow<'_>,
    limit: usize,
    each: &mut impl RowVisitor,
) -> Result<(), TraceError> {
    let mut header = true;
    each_record(window, limit, &mut |row: RawRow<'_>| {
        if std::mem::take(&mut header) {
            return Ok(ControlFlow::Continue(()));
        }
        each(row)
    })
}

/// Returns the cells of the header, which is the first record.
pub(crate) fn header_of(
    store: &Store,
    file: usize,
    at: u64,
    limits: ReadLimits,
) -> Result<Result<Vec<String>, RowProblem>, TraceError> {
    let mut header = None;
    let mut record = CsvRecord::new();
    let window = FileWindow::new(store, file, at, limits.chunk);
    each_record(window, limits.row, &mut |row: RawRow<'_>| {
        header = Some(row.bytes.and_then(|bytes| {
            split(bytes, &mut record);
            let text = record.unquoted().unwrap_or(bytes);
            record
                .cells()
                .map(|(start, end)| cell_text(text, start, end))
                .collect()
        }));
        Ok(ControlFlow::Break(()))
    })?;
    Ok(header.unwrap_or(Ok(Vec::new())))
}

fn cell_text(text: &[u8], start: usize, end: usize) -> Result<String, RowProblem> {
    match std::str::from_utf8(&text[start..end]) {
        Ok(cell) => Ok(cell.to_owned()),
        Err(error) => Err(RowProblem::NotUtf8 {
            at: start + error.valid_up_to(),
        }),
    }
}

/// Calls `each` with all records, including the header.
pub(crate) fn each_record(
    mut window: FileWindow<'_>,
    limit: usize,
    each: &mut impl RowVisitor,
) -> Result<(), TraceError> {
    let mut reader = csv_core::Reader::new();
    let mut line = 1;
    loop {
        let end = window.line_end(limit)?;
        let rest = window.rest();
        let text = &rest[..end.unwrap_or(rest.len())];
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let row = |bytes, last| RawRow {
            offset: window.offset(),
            line,
            bytes,
            last,
        };
        let go_on = if text.len() > limit || (end.is_none() && !window.ended()) {
            each(row(Err(RowProblem::TooLong { limit }), false))?
        } else if blank(text) {
            ControlFlow::Continue(())
        } else if memchr::memchr2(b'"', b'\r', text).is_none() {
            each(row(Ok(text), end.is_none()))?
        } else {
            let (offset, quoted) = (window.offset(), quoted_record(&mut window, &mut reader, limit)?);
            let bytes = quoted.map(|len| &window.rest()[..len]);
            let held = bytes.as_ref().map_or(0, |record| record.len());
            let lines = bytes
                .as_ref()
                .map_or(0, |record| memchr::memchr_iter(b'\n', record).count());
            let last = window.ended() && held == window.rest().len();
            let go_on = each(RawRow {
                offset,
                line,
                bytes,
                last,
            })?;
            if held > 0 {
                if go_on.is_break() {
                    return Ok(());
                }
                line += lines.max(1) as u64;
                window.consume(held);
                continue;
            }
            go_on
        };
        if go_on.is_break() {
            return Ok(());
        }
        // Continue at the next line even after a record that does not end: then only its first line
        // is lost.
        match end {
            Some(end) => window.consume(end + 1),
            None if skip_line(&mut window)? => {}
            None => return Ok(()),
        }
        line += 1;
    }
}

/// Returns the length of the record at the start of the window, with its line end.
fn quoted_record(
    window: &mut FileWindow<'_>,
    reader: &mut csv_core::Reader,
    limit: usize,
) -> Result<Result<usize, RowProblem>, TraceError> {
    reader.reset();
    let mut len = 0;
    let mut cells = [0; 4096];
    let mut ends = [0; 64];
    loop {
        let input = &window.rest()[len..];
        let at_end = input.is_empty();
        if at_end && window.more()? {
            continue;
        }
        let input = &window.rest()[len..];
        let (result, read, _, _) = reader.read_record(input, &mut cells, &mut ends);
        len += read;
        if len > limit.saturating_add(2) {
            return Ok(Err(RowProblem::TooLong { limit }));
        }
        match result {
            ReadRecordResult::InputEmpty
            | ReadRecordResult::OutputFull
            | ReadRecordResult::OutputEndsFull => {}
            ReadRecordResult::Record | ReadRecordResult::End => break,
        }
    }
    let ended_by_file = window.ended() && len == window.rest().len() && !window.rest().ends_with(b"\n");
    let quotes = memchr::memchr_iter(b'"', &window.rest()[..len]).count();
    if window.ended() && len == window.rest().len() && quotes % 2 == 1 {
        return Ok(Err(RowProblem::OpenQuote));
    }
    if !ended_by_file && window.rest()[..len].ends_with(b"\r") {
        if len == window.rest().len() {
            window.more()?;
        }
        if window.rest().get(len) == Some(&b'\n') {
            len += 1;
        }
    }
    Ok(Ok(len))
}

/// The cells of one record.
#[derive(Debug)]
pub(crate) struct CsvRecord {
    reader: csv_core::Reader,
    /// End of each cell: in the record itself if it has no quotes, else in `text`.
    ends: Vec<usize>,
    text: Vec<u8>,
    plain: bool,
}

/// Splits a record into its cells.
pub(crate) fn split(record: &[u8], into: &mut CsvRecord) {
    let end = record.strip_suffix(b"\n").unwrap_or(record);
    let end = end.strip_suffix(b"\r").unwrap_or(end);
    into.ends.clear();
    into.plain = true;
    for (at, byte) in end.iter().enumerate() {
        match byte {
            b',' => into.ends.push(at),
            b'"' | b'\r' => {
                into.plain = false;
                into.ends.clear();
                return unquote(record, into);
            }
            _ => {}
        }
    }
    into.ends.push(end.len());
}

fn unquote(record: &[u8], into: &mut CsvRecord) {
    into.reader.reset();
    // A cell is never longer than its record.
    into.text.resize(record.len().max(1), 0);
    let (mut read, mut written) = (0, 0);
    let mut ends = [0; 64];
    loop {
        let (result, taken, out, cells) =
            into.reader
                .read_record(&record[read..], &mut into.text[written..], &mut ends);
        read += taken;
        written += out;
        into.ends.extend_from_slice(&ends[..cells]);
        match result {
            ReadRecordResult::OutputFull => {
                let more = into.text.len() + 64;
                into.text.resize(more, 0);
            }
            ReadRecordResult::InputEmpty | ReadRecordResult::OutputEndsFull => {}
            ReadRecordResult::Record | ReadRecordResult::End => break,
        }
    }
    into.text.truncate(written);
}

impl CsvRecord {
    /// Creates an empty record.
    pub(crate) fn new() -> Self {
        CsvRecord {
            reader: csv_core::Reader::new(),
            ends: Vec::new(),
            text: Vec::new(),
            plain: true,
        }
    }

    /// Returns the text that contains the cells if it is not the record itself.
    pub(crate) fn unquoted(&self) -> Option<&[u8]> {
        (!self.plain).then_some(self.text.as_slice())
    }

    /// Returns the bounds of each cell in that text.
    pub(crate) fn cells(&self) -> impl ExactSizeIterator<Item = (usize, usize)> + '_ {
        // A plain record has a comma between two cells.
        let gap = usize::from(self.plain);
        (0..self.ends.len()).map(move |i| {
            let start = if i == 0 { 0 } else { self.ends[i - 1] + gap };
            (start, self.ends[i])
        })
    }
}
