//! Detection of a file's format from its content.

use crate::error::TraceError;
use crate::json::{JsonStream, ScanFault, StreamFault, scan_value, skip_space};
use crate::problem::RowProblem;
use crate::rows::document::next_key;
use crate::rows::raw_row::ReadLimits;
use crate::rows::shape::{First, Shape};
use crate::store::Store;
use crate::window::{CHUNK, FileWindow};

/// Result of sniffing an object.
pub(crate) struct DetectedShape {
    /// The shape.
    pub(crate) shape: Shape,
    /// For an object that is the whole file: its first member that is an array of objects.
    pub(crate) rows_in: Option<String>,
}

/// Detects the shape of a file, for a flavor that expects rows in the member `rows_in`.
pub(crate) fn detect(
    store: &Store,
    region: usize,
    rows_in: Option<&str>,
    limits: ReadLimits,
) -> Result<Shape, TraceError> {
    look(store, region, Some(rows_in), limits).map(|sniffed| sniffed.shape)
}

/// Detects the shape of a file without a flavor.
pub(crate) fn sniff_shape(
    store: &Store,
    region: usize,
    limits: ReadLimits,
) -> Result<DetectedShape, TraceError> {
    look(store, region, None, limits)
}

fn look(
    store: &Store,
    region: usize,
    rows_in: Option<Option<&str>>,
    limits: ReadLimits,
) -> Result<DetectedShape, TraceError> {
    let at = after_mark(store, region);
    let stream = || JsonStream::new(FileWindow::new(store, region, at, limits.chunk), limits.row);
    let first = match stream().peek() {
        Ok(first) => first,
        Err(StreamFault::Trace(error)) => return Err(*error),
        Err(StreamFault::Broken { .. }) => None,
    };
    let shape = match first {
        None => Shape::Empty,
        Some(b'[') => Shape::Array { at },
        Some(b'{') => return object(store, region, at, rows_in, limits, stream()),
        Some(_) => Shape::Csv { at },
    };
    Ok(DetectedShape { shape, rows_in: None })
}

/// Returns the start of a file's text: after its byte order mark, if it has one.
fn after_mark(store: &Store, region: usize) -> u64 {
    let mut mark = [0; 3];
    let marked = store.regions[region].len >= 3
        && store.read_exact_at(region, 0, &mut mark).is_ok()
        && mark == [0xef, 0xbb, 0xbf];
    if marked { 3 } else { 0 }
}

/// Detects the shape of the only file of a store from its beginning, whatever follows.
pub(crate) fn first_of(
    store: &Store,
    rows_in: Option<&str>,
    limits: ReadLimits,
) -> Result<First, TraceError> {
    let at = after_mark(store, 0);
    let mut stream = JsonStream::new(FileWindow::new(store, 0, at, limits.chunk), limits.row);
    let first = match stream.peek() {
        Ok(first) => first,
        Err(StreamFault::Trace(error)) => return Err(*error),
        Err(StreamFault::Broken { .. }) => None,
    };
    let (line, start) = (stream.line(), stream.offset());
    let held = store.regions[0].len.saturating_sub(start);
    match first {
        None => return Ok(First::Unknown),
        Some(b'[') => return Ok(First::Shape(Shape::Array { at })),
        Some(b'{') => {}
        Some(_) => return Ok(First::Shape(Shape::Csv { at })),
    }
    match walk(&mut stream, Some(rows_in)) {
        Ok(ObjectScan::Rows(name)) => Ok(First::Shape(Shape::Member { at, name })),
        Ok(ObjectScan::Followed) => Ok(First::Shape(Shape::Lines { at })),
        Err(StreamFault::Trace(error)) => Err(*error),
        Err(StreamFault::Broken {
            problem: RowProblem::TooLong { .. },
            ..
        }) => Ok(First::TooLong { line }),
        // It does not end within the available bytes, and it is not expected to contain rows.
        Err(StreamFault::Broken {
            problem: RowProblem::CutOff,
            ..
        }) if rows_in.is_none() && held > limits.row as u64 => Ok(First::TooLong { line }),
        Ok(ObjectScan::Whole { .. }) | Err(StreamFault::Broken { .. }) => Ok(First::Unknown),
    }
}

