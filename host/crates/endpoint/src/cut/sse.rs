//! Splitting of a byte stream into server-sent events (WHATWG HTML, section 9.2.6), independent of
//! read boundaries.
//!
//! Pure: bytes in, events out. Lines end with LF, CRLF or CR; a byte order mark at the start is
//! dropped; the lines of one event's data are joined with LF; one space after the colon belongs to
//! the syntax. `id`, `retry` and unknown fields are ignored, and the only relevant value of `event`
//! is `error`. There are two deviations from the standard for compatibility with servers: a line
//! `error: ...` (older llama.cpp) counts as data of an event with that name, and
//! [`SseDecoder::finish`] returns an event that lacks its final blank line.
//!
//! An event whose single data line is entirely in the input is returned as a slice of the input,
//! without a copy.

use super::item::{EventTooLarge, Item, MAX_EVENT_BYTES};

/// Decoder state between two pieces of input.
#[derive(Debug)]
pub struct SseDecoder {
    limit: usize,
    /// An incomplete line.
    line: Vec<u8>,
    /// Data lines of the current event, joined with LF.
    data: Vec<u8>,
    /// True if the current event has a data line, which may be empty.
    has_data: bool,
    /// True if the current event is named `error`.
    is_error: bool,
    /// True if the last returned item is in `line` or `data` and can be cleared.
    handed_out: bool,
    /// True if the last byte was a CR: a following LF belongs to it.
    after_cr: bool,
    /// True until the first line ends: the stream may begin with a byte order mark.
    at_start: bool,
}

/// Effect of the end of a line.
enum LineEffect {
    Nothing,
    Comment,
    Event { error: bool },
}

impl Default for SseDecoder {
    fn default() -> Self {
        SseDecoder::with_limit(MAX_EVENT_BYTES)
    }
}

