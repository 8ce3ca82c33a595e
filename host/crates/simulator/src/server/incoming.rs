//! Parses the bytes of a connection into requests: HTTP/1.1 heads and bodies.
//!
//! Pure: bytes are appended, [`RequestReader::next`] returns the parsed state.

/// Maximum body size in bytes.
pub(super) const BODY_LIMIT: usize = 64 << 20;

/// Maximum head size in bytes.
const HEAD_LIMIT: usize = 64 << 10;
const HEADERS: usize = 100;

/// A request without its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestHead {
    pub(super) method: String,
    /// Without the query.
    pub(super) path: String,
    pub(super) request_id: Option<Vec<u8>>,
    /// The key of `authorization: Bearer KEY` or `x-api-key: KEY`.
    pub(super) key: Option<Vec<u8>>,
    /// True if the client supports chunks: HTTP/1.1 does.
    pub(super) takes_chunks: bool,
    pub(super) keep_alive: bool,
    expects: bool,
    length: Length,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Length {
    #[default]
    None,
    Known(usize),
    Chunked,
}

/// A complete request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Incoming {
    pub(super) request_head: RequestHead,
    pub(super) body: Vec<u8>,
}

/// The state of parsing after the bytes so far.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParseState {
    /// More bytes are needed.
    More,
    /// The client waits for `100 Continue` before it sends the body.
    Continue,
    /// A request is complete.
    Whole(Box<Incoming>),
    /// The body is too long; the rest of the connection cannot be parsed.
    TooLong(RequestHead),
    /// Not a valid request: the status and a message.
    Bad(u16, String),
}

/// The unconsumed bytes of one connection.
#[derive(Debug, Default)]
pub(super) struct RequestReader {
    bytes: Vec<u8>,
    /// The parsed head; its bytes have been consumed.
    request_head: Option<RequestHead>,
    /// A chunked body so far.
    body: Vec<u8>,
}

