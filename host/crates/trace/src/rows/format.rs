//! What a file is, by what stands in it.

use crate::error::TraceError;
use crate::json::{Fault, Stream, StreamFault, scan_value, skip_space};
use crate::problem::RowProblem;
use crate::rows::Limits;
use crate::rows::beginning::First;
use crate::rows::document::next_key;
use crate::store::Store;
use crate::window::{CHUNK, Window};

/// How the rows of a file stand in it. `at` is where it begins, after a byte order mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// No rows.
    Empty,
    /// JSON Lines.
    Lines { at: u64 },
    /// One JSON array.
    Array { at: u64 },
    /// One JSON object, whose member is the array of rows.
    Member { at: u64, name: String },
    /// One JSON object, over several lines, which is one row.
    Object { at: u64 },
    /// A header and records.
    Csv { at: u64 },
}

/// What a look at an object finds.
pub(crate) struct Sniffed {
    /// The shape.
    pub(crate) shape: Shape,
    /// Of an object that is the whole file: the first member that is an array of objects.
    pub(crate) rows_in: Option<String>,
}

/// The shape of a file, for a flavor that looks for rows in the member `rows_in`.
pub(crate) fn detect(
    store: &Store,
    region: usize,
    rows_in: Option<&str>,
    limits: Limits,
) -> Result<Shape, TraceError> {
    look(store, region, Some(rows_in), limits).map(|sniffed| sniffed.shape)
}

/// The shape of a file, for nobody in particular.
pub(crate) fn sniff_shape(store: &Store, region: usize, limits: Limits) -> Result<Sniffed, TraceError> {
    look(store, region, None, limits)
}

fn look(
    store: &Store,
    region: usize,
    rows_in: Option<Option<&str>>,
    limits: Limits,
) -> Result<Sniffed, TraceError> {
    let at = after_mark(store, region);
    let stream = || Stream::new(Window::new(store, region, at, limits.chunk), limits.row);
    let first = match stream().peek() {
        Ok(first) => first,
        Err(StreamFault::Trace(error)) => return Err(error),
        Err(StreamFault::Broken { .. }) => None,
    };
    let shape = match first {
        None => Shape::Empty,
        Some(b'[') => Shape::Array { at },
        Some(b'{') => return object(store, region, at, rows_in, limits, stream()),
        Some(_) => Shape::Csv { at },
    };
    Ok(Sniffed { shape, rows_in: None })
}

/// Where the text of a file begins: after its byte order mark, if it has one.
fn after_mark(store: &Store, region: usize) -> u64 {
    let mut mark = [0; 3];
    let marked = store.regions[region].len >= 3
        && store.read_exact_at(region, 0, &mut mark).is_ok()
        && mark == [0xef, 0xbb, 0xbf];
    if marked { 3 } else { 0 }
}

/// What the beginning of the only file of a store says of its shape, whatever follows.
pub(crate) fn first_of(store: &Store, rows_in: Option<&str>, limits: Limits) -> Result<First, TraceError> {
    let at = after_mark(store, 0);
    let mut stream = Stream::new(Window::new(store, 0, at, limits.chunk), limits.row);
    let first = match stream.peek() {
        Ok(first) => first,
        Err(StreamFault::Trace(error)) => return Err(error),
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
        Ok(Walk::Found(name)) => Ok(First::Shape(Shape::Member { at, name })),
        Ok(Walk::Followed) => Ok(First::Shape(Shape::Lines { at })),
        Err(StreamFault::Trace(error)) => Err(error),
        Err(StreamFault::Broken {
            problem: RowProblem::TooLong { .. },
            ..
        }) => Ok(First::TooLong { line }),
        // It does not end within what is held, and no rows are looked for in it.
        Err(StreamFault::Broken {
            problem: RowProblem::CutOff,
            ..
        }) if rows_in.is_none() && held > limits.row as u64 => Ok(First::TooLong { line }),
        Ok(Walk::Whole { .. }) | Err(StreamFault::Broken { .. }) => Ok(First::Unknown),
    }
}

