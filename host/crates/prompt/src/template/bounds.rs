//! Limits of a rendering. Templates come with models, and a hostile one must neither exhaust memory
//! nor run forever.
//!
//! * Steps: [`FUEL`].
//! * The text: [`Capped`], and for text captured inside the template the sum of all that is
//!   written.
//! * Values: every value that is assigned to a name is measured by [`bounded`] (inserted by
//!   `guards`), so a text cannot double repeatedly; the two filters that multiply lengths,
//!   `replace` and `join`, are measured before they run.
//!
//! Not limited: a single expression before it is assigned (it is as long as the template's author
//! wrote it), and the duration of one step on large texts. Other filters, and a captured raw block,
//! can make a large text before it is measured.

use std::cell::Cell;
use std::fmt;

use minijinja::value::{StringInput, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

/// Steps of one rendering: two thousand for each message of a conversation of ten thousand. About a
/// second.
pub(super) const FUEL: u64 = 20_000_000;
/// Bytes that a template may add to its messages, in a text or a value.
const ADDED: usize = 64 << 20;
/// Number of times that the messages may occur in a text or value, in addition.
const COPIES: usize = 2;
/// Bytes that an element of a list or mapping counts in addition to its text.
const ELEMENT: usize = 16;
/// Maximum nesting of lists.
const DEPTH: usize = 64;

thread_local! {
    /// The limit of this thread's rendering, and the remaining bytes that it may write.
    static LIMIT: Cell<usize> = const { Cell::new(ADDED) };
    static LEFT: Cell<usize> = const { Cell::new(ADDED) };
}

/// Sets and returns the limit of the rendering that this thread begins, for messages of `messages`
/// bytes.
pub(super) fn begin(messages: usize) -> usize {
    let limit = messages.saturating_mul(COPIES).saturating_add(ADDED);
    LIMIT.set(limit);
    // Captured text is written at least twice.
    LEFT.set(limit.saturating_mul(4));
    limit
}

fn too_large(what: &str) -> Error {
    Error::new(
        ErrorKind::InvalidOperation,
        format!("{what} grows beyond {} MiB", LIMIT.get() >> 20),
    )
}

/// A text with a limited length.
#[derive(Debug)]
pub(super) struct Capped {
    pub(super) text: String,
    limit: usize,
    pub(super) full: bool,
}

impl Capped {
    pub(super) fn new(limit: usize) -> Self {
        Capped {
            text: String::new(),
            limit,
            full: false,
        }
    }

    pub(super) fn error(&self) -> Error {
        too_large("its text")
    }
}

impl fmt::Write for Capped {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() > self.limit - self.text.len() {
            self.full = true;
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}

impl std::io::Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(std::io::Error::other)?;
        fmt::Write::write_str(self, text).map_err(|_| std::io::Error::other(self.error()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns a value as text, unless it is too large.
pub(super) fn limited(value: &Value) -> Result<Capped, Error> {
    use fmt::Write as _;
    bounded(value.clone())?;
    let mut text = Capped::new(LIMIT.get());
    write!(text, "{value}").map_err(|_| text.error())?;
    Ok(text)
}

/// Counts written bytes, independent of their destination.
pub(super) fn written(bytes: usize) -> Result<(), Error> {
    let left = LEFT
        .get()
        .checked_sub(bytes)
        .ok_or_else(|| too_large("its text"))?;
    LEFT.set(left);
    Ok(())
}

/// The function that counts the template's literal text.
pub(super) fn count(bytes: usize) -> Result<&'static str, Error> {
    written(bytes).map(|()| "")
}

/// The filter around every assigned value: returns the value, unless it is too large.
pub(super) fn bounded(value: Value) -> Result<Value, Error> {
    let mut left = LIMIT.get();
    if fits(&value, &mut left, 0) {
        Ok(value)
    } else {
        Err(too_large("a value"))
    }
}

fn fits(value: &Value, left: &mut usize, depth: usize) -> bool {
    let own = ELEMENT + value.as_str().map_or(0, str::len);
    let Some(rest) = left.checked_sub(own).filter(|_| depth < DEPTH) else {
        return false;
    };
    *left = rest;
    let nested = |value: &Value, left: &mut usize| fits(value, left, depth + 1);
    match value.kind() {
        ValueKind::Seq => value
            .try_iter()
            .is_ok_and(|mut items| items.all(|item| nested(&item, left))),
        // Lazy: its elements do not exist yet. At most its length is known.
        ValueKind::Iterable => {
            let elements = value.len().unwrap_or(0).saturating_mul(ELEMENT);
            elements <= *left
        }
        ValueKind::Map => value.try_iter().is_ok_and(|mut keys| {
            keys.all(|key| nested(&key, left) && value.get_item(&key).is_ok_and(|item| nested(&item, left)))
        }),
        _ => true,
    }
}

/// Measures the result of `replace`.
fn replaces(text: &str, from: &str, to: &str) -> Result<(), Error> {
    let added = text.matches(from).count().saturating_mul(to.len());
    if added.saturating_add(text.len()) > LIMIT.get() {
        Err(too_large("a value"))
    } else {
        Ok(())
    }
}

/// Measures the result of `join`.
fn joins(items: &Value, joiner: usize) -> Result<(), Error> {
    let mut total = 0usize;
    for item in items.try_iter()? {
        total = total.saturating_add(item.as_str().map_or(ELEMENT, str::len) + joiner);
        if total > LIMIT.get() {
            return Err(too_large("a value"));
        }
    }
    Ok(())
}

/// The filter `replace`.
pub(super) fn replace(
    state: &State,
    text: StringInput<'_>,
    from: StringInput<'_>,
    to: StringInput<'_>,
) -> Result<Value, Error> {
    replaces(text.as_str(), from.as_str(), to.as_str())?;
    minijinja::filters::replace(state, text, from, to)
}

/// The filter `join`.
pub(super) fn join(state: &State, items: &Value, joiner: Option<StringInput<'_>>) -> Result<Value, Error> {
    if items.as_str().is_none() {
        joins(items, joiner.as_ref().map_or(0, |joiner| joiner.as_str().len()))?;
    }
    minijinja::filters::join(state, items, joiner)
}

/// Python's methods, measured like the filters.
pub(super) fn method(state: &State, value: &Value, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    match (name, arguments) {
        ("replace", [from, to, ..]) => replaces(&text(value), &text(from), &text(to))?,
        ("join", [items]) => joins(items, text(value).len())?,
        _ => {}
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, name, arguments)
}