impl SseDecoder {
    /// Creates a decoder that refuses events above `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        SseDecoder {
            limit,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            is_error: false,
            handed_out: false,
            after_cr: false,
            at_start: true,
        }
    }

    /// Returns true if no earlier input affects later input: the next byte begins an event.
    pub fn is_between_events(&self) -> bool {
        (self.line.is_empty() || self.handed_out)
            && !self.has_data
            && !self.is_error
            && !self.after_cr
            && !self.at_start
    }

    /// Returns true if `input` begins an event and cannot begin with a byte order mark.
    pub(crate) fn begins_event(&self, input: &[u8]) -> bool {
        let at_start =
            self.at_start && self.line.is_empty() && !self.has_data && !self.is_error && !self.after_cr;
        self.is_between_events() || (at_start && input.first() != Some(&0xEF))
    }

    /// Consumes input up to the end of the next item and returns the item; `None`: the input is
    /// used up.
    ///
    /// # Errors
    /// If an event is larger than the limit.
    pub fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Option<Item<'s>>, EventTooLarge> {
        if std::mem::take(&mut self.handed_out) {
            self.line.clear();
            // A comment may occur between two data lines.
            if !self.has_data {
                self.data.clear();
            }
        }
        if self.after_cr && !input.is_empty() {
            self.after_cr = false;
            *input = input.strip_prefix(b"\n").unwrap_or(input);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', input) {
            let (line, rest) = input.split_at(end);
            if self.line.is_empty() {
                self.check(line.len())?;
                if let Some((value, behind)) = self.whole_event(line, rest) {
                    *input = behind;
                    self.at_start = false;
                    return Ok(Some(if std::mem::take(&mut self.is_error) {
                        Item::Error(value)
                    } else {
                        Item::Data(value)
                    }));
                }
                *input = self.behind_line_end(rest);
                match self.line_ended(line)? {
                    LineEffect::Nothing => {}
                    LineEffect::Comment => {
                        return Ok(Some(Item::Comment(
                            without_bom(line).get(1..).unwrap_or_default(),
                        )));
                    }
                    LineEffect::Event { error } => return Ok(Some(self.hand_out(error))),
                }
            } else {
                self.check(self.line.len() + line.len())?;
                self.line.extend_from_slice(line);
                *input = self.behind_line_end(rest);
                let mut whole = std::mem::take(&mut self.line);
                let ended = self.line_ended(&whole);
                if !matches!(ended, Ok(LineEffect::Comment)) {
                    whole.clear();
                }
                self.line = whole;
                match ended? {
                    LineEffect::Nothing => {}
                    LineEffect::Comment => {
                        self.handed_out = true;
                        return Ok(Some(Item::Comment(
                            without_bom(&self.line).get(1..).unwrap_or_default(),
                        )));
                    }
                    LineEffect::Event { error } => return Ok(Some(self.hand_out(error))),
                }
            }
        }
        self.check(self.line.len() + input.len())?;
        self.line.extend_from_slice(input);
        *input = &[];
        Ok(None)
    }

    /// Ends the stream: like [`SseDecoder::next`] for the line ends that would complete the
    /// remaining input. The caller repeats the call until it returns `None`.
    ///
    /// # Errors
    /// If an event is larger than the limit.
    pub fn finish(&mut self) -> Result<Option<Item<'_>>, EventTooLarge> {
        // A comment is returned at the end of its line, so the data before it needs a second call.
        self.next(&mut &b"\n\n"[..])
    }

    /// Returns the data of an event that ends with this line, if the line is all its data. Nothing
    /// is buffered in that case.
    fn whole_event<'a>(&self, line: &'a [u8], rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        if self.has_data {
            return None;
        }
        // A line with a byte order mark has another prefix.
        let value = line.strip_prefix(b"data:")?;
        let behind = match rest {
            [b'\n', b'\n', behind @ ..] => behind,
            [b'\r', b'\n', b'\r', b'\n', behind @ ..] => behind,
            _ => return None,
        };
        Some((value.strip_prefix(b" ").unwrap_or(value), behind))
    }

    fn behind_line_end<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        match rest {
            [b'\r', b'\n', rest @ ..] => rest,
            [b'\r'] => {
                self.after_cr = true;
                &[]
            }
            [_, rest @ ..] => rest,
            [] => &[],
        }
    }

    fn hand_out(&mut self, error: bool) -> Item<'_> {
        self.handed_out = true;
        if error {
            Item::Error(&self.data)
        } else {
            Item::Data(&self.data)
        }
    }

    fn check(&self, size: usize) -> Result<(), EventTooLarge> {
        if size > self.limit {
            Err(EventTooLarge { limit: self.limit })
        } else {
            Ok(())
        }
    }

    fn line_ended(&mut self, line: &[u8]) -> Result<LineEffect, EventTooLarge> {
        let line = if std::mem::take(&mut self.at_start) {
            without_bom(line)
        } else {
            line
        };
        if line.is_empty() {
            let error = std::mem::take(&mut self.is_error);
            return Ok(if std::mem::take(&mut self.has_data) {
                LineEffect::Event { error }
            } else {
                LineEffect::Nothing
            });
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(0) => return Ok(LineEffect::Comment),
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => {
                self.is_error = value == b"error";
                return Ok(LineEffect::Nothing);
            }
            b"error" => self.is_error = true,
            b"data" => {}
            _ => return Ok(LineEffect::Nothing),
        }
        self.check(self.data.len() + value.len() + 1)?;
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
        Ok(LineEffect::Nothing)
    }
}