/// What the first object of a file is: a line, a whole document, or a frame around the rows.
fn object(
    store: &Store,
    region: usize,
    at: u64,
    rows_in: Option<Option<&str>>,
    limits: Limits,
    mut stream: Stream<'_>,
) -> Result<Sniffed, TraceError> {
    let lines = || Sniffed {
        shape: Shape::Lines { at },
        rows_in: None,
    };
    let whole = |rows_in| Sniffed {
        shape: Shape::Object { at },
        rows_in,
    };
    match walk(&mut stream, rows_in) {
        Ok(Walk::Found(name)) => Ok(Sniffed {
            shape: Shape::Member { at, name },
            rows_in: None,
        }),
        // One object alone on one line may be either; as a line it can be skipped when it is bad.
        Ok(Walk::Whole { rows_in, lines: 1 }) => Ok(Sniffed { rows_in, ..lines() }),
        Ok(Walk::Whole { rows_in, .. }) => Ok(whole(rows_in)),
        Ok(Walk::Followed) => Ok(lines()),
        Err(StreamFault::Trace(error)) => Err(error),
        Err(StreamFault::Broken { .. }) if spread_over_lines(store, region, at, limits)? => Ok(whole(None)),
        Err(StreamFault::Broken { .. }) => Ok(lines()),
    }
}

enum Walk {
    /// The member with the rows was found.
    Found(String),
    /// The object is all there is.
    Whole { rows_in: Option<String>, lines: u64 },
    /// Something stands behind the object.
    Followed,
}

fn walk(stream: &mut Stream<'_>, wanted: Option<Option<&str>>) -> Result<Walk, StreamFault> {
    stream.peek()?;
    let first_line = stream.line();
    stream.expect(b'{', "an object is missing")?;
    let mut array_of_objects = None;
    while let Some(key) = next_key(stream)? {
        let array = stream.peek()? == Some(b'[');
        if array && wanted == Some(Some(&key)) {
            return Ok(Walk::Found(key));
        }
        if array && wanted.is_none() && array_of_objects.is_none() && opens_with_object(stream)? {
            array_of_objects = Some(key);
        }
        let (_, len) = match stream.value() {
            Ok(value) => value,
            // An array of rows may be longer than any row.
            Err(StreamFault::Broken { .. }) if array_of_objects.is_some() => {
                return Ok(Walk::Whole {
                    rows_in: array_of_objects,
                    lines: 2,
                });
            }
            Err(fault) => return Err(fault),
        };
        stream.step(len);
        if stream.peek()? != Some(b'}') {
            stream.expect(b',', "a comma or `}` is missing")?;
        }
    }
    stream.expect(b'}', "a comma or `}` is missing")?;
    let lines = stream.line() - first_line + 1;
    match stream.peek()? {
        None => Ok(Walk::Whole {
            rows_in: array_of_objects,
            lines,
        }),
        Some(_) => Ok(Walk::Followed),
    }
}

/// Whether the array that comes next begins with an object, as far as can be seen.
fn opens_with_object(stream: &Stream<'_>) -> Result<bool, StreamFault> {
    let rest = stream.rest();
    let item = skip_space(rest, 1);
    Ok(rest.get(item) == Some(&b'{'))
}

/// Whether a broken file looks like one object over several lines rather than like JSON Lines with a bad first line: its first
/// line opens an object and does not close it, and the second does not begin another.
fn spread_over_lines(store: &Store, region: usize, at: u64, limits: Limits) -> Result<bool, TraceError> {
    let mut window = Window::new(store, region, at, limits.chunk);
    loop {
        let rest = window.rest();
        let end = memchr::memchr(b'\n', rest);
        if end.unwrap_or(rest.len()) > limits.row {
            return Ok(false);
        }
        let second = end.map(|end| (end, skip_space(rest, end)));
        match second {
            Some((end, second)) if second < rest.len() => {
                let open = scan_value(&rest[..end], skip_space(rest, 0)) == Err(Fault::Early);
                return Ok(open && rest[second] != b'{');
            }
            // What follows may be a long blank.
            _ if rest.len() <= limits.row.saturating_add(CHUNK) && window.more()? => {}
            _ => return Ok(false),
        }
    }
}
