//! Minimal response reader that still finds every event.

use memchr::{memchr, memmem};
use veeksha_model::Nanos;

/// Start of a token's text.
const CONTENT: &[u8] = b"\"content\":\"";

/// Parser state and counters of one response.
#[derive(Debug)]
pub(crate) struct ResponseReader {
    state: ResponseState,
    /// Incomplete input at the end of the last read.
    carried: Vec<u8>,
    /// JSON events so far.
    pub(crate) events: u64,
    /// Arrival time of each event with text.
    pub(crate) stamps: Vec<Nanos>,
    finder: memmem::Finder<'static>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponseState {
    Head,
    Chunks,
    Done,
}

impl ResponseReader {
    pub(crate) fn new() -> Self {
        ResponseReader {
            state: ResponseState::Head,
            carried: Vec::new(),
            events: 0,
            stamps: Vec::new(),
            finder: memmem::Finder::new(CONTENT),
        }
    }

    /// Starts the next response on the same connection, reusing the buffers.
    pub(crate) fn begin(&mut self) {
        self.state = ResponseState::Head;
        self.carried.clear();
        self.events = 0;
        self.stamps.clear();
    }

    /// Takes the bytes of one read; returns true if they complete the response. The error is a
    /// one-line message.
    pub(crate) fn receive(&mut self, bytes: &[u8], at: Nanos) -> Result<bool, String> {
        if self.carried.is_empty() {
            let taken = self.consume(bytes, at)?;
            self.carried
                .extend_from_slice(bytes.get(taken..).unwrap_or_default());
        } else {
            let mut all = std::mem::take(&mut self.carried);
            all.extend_from_slice(bytes);
            let taken = self.consume(&all, at)?;
            all.drain(..taken);
            self.carried = all;
        }
        Ok(self.state == ResponseState::Done)
    }

    fn consume(&mut self, input: &[u8], at: Nanos) -> Result<usize, String> {
        let mut taken = 0;
        loop {
            let rest = input.get(taken..).unwrap_or_default();
            match self.state {
                ResponseState::Done => return Ok(taken),
                ResponseState::Head => match head(rest)? {
                    Some(length) => {
                        taken += length;
                        self.state = ResponseState::Chunks;
                    }
                    None => return Ok(taken),
                },
                ResponseState::Chunks => {
                    let Some(line) = memchr(b'\n', rest) else {
                        return Ok(taken);
                    };
                    let size = size(rest.get(..line).unwrap_or_default())?;
                    let begin = line + 1;
                    let Some(chunk) = rest.get(begin..begin + size + 2) else {
                        return Ok(taken);
                    };
                    taken += begin + size + 2;
                    if size == 0 {
                        self.state = ResponseState::Done;
                    } else {
                        self.chunk(chunk.get(..size).unwrap_or_default(), at);
                    }
                }
            }
        }
    }

    /// Counts the lines of an HTTP chunk; the bench server puts whole events into each.
    fn chunk(&mut self, chunk: &[u8], at: Nanos) {
        let mut rest = chunk;
        while let Some(end) = memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            rest = after.get(1..).unwrap_or_default();
            let Some(data) = line.strip_prefix(b"data: ") else {
                continue;
            };
            if data == b"[DONE]" {
                continue;
            }
            self.events += 1;
            if let Some(found) = self.finder.find(data)
                && data.get(found + CONTENT.len()).is_some_and(|byte| *byte != b'"')
            {
                self.stamps.push(at);
            }
        }
    }
}

/// Returns the length of the response head once it is complete.
fn head(input: &[u8]) -> Result<Option<usize>, String> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(input) {
        Ok(httparse::Status::Complete(length)) if response.code == Some(200) => Ok(Some(length)),
        Ok(httparse::Status::Complete(_)) => Err(format!("got status {:?}", response.code)),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(error) => Err(format!("the response is not HTTP: {error}")),
    }
}

/// Parses a chunk size from its line without the line feed.
fn size(line: &[u8]) -> Result<usize, String> {
    let digits = line.strip_suffix(b"\r").unwrap_or(line);
    let mut size = 0usize;
    for byte in digits {
        let digit = (*byte as char).to_digit(16);
        size = match digit {
            Some(digit) if size < 1 << 40 => size * 16 + digit as usize,
            _ => {
                return Err(format!(
                    "got a chunk of the size `{}`",
                    String::from_utf8_lossy(digits)
                ));
            }
        };
    }
    if digits.is_empty() {
        return Err("got a chunk without a size".to_owned());
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Two events with text, one with an empty text, one without; chunk sizes in lower and upper
    /// case.
    fn reply() -> String {
        let chunk = |data: &str| format!("{:x}\r\n{data}\r\n", data.len());
        [
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            &chunk("data: {\"content\":\"\"}\n\n"),
            &chunk("data: {\"content\":\"a\"}\n\ndata: {\"content\":\"b\"}\n\n"),
            &chunk("data: {\"usage\":1}\n\n"),
            "E\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
        ]
        .concat()
    }

    #[test]
    fn finds_events_at_any_split() {
        let reply = reply();
        for step in [1, 2, 3, 7, 50, reply.len()] {
            let mut answer = ResponseReader::new();
            let mut pieces = reply.as_bytes().chunks(step).peekable();
            let mut at = 0;
            while let Some(piece) = pieces.next() {
                at += 1;
                let complete = answer.receive(piece, at).expect("an answer");
                assert_eq!(complete, pieces.peek().is_none(), "step {step}, piece {at}");
            }
            assert_eq!((answer.events, answer.stamps.len()), (4, 2), "step {step}");
        }
    }

    #[test]
    fn event_has_the_time_of_its_completing_read() {
        let mut answer = ResponseReader::new();
        let reply = reply();
        let cut = reply.find("\"b\"").expect("the second text");
        answer.receive(&reply.as_bytes()[..cut], 10).expect("a part");
        answer.receive(&reply.as_bytes()[cut..], 20).expect("the rest");
        // Both texts are in one HTTP chunk, and this client processes whole chunks.
        assert_eq!(answer.stamps, [20, 20]);
    }

    #[test]
    fn rejects_invalid_responses() {
        for text in [
            "HTTP/1.1 500 Oops\r\n\r\n",
            "hello\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\nxyz\r\n",
            "HTTP/1.1 200 OK\r\n\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\nffffffffffffffffffff\r\n",
        ] {
            assert!(
                ResponseReader::new().receive(text.as_bytes(), 1).is_err(),
                "{text:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn survives_arbitrary_input(head in any::<bool>(), bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut answer = ResponseReader::new();
            if head {
                answer.receive(b"HTTP/1.1 200 OK\r\n\r\n", 0).expect("a head");
            }
            let _ = answer.receive(&bytes, 1);
        }
    }
}
