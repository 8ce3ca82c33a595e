//! Parser-free interpretation of events that differ from an earlier one only in their text.
//!
//! The events of one stream are similar: same members, same order, same ids; only the text changes.
//! When a typed parse finds that an event contains one piece of text and nothing else, the skeleton
//! stores the event's raw bytes and the position of the text in them. A later event with the same
//! bytes before and after its text contains that text and nothing else, too.
//!
//! This is equivalent to parsing for any event (any order of members, duplicate members, texts that
//! look like members):
//!
//! * **Splitting.** The skeleton holds all bytes of the event, from the first after the previous
//!   event to the last of its blank line, and is tried only where the decoder is between two
//!   events. The text has no control character, so no line break; the decoder would split the new
//!   event at the same positions.
//! * **Tokens.** The position of the text is the inside of one JSON string: the typed parse
//!   borrowed the text from there, and the surrounding bytes are its quotes. The new text is the
//!   inside of a JSON string too: no bare quote, no control character, valid UTF-8, valid escapes.
//!   A JSON parser therefore sees the same tokens, except for the value of that one string.
//! * **Meaning.** The effect of an event depends on the values of the members that the endpoint
//!   reads, and it reads this string only as text, which is appended unconditionally. All other
//!   values are equal. The one exception is the empty text (nothing was generated), which goes
//!   through the parser.
//! * **Ignored members.** Members that an endpoint never reads but that change with every event
//!   (`sequence_number`) may be holes as well: a number there may be any JSON number, a string any
//!   JSON string without escapes. The endpoint reports their positions
//!   ([`crate::answer::Answer::ignored`]), which it knows because it borrows them as unparsed JSON.
//!
//! An event that does not fit goes through the parser and becomes the new skeleton. If several
//! consecutive skeletons are replaced without a single fit, the stream has no common pattern and no
//! more are created.

use veeksha_model::ChunkKind;

/// Maximum number of holes in addition to the text.
const MAX_IGNORED: usize = 4;

/// Maximum number of consecutive skeletons without a fit, after which no more are created.
const MAX_USELESS: u8 = 16;

/// Maximum size of a stored event, in bytes: each stream has its own skeleton.
const MAX_RAW_BYTES: usize = 4_096;

/// A memory range, by which the text that a parser borrowed is located in the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BorrowedRange {
    address: usize,
    length: usize,
}

impl BorrowedRange {
    pub(crate) fn of(text: &str) -> Self {
        BorrowedRange {
            address: text.as_ptr().addr(),
            length: text.len(),
        }
    }

    /// Returns the position in `raw`, if the range is inside it.
    fn within(self, raw: &[u8]) -> Option<(usize, usize)> {
        let start = self.address.checked_sub(raw.as_ptr().addr())?;
        let end = start.checked_add(self.length)?;
        (end <= raw.len()).then_some((start, end))
    }
}

/// Result of a typed parse of an event that contains one text and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainEvent {
    pub(crate) kind: ChunkKind,
    pub(crate) text: BorrowedRange,
    pub(crate) ignored: Ignored,
}

/// Members that are not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ignored {
    spans: [Option<BorrowedRange>; MAX_IGNORED],
}

