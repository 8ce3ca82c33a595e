//! Finding whole requests in what a connection has received.

/// What the bytes received so far are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// The beginning of a request.
    Part,
    /// A whole one, of so many bytes.
    Whole {
        bytes: usize,
        kind: Kind,
        id: Option<String>,
    },
    /// No request, or one of a kind that this server does not serve.
    Nonsense,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An answer that streams: any `POST`.
    Answer,
    /// The list of models: any `GET`.
    Models,
}

/// A request's head is never this large here.
const MAX_HEAD: usize = 64 << 10;

/// A request's body is never this large here.
const MAX_BODY: usize = 64 << 20;

/// Looks at what was received.
pub(crate) fn look(received: &[u8]) -> Received {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let head = match request.parse(received) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) if received.len() <= MAX_HEAD => return Received::Part,
        _ => return Received::Nonsense,
    };
    let kind = match request.method {
        Some("POST") => Kind::Answer,
        Some("GET") => Kind::Models,
        _ => return Received::Nonsense,
    };
    let (mut length, mut id) = (0usize, None);
    for header in request.headers.iter() {
        let value = std::str::from_utf8(header.value).ok().map(str::trim);
        if header.name.eq_ignore_ascii_case("content-length") {
            match value.and_then(|value| value.parse().ok()) {
                Some(value) if value <= MAX_BODY => length = value,
                _ => return Received::Nonsense,
            }
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return Received::Nonsense;
        } else if header.name.eq_ignore_ascii_case("x-request-id") {
            id = value.map(str::to_owned);
        }
    }
    let bytes = head + length;
    if received.len() < bytes {
        return Received::Part;
    }
    Received::Whole { bytes, kind, id }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const POST: &str = "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nX-Request-ID: 17/2\r\ncontent-length: 4\r\n\r\nbody";

    #[test]
    fn a_request_is_whole_with_its_last_byte_and_no_earlier() {
        for end in 0..POST.len() {
            assert_eq!(look(&POST.as_bytes()[..end]), Received::Part, "{end}");
        }
        let whole = Received::Whole {
            bytes: POST.len(),
            kind: Kind::Answer,
            id: Some("17/2".into()),
        };
        assert_eq!(look(POST.as_bytes()), whole);
        assert_eq!(look(format!("{POST}{POST}").as_bytes()), whole);
    }

    #[test]
    fn what_is_not_served_is_refused() {
        for text in [
            "DELETE / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 999999999999\r\n\r\n",
            "\u{0}\u{1}",
        ] {
            assert_eq!(look(text.as_bytes()), Received::Nonsense, "{text:?}");
        }
        assert_eq!(look(&[b'a'; MAX_HEAD + 1]), Received::Nonsense);
    }

    proptest! {
        #[test]
        fn garbage_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Received::Whole { bytes: taken, .. } = look(&bytes) {
                prop_assert!(taken <= bytes.len());
            }
        }
    }
}