fn without_bom(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns items as text; comments begin with a colon, errors with an exclamation mark.
    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut decoder = SseDecoder::default();
        let mut items = Vec::new();
        let text = |item: Item<'_>| match item {
            Item::Comment(text) => format!(":{}", String::from_utf8_lossy(text)),
            Item::Data(data) => String::from_utf8_lossy(data).into_owned(),
            Item::Error(data) => format!("!{}", String::from_utf8_lossy(data)),
        };
        for mut piece in pieces {
            while let Some(item) = decoder.next(&mut piece).unwrap() {
                items.push(text(item));
            }
            assert!(piece.is_empty());
        }
        while let Some(item) = decoder.finish().unwrap() {
            items.push(text(item));
        }
        items
    }

    /// Returns the number of items in a piece.
    ///
    /// # Errors
    /// If an event is too large.
    fn count(decoder: &mut SseDecoder, mut piece: &[u8]) -> Result<usize, EventTooLarge> {
        let mut count = 0;
        while decoder.next(&mut piece)?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    #[test]
    fn events_follow_the_standard() {
        // The examples of the standard's section 9.2.6, and one case per rule.
        let cases: [(&str, &[&str]); 20] = [
            ("data: YHOO\ndata: +2\ndata: 10\n\n", &["YHOO\n+2\n10"]),
            (
                ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
                &[": test stream", "first event", "second event", " third event"],
            ),
            ("data\n\ndata\ndata\n\ndata:\n\n", &["", "\n", ""]),
            ("data:test\n\ndata: test\n\n", &["test", "test"]),
            ("data: a\r\n\r\ndata: b\r\rdata: c\n\n", &["a", "b", "c"]),
            ("\u{feff}data: a\n\n", &["a"]),
            ("data: a\n\n\u{feff}data: b\n\n", &["a"]),
            ("event: ping\n\n", &[]),
            ("event: x\ndata: a\nretry: 3\n\n", &["a"]),
            (":\n\n:\n\n", &[":", ":"]),
            ("error: {\"code\":500}\n\n", &["!{\"code\":500}"]),
            ("event: error\ndata: a\n\ndata: b\n\n", &["!a", "b"]),
            ("data: a\nevent:error\n\n", &["!a"]),
            ("event: error\n\ndata: b\n\n", &["b"]),
            ("event: error\nevent: x\ndata: b\n\n", &["b"]),
            ("data: a\n:c\ndata: b\n\n:d", &[":c", "a\nb", ":d"]),
            ("data: a\n:c", &[":c", "a"]),
            ("\u{feff}: c\ndata: a\r\n\r\n", &[": c", "a"]),
            ("data: a\n\ndata: no blank line", &["a", "no blank line"]),
            ("\n\n\n", &[]),
        ];
        for (input, expected) in cases {
            assert_eq!(decode([input.as_bytes()]), expected, "{input:?}");
            let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
            assert_eq!(decode(bytes), expected, "byte by byte: {input:?}");
        }
    }

    #[test]
    fn an_event_completes_with_its_blank_line_and_not_later() {
        let mut decoder = SseDecoder::default();
        let mut seen = 0;
        for (input, expected) in [
            ("data: a\r", 0),
            ("\n", 0),
            ("\r", 1),
            ("\n", 1),
            ("data: b\n", 1),
            ("\n", 2),
        ] {
            seen += count(&mut decoder, input.as_bytes()).unwrap();
            assert_eq!(seen, expected, "after {input:?}");
        }
    }

    #[test]
    fn an_event_above_the_bound_is_refused_however_it_comes() {
        let line = format!("data: {}\n\n", "x".repeat(100));
        let lines = "data: 0123456789\n".repeat(10);
        for input in [line.as_bytes(), lines.as_bytes(), &line.as_bytes()[..100]] {
            assert_eq!(
                count(&mut SseDecoder::with_limit(64), input),
                Err(EventTooLarge { limit: 64 })
            );
            let mut decoder = SseDecoder::with_limit(64);
            assert!(input.chunks(7).any(|piece| count(&mut decoder, piece).is_err()));
        }
        assert_eq!(count(&mut SseDecoder::with_limit(128), line.as_bytes()), Ok(1));
    }

    proptest! {
        /// Events written with any line ends are decoded at any piece boundaries.
        #[test]
        fn any_cut_gives_the_same_events(
            events in prop::collection::vec(prop::collection::vec("[ -~äöü😀]{0,20}", 1..4), 0..8),
            ends in prop::collection::vec(0usize..3, 64),
            cuts in prop::collection::vec(1usize..17, 1..40),
        ) {
            let mut bytes = Vec::new();
            let mut ends = ends.iter().cycle();
            let mut end = |bytes: &mut Vec<u8>| {
                bytes.extend_from_slice(match ends.next() { Some(0) => b"\n", Some(1) => b"\r\n", _ => b"\r" });
            };
            for lines in &events {
                for line in lines {
                    bytes.extend_from_slice(b"data: ");
                    bytes.extend_from_slice(line.as_bytes());
                    end(&mut bytes);
                }
                // An LF directly after a CR would be one line end, so the blank line repeats the
                // same kind.
                let blank: &[u8] = if bytes.ends_with(b"\r\n") { b"\r\n" } else if bytes.ends_with(b"\r") { b"\r" } else { b"\n" };
                bytes.extend_from_slice(blank);
            }
            let expected: Vec<String> = events.iter().map(|lines| lines.join("\n")).collect();
            let mut pieces: Vec<&[u8]> = Vec::new();
            let mut rest = &bytes[..];
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (piece, left) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = left;
            }
            prop_assert_eq!(decode(pieces), expected);
        }

        /// Garbage never panics, and the result does not depend on piece boundaries.
        #[test]
        fn garbage_is_decoded_the_same_at_any_cut(bytes in prop::collection::vec(prop::sample::select(b"data: :\r\nervnx\xEF\xBB\xBF".to_vec()), 0..200), at in 0usize..200) {
            let at = at.min(bytes.len());
            prop_assert_eq!(decode([&bytes[..at], &bytes[at..]]), decode([&bytes[..]]));
        }
    }
}