impl Ignored {
    /// Adds a member. Members above the capacity do not become holes.
    pub(crate) fn add(&mut self, json: &str) {
        if let Some(free) = self.spans.iter_mut().find(|span| span.is_none()) {
            *free = Some(BorrowedRange::of(json));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HoleKind {
    /// The inside of the string that is the event's text.
    Text,
    /// A number that is not read.
    Number,
    /// The inside of a string that is not read.
    Opaque,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hole {
    kind: HoleKind,
    start: usize,
    end: usize,
}

/// A parsed event, as the pattern for later ones.
#[derive(Debug, Default)]
pub(crate) struct Skeleton {
    raw: Vec<u8>,
    /// Holes in byte order. Empty without a skeleton.
    holes: Vec<Hole>,
    kind: Option<ChunkKind>,
    /// Bytes of the raw event that are not its data.
    around_data: usize,
    /// True if it has fitted an event.
    of_use: bool,
    useless: u8,
    /// Total number of events that fitted.
    fitted: u64,
    /// Disables learning, for tests of equivalence.
    off: bool,
}

/// An event that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fit<'a> {
    pub(crate) kind: ChunkKind,
    /// The inside of the JSON string: valid UTF-8.
    pub(crate) text: &'a [u8],
    /// True if it has escapes.
    pub(crate) escaped: bool,
    /// Bytes of the event's data.
    pub(crate) data_bytes: usize,
    /// Bytes of the event, including its syntax.
    pub(crate) raw_bytes: usize,
}

impl Skeleton {
    pub(crate) fn fitted(&self) -> u64 {
        self.fitted
    }

    pub(crate) fn turn_off(&mut self) {
        self.off = true;
        self.holes.clear();
    }

    /// Returns true if parsed events are stored as skeletons.
    pub(crate) fn learns(&self) -> bool {
        !self.off && self.useless < MAX_USELESS
    }

    /// Stores an event. `raw` is the whole event and `data_bytes` the size of the part that was
    /// parsed.
    pub(crate) fn learn(&mut self, raw: &[u8], data_bytes: usize, plain: &PlainEvent) {
        if raw.len() > MAX_RAW_BYTES || data_bytes > raw.len() {
            return;
        }
        let Some((start, end)) = plain.text.within(raw) else {
            return;
        };
        if !is_quoted(raw, start, end) {
            return;
        }
        self.useless = if self.of_use || self.holes.is_empty() {
            0
        } else {
            self.useless + 1
        };
        self.of_use = false;
        self.holes.clear();
        self.holes.push(Hole {
            kind: HoleKind::Text,
            start,
            end,
        });
        let ignored = plain.ignored.spans.iter().flatten();
        self.holes
            .extend(ignored.filter_map(|span| ignored_hole(raw, *span)));
        self.holes.sort_unstable_by_key(|hole| hole.start);
        self.raw.clear();
        self.raw.extend_from_slice(raw);
        self.kind = Some(plain.kind);
        self.around_data = raw.len() - data_bytes;
    }

    /// Returns the event at the start of the input, if it fits.
    #[inline]
    pub(crate) fn fit<'a>(&mut self, input: &'a [u8]) -> Option<Fit<'a>> {
        let kind = self.kind?;
        let mut rest = input;
        let mut from = 0;
        let mut text = Inside::default();
        let mut start = 0;
        for hole in &self.holes {
            rest = rest.strip_prefix(self.raw.get(from..hole.start)?)?;
            let length = match hole.kind {
                HoleKind::Text => {
                    text = inside(rest)?;
                    start = input.len() - rest.len();
                    text.length
                }
                HoleKind::Number => number_length(rest)?,
                HoleKind::Opaque => {
                    let opaque = inside(rest)?;
                    if opaque.escaped || !opaque.ascii {
                        return None;
                    }
                    opaque.length
                }
            };
            rest = rest.get(length..)?;
            from = hole.end;
        }
        let behind = rest.strip_prefix(self.raw.get(from..)?)?;
        let raw_bytes = input.len() - behind.len();
        let Inside {
            length,
            escaped,
            ascii,
        } = text;
        let text = input.get(start..start + length)?;
        if text.is_empty() || (!ascii && std::str::from_utf8(text).is_err()) {
            return None;
        }
        self.of_use = true;
        self.fitted += 1;
        Some(Fit {
            kind,
            text,
            escaped,
            data_bytes: raw_bytes - self.around_data,
            raw_bytes,
        })
    }
}

/// Returns true if the range is the inside of a string.
fn is_quoted(raw: &[u8], start: usize, end: usize) -> bool {
    start > 0 && raw.get(start - 1) == Some(&b'"') && raw.get(end) == Some(&b'"')
}

/// Returns the hole of a member that is not read; `None`: it is neither a number nor a string and
/// remains fixed.
fn ignored_hole(raw: &[u8], span: BorrowedRange) -> Option<Hole> {
    let (start, end) = span.within(raw)?;
    let json = raw.get(start..end)?;
    if number_length(json) == Some(json.len()) {
        return Some(Hole {
            kind: HoleKind::Number,
            start,
            end,
        });
    }
    (json.len() >= 2 && is_quoted(raw, start + 1, end - 1)).then_some(Hole {
        kind: HoleKind::Opaque,
        start: start + 1,
        end: end - 1,
    })
}

/// The inside of a JSON string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Inside {
    /// Bytes up to the closing quote.
    length: usize,
    /// True if there are escapes.
    escaped: bool,
    /// True if all bytes are ASCII.
    ascii: bool,
}