impl RequestReader {
    /// Returns the buffer for the next bytes.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Returns the number of unconsumed bytes.
    pub(super) fn waiting(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn next(&mut self) -> ParseState {
        if self.request_head.is_none() {
            match self.head() {
                Ok(Some(request_head)) => {
                    let continues = request_head.expects;
                    self.request_head = Some(request_head);
                    if let Some(request_head) = self.over_limit() {
                        return ParseState::TooLong(request_head);
                    }
                    if continues && self.bytes.is_empty() {
                        return ParseState::Continue;
                    }
                }
                Ok(None) => return ParseState::More,
                Err((status, message)) => return ParseState::Bad(status, message),
            }
        }
        let length = self
            .request_head
            .as_ref()
            .map_or(Length::None, |request_head| request_head.length);
        let body = match length {
            Length::None => Some(Vec::new()),
            Length::Known(length) => (self.bytes.len() >= length).then(|| {
                let rest = self.bytes.split_off(length);
                std::mem::replace(&mut self.bytes, rest)
            }),
            Length::Chunked => match self.chunks() {
                Ok(true) => Some(std::mem::take(&mut self.body)),
                Ok(false) => {
                    if self.body.len() > BODY_LIMIT {
                        return ParseState::TooLong(self.request_head.take().unwrap_or_default());
                    }
                    None
                }
                Err(message) => return ParseState::Bad(400, message.into()),
            },
        };
        match (body, &self.request_head) {
            (Some(body), Some(_)) => {
                let request_head = self.request_head.take().unwrap_or_default();
                if body.len() > BODY_LIMIT {
                    return ParseState::TooLong(request_head);
                }
                ParseState::Whole(Box::new(Incoming { request_head, body }))
            }
            _ => ParseState::More,
        }
    }

    fn over_limit(&mut self) -> Option<RequestHead> {
        match self.request_head.as_ref()?.length {
            Length::Known(length) if length > BODY_LIMIT => self.request_head.take(),
            _ => None,
        }
    }

    fn head(&mut self) -> Result<Option<RequestHead>, (u16, String)> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let used = match request.parse(&self.bytes) {
            Ok(httparse::Status::Complete(used)) => used,
            Ok(httparse::Status::Partial) if self.bytes.len() > HEAD_LIMIT => {
                return Err((431, "the head of the request is longer than 64 KiB".into()));
            }
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(error) => return Err((400, format!("not an HTTP/1.1 request: {error}"))),
        };
        // A client of a proxy sends the whole address (RFC 9112, section 3.2.2); only the part
        // after the host matters here.
        let target = request.path.unwrap_or_default();
        let target = match target.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("/", |path| &rest[path..]),
            None => target,
        };
        let newer = request.version == Some(1);
        let mut request_head = RequestHead {
            method: request.method.unwrap_or_default().into(),
            path: target.split('?').next().unwrap_or_default().into(),
            takes_chunks: newer,
            keep_alive: newer,
            ..RequestHead::default()
        };
        for header in request.headers.iter() {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            let contains = |word: &str| {
                header
                    .value
                    .split(|byte| *byte == b',')
                    .any(|part| part.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
            };
            if is("x-request-id") {
                request_head.request_id = Some(header.value.to_vec());
            } else if is("authorization") {
                request_head.key = header.value.strip_prefix(b"Bearer ").map(<[u8]>::to_vec);
            } else if is("x-api-key") {
                request_head.key = Some(header.value.to_vec());
            } else if is("connection") {
                request_head.keep_alive =
                    (request_head.keep_alive || contains("keep-alive")) && !contains("close");
            } else if is("expect") {
                request_head.expects = contains("100-continue");
            } else if is("content-length") {
                let text = str::from_utf8(header.value).unwrap_or_default().trim();
                let length = text
                    .parse()
                    .map_err(|_| (400, format!("content-length is `{text}`: give a number")))?;
                if !matches!(request_head.length, Length::None)
                    && request_head.length != Length::Known(length)
                {
                    return Err((400, "the length of the body is stated twice".into()));
                }
                request_head.length = Length::Known(length);
            } else if is("transfer-encoding") {
                if !contains("chunked") || !matches!(request_head.length, Length::None) {
                    return Err((
                        400,
                        "transfer-encoding must be `chunked`, without a content-length".into(),
                    ));
                }
                request_head.length = Length::Chunked;
            }
        }
        self.bytes.drain(..used);
        Ok(Some(request_head))
    }

