//! Finds complete requests in received bytes.

/// Result of parsing the received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ParsedRequest {
    /// An incomplete request.
    Part,
    /// A complete request of `bytes` bytes.
    Whole {
        bytes: usize,
        kind: RequestKind,
        id: Option<String>,
    },
    /// Not a request, or one that this server does not support.
    Invalid,
}

/// The requested resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// A streamed response: any `POST`.
    Answer,
    /// The list of models: any `GET`.
    Models,
}

/// Limit of a request head, far above any that the bench sends.
const MAX_HEAD: usize = 64 << 10;

/// Limit of a request body, far above any that the bench sends.
const MAX_BODY: usize = 64 << 20;

/// Parses the first request of the received bytes.
pub(crate) fn parse_request(received: &[u8]) -> ParsedRequest {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let head = match request.parse(received) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) if received.len() <= MAX_HEAD => return ParsedRequest::Part,
        _ => return ParsedRequest::Invalid,
    };
    let kind = match request.method {
        Some("POST") => RequestKind::Answer,
        Some("GET") => RequestKind::Models,
        _ => return ParsedRequest::Invalid,
    };
    let (mut length, mut id) = (0usize, None);
    for header in request.headers.iter() {
        let value = std::str::from_utf8(header.value).ok().map(str::trim);
        if header.name.eq_ignore_ascii_case("content-length") {
            match value.and_then(|value| value.parse().ok()) {
                Some(value) if value <= MAX_BODY => length = value,
                _ => return ParsedRequest::Invalid,
            }
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return ParsedRequest::Invalid;
        } else if header.name.eq_ignore_ascii_case("x-request-id") {
            id = value.map(|id| without_run(id).to_owned());
        }
    }
    let bytes = head + length;
    if received.len() < bytes {
        return ParsedRequest::Part;
    }
    ParsedRequest::Whole { bytes, kind, id }
}

/// Returns `session/node` of an `x-request-id`, which may begin with the id of a run.
fn without_run(id: &str) -> &str {
    let run = id.rmatch_indices('/').nth(1);
    run.map_or(id, |(end, _)| &id[end + 1..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const POST: &str = "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nX-Request-ID: 17/2\r\ncontent-length: 4\r\n\r\nbody";

    #[test]
    fn request_is_complete_with_its_last_byte() {
        for end in 0..POST.len() {
            assert_eq!(
                parse_request(&POST.as_bytes()[..end]),
                ParsedRequest::Part,
                "{end}"
            );
        }
        let whole = ParsedRequest::Whole {
            bytes: POST.len(),
            kind: RequestKind::Answer,
            id: Some("17/2".into()),
        };
        assert_eq!(parse_request(POST.as_bytes()), whole);
        assert_eq!(without_run("r1/17/2"), "17/2");
        assert_eq!(parse_request(format!("{POST}{POST}").as_bytes()), whole);
    }

    #[test]
    fn rejects_unsupported_requests() {
        for text in [
            "DELETE / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 999999999999\r\n\r\n",
            "\u{0}\u{1}",
        ] {
            assert_eq!(parse_request(text.as_bytes()), ParsedRequest::Invalid, "{text:?}");
        }
        assert_eq!(parse_request(&[b'a'; MAX_HEAD + 1]), ParsedRequest::Invalid);
    }

    proptest! {
        #[test]
        fn survives_arbitrary_input(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let ParsedRequest::Whole { bytes: taken, .. } = parse_request(&bytes) {
                prop_assert!(taken <= bytes.len());
            }
        }
    }
}