/// Class of each byte inside a JSON string: 0 text, 1 quote, 2 backslash, 3 control character.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut control = 0;
    while control < 0x20 {
        classes[control] = 3;
        control += 1;
    }
    classes[b'"' as usize] = 1;
    classes[b'\\' as usize] = 2;
    classes
};

/// Measures the inside of the string that continues here; `None`: it does not end, or a control
/// character comes first.
#[inline]
fn inside(bytes: &[u8]) -> Option<Inside> {
    let mut escaped = false;
    let mut all = 0;
    let mut length = 0;
    loop {
        let byte = *bytes.get(length)?;
        match CLASSES[usize::from(byte)] {
            0 => {
                all |= byte;
                length += 1;
            }
            1 => {
                return Some(Inside {
                    length,
                    escaped,
                    ascii: all < 0x80,
                });
            }
            2 => {
                escaped = true;
                // Escapes are validated when the text is read; here an escaped quote only must not
                // end the string.
                all |= *bytes.get(length + 1)?;
                length += 2;
            }
            _ => return None,
        }
    }
}

/// Returns the length of the JSON number at the start (RFC 8259, section 6).
fn number_length(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    at += match bytes.get(at)? {
        b'0' => 1,
        b'1'..=b'9' => digits(at),
        _ => return None,
    };
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent == 0 {
            return None;
        }
        at += 1 + sign + exponent;
    }
    Some(at)
}

/// Appends the value of a JSON string, given its inside. Returns false and appends nothing if an
/// escape is invalid.
pub(crate) fn unescape(out: &mut Vec<u8>, inside: &[u8]) -> bool {
    let start = out.len();
    let whole = append_unescaped(out, inside);
    if whole.is_none() {
        out.truncate(start);
    }
    whole.is_some()
}

fn append_unescaped(out: &mut Vec<u8>, inside: &[u8]) -> Option<()> {
    let mut rest = inside;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        out.extend_from_slice(rest.get(..at)?);
        let byte = match *rest.get(at + 1)? {
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'b' => 0x8,
            b'f' => 0xC,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let (c, behind) = unicode(rest.get(at + 2..)?)?;
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = behind;
                continue;
            }
            _ => return None,
        };
        out.push(byte);
        rest = rest.get(at + 2..)?;
    }
    out.extend_from_slice(rest);
    Some(())
}

/// Returns the character after `\u` and the rest. A surrogate requires its other half.
fn unicode(digits: &[u8]) -> Option<(char, &[u8])> {
    let (first, rest) = hex4(digits)?;
    if !(0xD800..0xDC00).contains(&first) {
        return Some((char::from_u32(first)?, rest));
    }
    let (second, rest) = hex4(rest.strip_prefix(b"\\u")?)?;
    if !(0xDC00..0xE000).contains(&second) {
        return None;
    }
    let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    Some((char::from_u32(code)?, rest))
}

fn hex4(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_at_checked(4)?;
    let value = digits.iter().try_fold(0, |value, digit| {
        Some(value << 4 | (*digit as char).to_digit(16)?)
    })?;
    Some((value, rest))
}
