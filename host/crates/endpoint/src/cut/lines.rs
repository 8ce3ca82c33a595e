//! Splitting of a byte stream into lines (newline-delimited JSON). Lines end with LF or CRLF; empty
//! lines are skipped.

use super::item::EventTooLarge;

/// Decoder state between two pieces of input.
#[derive(Debug)]
pub(crate) struct LineDecoder {
    limit: usize,
    /// An incomplete line.
    line: Vec<u8>,
    /// True if `line` was returned and can be cleared.
    handed_out: bool,
}

impl LineDecoder {
    pub(super) fn with_limit(limit: usize) -> Self {
        LineDecoder {
            limit,
            line: Vec::new(),
            handed_out: false,
        }
    }

    pub(super) fn is_between_events(&self) -> bool {
        self.line.is_empty() || self.handed_out
    }

    /// Consumes input up to the end of the next non-empty line; `None`: the input is used up.
    pub(super) fn next<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<&'s [u8]>, EventTooLarge> {
        if std::mem::take(&mut self.handed_out) {
            self.line.clear();
        }
        while let Some(end) = memchr::memchr(b'\n', input) {
            let (piece, rest) = input.split_at(end);
            *input = rest.get(1..).unwrap_or_default();
            self.check(self.line.len() + piece.len())?;
            if self.line.is_empty() {
                let line = without_cr(piece);
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(line));
                }
            } else {
                self.line.extend_from_slice(piece);
                if !self.line.trim_ascii().is_empty() {
                    self.handed_out = true;
                    return Ok(Some(without_cr(&self.line)));
                }
                self.line.clear();
            }
        }
        self.check(self.line.len() + input.len())?;
        self.line.extend_from_slice(input);
        *input = &[];
        Ok(None)
    }

    fn check(&self, size: usize) -> Result<(), EventTooLarge> {
        if size > self.limit {
            Err(EventTooLarge { limit: self.limit })
        } else {
            Ok(())
        }
    }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
        let mut decoder = LineDecoder::with_limit(1_000);
        let mut lines = Vec::new();
        for mut piece in pieces.into_iter().chain([&b"\n"[..]]) {
            while let Some(line) = decoder.next(&mut piece).unwrap() {
                lines.push(line.to_vec());
            }
        }
        lines
    }

    #[test]
    fn empty_lines_are_no_events_and_the_last_needs_no_end() {
        assert_eq!(lines([&b"a\r\n\n \r\n\r\nb c\nd"[..]]), [&b"a"[..], b"b c", b"d"]);
        assert!(lines([&b""[..]]).is_empty());
    }

    #[test]
    fn a_line_above_the_bound_is_refused_however_it_comes() {
        let long = [b'x'; 20];
        assert!(LineDecoder::with_limit(10).next(&mut &long[..]).is_err());
        let mut decoder = LineDecoder::with_limit(10);
        let refused = long.chunks(3).any(|mut piece| decoder.next(&mut piece).is_err());
        assert!(refused);
        assert_eq!(
            LineDecoder::with_limit(20).next(&mut &[&long[..], b"\n"].concat()[..]),
            Ok(Some(&long[..]))
        );
    }

    proptest! {
        /// The lines equal those of a plain split, at any piece boundaries.
        #[test]
        fn any_cut_gives_the_lines_of_a_split(text in "[ab \r\n]{0,60}", at in 0usize..60) {
            let bytes = text.as_bytes();
            let at = at.min(bytes.len());
            let expected: Vec<Vec<u8>> = text
                .split('\n')
                .filter(|line| !line.trim_ascii().is_empty())
                .map(|line| line.strip_suffix('\r').unwrap_or(line).as_bytes().to_vec())
                .collect();
            prop_assert_eq!(lines([&bytes[..at], &bytes[at..]]), expected.clone());
            prop_assert_eq!(lines(bytes.chunks(1)), expected);
        }
    }
}
