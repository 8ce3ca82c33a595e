//! Rows in a JSON document: the items of an array, the items of an array that is a member of an
//! object, or one object.
//!
//! An error in the outer structure (a syntax error, an overlong row) ends the reading, whatever the
//! treatment of bad rows: the start of the next row cannot be determined.

use std::ops::ControlFlow;

use crate::error::TraceError;
use crate::json::{JsonKind, JsonStream, StreamFault};
use crate::rows::raw_row::{RawRow, RowVisitor};
use crate::store::Store;
use crate::window::FileWindow;

/// Converts a fault of the outer structure into an error.
fn frame(store: &Store, region: usize) -> impl Fn(StreamFault) -> TraceError {
    move |fault| match fault {
        StreamFault::Trace(error) => *error,
        StreamFault::Broken { line, problem } => TraceError::Frame {
            file: store.regions[region].path.clone(),
            line,
            problem,
        },
    }
}

/// The document is an array.
pub(crate) fn each_item(
    store: &Store,
    region: usize,
    window: FileWindow<'_>,
    limit: usize,
    each: &mut impl RowVisitor,
) -> Result<(), TraceError> {
    let mut stream = JsonStream::new(window, limit);
    if items(&mut stream, &frame(store, region), each)?.is_break() {
        return Ok(());
    }
    nothing_more(&mut stream).map_err(frame(store, region))
}

/// The document is an object whose member `name` is an array.
pub(crate) fn each_item_of(
    store: &Store,
    region: usize,
    window: FileWindow<'_>,
    name: &str,
    limit: usize,
    each: &mut impl RowVisitor,
) -> Result<(), TraceError> {
    let frame = frame(store, region);
    let mut stream = JsonStream::new(window, limit);
    stream.expect(b'{', "expected an object").map_err(&frame)?;
    let mut found = false;
    while let Some(key) = next_key(&mut stream).map_err(&frame)? {
        let array = stream.peek().map_err(&frame)? == Some(b'[');
        if array && key == name && !found {
            found = true;
            if items(&mut stream, &frame, each)?.is_break() {
                return Ok(());
            }
        } else {
            let (_, len) = stream.value().map_err(&frame)?;
            stream.step(len);
        }
        after_item(&mut stream, b'}', "expected a comma or `}`").map_err(&frame)?;
    }
    stream.expect(b'}', "expected a comma or `}`").map_err(&frame)?;
    nothing_more(&mut stream).map_err(frame)
}

/// The document is one row.
pub(crate) fn one(
    store: &Store,
    region: usize,
    window: FileWindow<'_>,
    limit: usize,
    each: &mut impl RowVisitor,
) -> Result<(), TraceError> {
    let frame = frame(store, region);
    let mut stream = JsonStream::new(window, limit);
    if row(&mut stream, &frame, each)?.is_break() {
        return Ok(());
    }
    nothing_more(&mut stream).map_err(frame)
}

fn items(
    stream: &mut JsonStream<'_>,
    frame: &impl Fn(StreamFault) -> TraceError,
    each: &mut impl RowVisitor,
) -> Result<ControlFlow<()>, TraceError> {
    stream.expect(b'[', "expected an array").map_err(frame)?;
    while stream.peek().map_err(frame)? != Some(b']') {
        if row(stream, frame, each)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        after_item(stream, b']', "expected a comma or `]`").map_err(frame)?;
    }
    stream.expect(b']', "expected a comma or `]`").map_err(frame)?;
    Ok(ControlFlow::Continue(()))
}

fn row(
    stream: &mut JsonStream<'_>,
    frame: &impl Fn(StreamFault) -> TraceError,
    each: &mut impl RowVisitor,
) -> Result<ControlFlow<()>, TraceError> {
    let (_, len) = stream.value().map_err(frame)?;
    let go_on = each(RawRow {
        offset: stream.offset(),
        line: stream.line(),
        bytes: Ok(&stream.rest()[..len]),
        last: false,
    })?;
    stream.step(len);
    Ok(go_on)
}

/// Consumes the comma after an item; returns false after the last item.
fn after_item(stream: &mut JsonStream<'_>, close: u8, why: &'static str) -> Result<(), StreamFault> {
    if stream.peek()? == Some(close) {
        return Ok(());
    }
    stream.expect(b',', why)?;
    match stream.peek()? {
        Some(byte) if byte == close => Err(stream.not_json(0, "expected a value")),
        _ => Ok(()),
    }
}

/// Reads the next key of an object and its colon; `None` before the closing brace.
pub(crate) fn next_key(stream: &mut JsonStream<'_>) -> Result<Option<String>, StreamFault> {
    match stream.peek()? {
        Some(b'}') => return Ok(None),
        Some(b'"') | None => {}
        Some(_) => return Err(stream.not_json(0, "expected a key in double quotes")),
    }
    let (kind, len) = stream.value()?;
    let key = match kind {
        JsonKind::Text { .. } => text_of(&stream.rest()[..len]).unwrap_or_default(),
        _ => return Err(stream.not_json(0, "expected a key in double quotes")),
    };
    stream.step(len);
    stream.expect(b':', "expected a colon")?;
    Ok(Some(key))
}

/// Returns the text of a JSON string with its quotes; `None` if it is not UTF-8.
pub(crate) fn text_of(json: &[u8]) -> Option<String> {
    serde_json::from_slice(json).ok()
}

/// Calls `each` with the keys of an object that is a document, until it breaks or the object cannot
/// be read.
pub(crate) fn keys_of(mut stream: JsonStream<'_>, each: &mut impl FnMut(String) -> ControlFlow<()>) {
    // If the object is broken or a value is too long, the keys before it count.
    let mut read = || {
        stream.expect(b'{', "expected an object")?;
        while let Some(key) = next_key(&mut stream)? {
            if each(key).is_break() {
                break;
            }
            let (_, len) = stream.value()?;
            stream.step(len);
            after_item(&mut stream, b'}', "expected a comma or `}`")?;
        }
        Ok::<(), StreamFault>(())
    };
    let _ = read();
}

fn nothing_more(stream: &mut JsonStream<'_>) -> Result<(), StreamFault> {
    match stream.peek()? {
        None => Ok(()),
        Some(_) => Err(stream.not_json(0, "unexpected text after the end of the document")),
    }
}