/// Classifies the first object of a file: a line, a whole document, or a frame around the rows.
fn object(
    store: &Store,
    region: usize,
    at: u64,
    rows_in: Option<Option<&str>>,
    limits: ReadLimits,
    mut stream: JsonStream<'_>,
) -> Result<DetectedShape, TraceError> {
    let lines = || DetectedShape {
        shape: Shape::Lines { at },
        rows_in: None,
    };
    let whole = |rows_in| DetectedShape {
        shape: Shape::Object { at },
        rows_in,
    };
    match walk(&mut stream, rows_in) {
        Ok(ObjectScan::Rows(name)) => Ok(DetectedShape {
            shape: Shape::Member { at, name },
            rows_in: None,
        }),
        // One object alone on one line may be either; as a line it can be skipped if it is bad.
        Ok(ObjectScan::Whole { rows_in, lines: 1 }) => Ok(DetectedShape { rows_in, ..lines() }),
        Ok(ObjectScan::Whole { rows_in, .. }) => Ok(whole(rows_in)),
        Ok(ObjectScan::Followed) => Ok(lines()),
        Err(StreamFault::Trace(error)) => Err(*error),
        Err(StreamFault::Broken { .. }) if spread_over_lines(store, region, at, limits)? => Ok(whole(None)),
        Err(StreamFault::Broken { .. }) => Ok(lines()),
    }
}

enum ObjectScan {
    /// The member with the rows was found.
    Rows(String),
    /// The object is the whole file.
    Whole { rows_in: Option<String>, lines: u64 },
    /// Something follows the object.
    Followed,
}

fn walk(stream: &mut JsonStream<'_>, wanted: Option<Option<&str>>) -> Result<ObjectScan, StreamFault> {
    stream.peek()?;
    let first_line = stream.line();
    stream.expect(b'{', "expected an object")?;
    let mut array_of_objects = None;
    while let Some(key) = next_key(stream)? {
        let array = stream.peek()? == Some(b'[');
        if array && wanted == Some(Some(&key)) {
            return Ok(ObjectScan::Rows(key));
        }
        if array && wanted.is_none() && array_of_objects.is_none() && opens_with_object(stream)? {
            array_of_objects = Some(key);
        }
        let (_, len) = match stream.value() {
            Ok(value) => value,
            // An array of rows may be longer than any row.
            Err(StreamFault::Broken { .. }) if array_of_objects.is_some() => {
                return Ok(ObjectScan::Whole {
                    rows_in: array_of_objects,
                    lines: 2,
                });
            }
            Err(fault) => return Err(fault),
        };
        stream.step(len);
        if stream.peek()? != Some(b'}') {
            stream.expect(b',', "expected a comma or `}`")?;
        }
    }
    stream.expect(b'}', "expected a comma or `}`")?;
    let lines = stream.line() - first_line + 1;
    match stream.peek()? {
        None => Ok(ObjectScan::Whole {
            rows_in: array_of_objects,
            lines,
        }),
        Some(_) => Ok(ObjectScan::Followed),
    }
}

/// Returns true if the next array begins with an object, as far as it is available.
fn opens_with_object(stream: &JsonStream<'_>) -> Result<bool, StreamFault> {
    let rest = stream.rest();
    let item = skip_space(rest, 1);
    Ok(rest.get(item) == Some(&b'{'))
}

/// Returns true if a broken file looks like one object over several lines rather than like JSON
/// Lines with a bad first line: its first line opens an object without closing it, and the second
/// does not begin another.
fn spread_over_lines(store: &Store, region: usize, at: u64, limits: ReadLimits) -> Result<bool, TraceError> {
    let mut window = FileWindow::new(store, region, at, limits.chunk);
    loop {
        let rest = window.rest();
        let end = memchr::memchr(b'\n', rest);
        if end.unwrap_or(rest.len()) > limits.row {
            return Ok(false);
        }
        let second = end.map(|end| (end, skip_space(rest, end)));
        match second {
            Some((end, second)) if second < rest.len() => {
                let open = scan_value(&rest[..end], skip_space(rest, 0)) == Err(ScanFault::Early);
                return Ok(open && rest[second] != b'{');
            }
            // A long blank may follow.
            _ if rest.len() <= limits.row.saturating_add(CHUNK) && window.more()? => {}
            _ => return Ok(false),
        }
    }
}