    /// Consumes the available chunks; returns true if the last one was among them.
    fn chunks(&mut self) -> Result<bool, &'static str> {
        let mut at = 0;
        let ended = loop {
            let (line, size) = match httparse::parse_chunk_size(&self.bytes[at..]) {
                Ok(httparse::Status::Complete(parsed)) => parsed,
                Ok(httparse::Status::Partial) => break false,
                Err(_) => return Err("a chunk size of the body is not a hexadecimal number"),
            };
            let start = at + line;
            if size == 0 {
                // Trailers are ignored; they end with an empty line.
                let rest = &self.bytes[start..];
                let end = if rest.starts_with(b"\r\n") {
                    Some(2)
                } else {
                    rest.windows(4)
                        .position(|window| window == b"\r\n\r\n")
                        .map(|place| place + 4)
                };
                match end {
                    Some(end) => {
                        at = start + end;
                        break true;
                    }
                    None => break false,
                }
            }
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            if size > BODY_LIMIT {
                self.body.resize(BODY_LIMIT + 1, 0);
                break false;
            }
            let Some(data) = self.bytes.get(start..start + size + 2) else {
                break false;
            };
            if !data.ends_with(b"\r\n") {
                return Err("a chunk of the body does not have its stated size");
            }
            self.body.extend_from_slice(&data[..size]);
            at = start + size + 2;
        };
        self.bytes.drain(..at);
        Ok(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<ParseState> {
        let mut reader = RequestReader::default();
        let mut steps = Vec::new();
        for piece in pieces {
            reader.buffer().extend_from_slice(piece);
            loop {
                match reader.next() {
                    ParseState::More => break,
                    step @ (ParseState::Bad(..) | ParseState::TooLong(_)) => {
                        steps.push(step);
                        return steps;
                    }
                    step => steps.push(step),
                }
            }
        }
        steps
    }

    fn bodies(steps: Vec<ParseState>) -> Vec<(String, String)> {
        steps
            .into_iter()
            .map(|step| match step {
                ParseState::Whole(whole) => (whole.request_head.path, String::from_utf8(whole.body).unwrap()),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    const TWO: &[u8] = b"POST /a?x=1 HTTP/1.1\r\ncontent-length: 3\r\n\r\nabcPOST /b HTTP/1.1\r\n\
        transfer-encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nt: 1\r\n\r\nGET /c HTTP/1.1\r\n\r\n";

    #[test]
    fn parses_requests_from_any_split_of_reads() {
        let expected = [("/a", "abc"), ("/b", "abcde"), ("/c", "")];
        let expected: Vec<_> = expected.map(|(a, b)| (a.to_owned(), b.to_owned())).into();
        assert_eq!(bodies(read(&[TWO])), expected);
        for cut in 1..TWO.len() {
            assert_eq!(
                bodies(read(&[&TWO[..cut], &TWO[cut..]])),
                expected,
                "cut at {cut}"
            );
        }
        let bytes: Vec<&[u8]> = TWO.chunks(1).collect();
        assert_eq!(bodies(read(&bytes)), expected);
    }

    #[test]
    fn parses_heads() {
        let request_head = |head: &str| match read(&[format!("GET / {head}\r\n\r\n").as_bytes()]).pop() {
            Some(ParseState::Whole(whole)) => whole.request_head,
            other => panic!("{other:?}"),
        };
        assert!(request_head("HTTP/1.1").keep_alive);
        assert!(!request_head("HTTP/1.1\r\nConnection: close").keep_alive);
        let old = request_head("HTTP/1.0");
        assert!(!old.keep_alive && !old.takes_chunks);
        assert!(request_head("HTTP/1.0\r\nconnection: Keep-Alive").keep_alive);
        assert_eq!(
            request_head("HTTP/1.1\r\nauthorization: Bearer k").key.as_deref(),
            Some(&b"k"[..])
        );
        assert_eq!(
            request_head("HTTP/1.1\r\nX-Api-Key: k").key.as_deref(),
            Some(&b"k"[..])
        );
        assert_eq!(request_head("HTTP/1.1\r\nauthorization: k").key, None);
    }

    #[test]
    fn sends_continue_once() {
        let head = b"POST / HTTP/1.1\r\ncontent-length: 1\r\nexpect: 100-continue\r\n\r\n";
        let steps = read(&[head, b"x"]);
        assert_eq!(steps[0], ParseState::Continue);
        assert!(matches!(&steps[1], ParseState::Whole(whole) if whole.body == b"x"));
        assert_eq!(steps.len(), 2);
    }

    #[test]
    fn refuses_invalid_requests() {
        for (bytes, status) in [
            (&b"hello there\r\n\r\n"[..], 400),
            (b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400),
            (
                b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
                400,
            ),
            (b"POST / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n", 400),
            (
                b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
                400,
            ),
            (
                b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc\r\n",
                400,
            ),
        ] {
            let steps = read(&[bytes]);
            assert!(
                matches!(steps[..], [ParseState::Bad(found, _)] if found == status),
                "{steps:?}"
            );
        }
        let long = b"POST / HTTP/1.1\r\ncontent-length: 67108865\r\n\r\n";
        assert!(matches!(read(&[long])[..], [ParseState::TooLong(_)]));
        let long = b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nfffffffff\r\n";
        assert!(matches!(read(&[long])[..], [ParseState::TooLong(_)]));
        let endless = [b"GET / HTTP/1.1\r\nx: ".to_vec(), vec![b'a'; HEAD_LIMIT]].concat();
        assert!(matches!(read(&[&endless])[..], [ParseState::Bad(431, _)]));
    }
}
