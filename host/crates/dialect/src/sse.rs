//! Cuts a byte stream into server-sent events (WHATWG HTML, section 9.2.6), whatever the reads were.
//!
//! Pure: bytes in, events out. Lines end with LF, CRLF or CR; a byte order mark at the start is dropped; the lines of one
//! event's data are joined with LF; one space after the colon belongs to the syntax. `event`, `id`, `retry` and unknown
//! fields are ignored. Two things differ from the standard, both for the sake of real servers: a line `error: ...` (older
//! llama.cpp) counts as data, and [`SseDecoder::finish`] returns an event that lacks its final blank line.

/// The largest event that is accepted, in bytes of one line or of all data lines: 16 MiB. An event of a token stream has a few
/// hundred bytes; the bound keeps a broken server from filling the memory.
pub const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// What the decoder found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseItem<'a> {
    /// A line that begins with a colon, without the colon: a keep-alive.
    Comment(&'a [u8]),
    /// An event's data.
    Data(&'a [u8]),
}

/// An event grew beyond the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {limit} bytes")]
pub struct EventTooLarge {
    /// The bound.
    pub limit: usize,
}

/// The decoder's state between two pieces of input.
#[derive(Debug)]
pub struct SseDecoder {
    limit: usize,
    /// A line whose end has not come yet.
    line: Vec<u8>,
    /// Data lines of the current event, joined with LF.
    data: Vec<u8>,
    /// Whether the current event has a data line, which may be empty.
    has_data: bool,
    /// The last byte was a CR: an LF that follows belongs to it.
    after_cr: bool,
    /// No line has ended yet: a byte order mark may stand at the start.
    at_start: bool,
}

impl Default for SseDecoder {
    fn default() -> Self {
        SseDecoder::with_limit(MAX_EVENT_BYTES)
    }
}

impl SseDecoder {
    /// A decoder that refuses events above `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        SseDecoder {
            limit,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_cr: false,
            at_start: true,
        }
    }

    /// Takes the next bytes and hands every item they complete to `on_item`, in order.
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        mut on_item: impl FnMut(SseItem<'_>),
    ) -> Result<(), EventTooLarge> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            let (line, rest) = bytes.split_at(end);
            if self.line.is_empty() {
                self.check(line.len())?;
                self.line_ended(line, &mut on_item)?;
            } else {
                self.check(self.line.len() + line.len())?;
                self.line.extend_from_slice(line);
                let mut whole = std::mem::take(&mut self.line);
                self.line_ended(&whole, &mut on_item)?;
                whole.clear();
                self.line = whole;
            }
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
        }
        self.check(self.line.len() + bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// The stream is over: an event that has data, but no blank line behind it, is handed out too.
    pub fn finish(&mut self, mut on_item: impl FnMut(SseItem<'_>)) -> Result<(), EventTooLarge> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.line_ended(&line, &mut on_item)?;
        }
        self.line_ended(b"", &mut on_item)
    }

    fn check(&self, size: usize) -> Result<(), EventTooLarge> {
        if size > self.limit {
            Err(EventTooLarge { limit: self.limit })
        } else {
            Ok(())
        }
    }

    fn line_ended(
        &mut self,
        line: &[u8],
        on_item: &mut impl FnMut(SseItem<'_>),
    ) -> Result<(), EventTooLarge> {
        let line = if std::mem::take(&mut self.at_start) {
            line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                on_item(SseItem::Data(&self.data));
                self.data.clear();
            }
            return Ok(());
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(0) => {
                on_item(SseItem::Comment(&line[1..]));
                return Ok(());
            }
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        if !matches!(field, b"data" | b"error") {
            return Ok(());
        }
        let value = value.strip_prefix(b" ").unwrap_or(value);
        self.check(self.data.len() + value.len() + 1)?;
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Items as text; comments begin with a colon.
    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut decoder = SseDecoder::default();
        let mut items = Vec::new();
        let mut push = |item: SseItem<'_>| {
            items.push(match item {
                SseItem::Comment(text) => format!(":{}", String::from_utf8_lossy(text)),
                SseItem::Data(data) => String::from_utf8_lossy(data).into_owned(),
            });
        };
        for piece in pieces {
            decoder.feed(piece, &mut push).unwrap();
        }
        decoder.finish(&mut push).unwrap();
        items
    }

    #[test]
    fn the_standard_says_what_an_event_is() {
        // The examples of the standard's section 9.2.6, and one case for each rule.
        let cases: [(&str, &[&str]); 13] = [
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
            ("error: {\"code\":500}\n\n", &["{\"code\":500}"]),
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
        let mut count = 0;
        for (input, expected) in [
            ("data: a\r", 0),
            ("\n", 0),
            ("\r", 1),
            ("\n", 1),
            ("data: b\n", 1),
            ("\n", 2),
        ] {
            decoder.feed(input.as_bytes(), |_| count += 1).unwrap();
            assert_eq!(count, expected, "after {input:?}");
        }
    }

    #[test]
    fn an_event_above_the_bound_is_refused_however_it_comes() {
        let line = format!("data: {}\n\n", "x".repeat(100));
        let lines = "data: 0123456789\n".repeat(10);
        for input in [line.as_bytes(), lines.as_bytes(), &line.as_bytes()[..100]] {
            assert_eq!(
                SseDecoder::with_limit(64).feed(input, |_| ()),
                Err(EventTooLarge { limit: 64 })
            );
            let mut decoder = SseDecoder::with_limit(64);
            assert!(input.chunks(7).any(|piece| decoder.feed(piece, |_| ()).is_err()));
        }
        let mut items = 0;
        SseDecoder::with_limit(128)
            .feed(line.as_bytes(), |_| items += 1)
            .unwrap();
        assert_eq!(items, 1);
    }

    proptest! {
        /// Events written with any line ends come back, however the bytes are cut.
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
                // LF directly after CR would be one line end, so the blank line repeats the same kind.
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

        /// Garbage never panics, and its cuts do not matter.
        #[test]
        fn garbage_is_decoded_the_same_at_any_cut(bytes in prop::collection::vec(prop::sample::select(b"data: :\r\nerx\xEF\xBB\xBF".to_vec()), 0..200), at in 0usize..200) {
            let at = at.min(bytes.len());
            prop_assert_eq!(decode([&bytes[..at], &bytes[at..]]), decode([&bytes[..]]));
        }
    }
}
