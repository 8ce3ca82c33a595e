//! Validation of the endpoint that a codec describes. The checks run once, so that sending a
//! request cannot fail because of it.

use serde_json::{Map, Value};
use veeksha_model::{Framing, is_reserved_header};
use veeksha_ports::EndpointShape;

use crate::bindings::endpoint_codec as wit;
use crate::text::{cut, grouped};

/// Maximum length of the path, in bytes.
const PATH_BYTES: usize = 4 << 10;
/// Maximum length of all headers, in bytes.
const HEADER_BYTES: usize = 16 << 10;
/// Maximum length of the request's template, in bytes.
const REQUEST_BYTES: usize = 1 << 20;

/// Returns the endpoint's shape, if requests can be sent with it.
pub(crate) fn shape(endpoint: wit::Endpoint) -> Result<EndpointShape, String> {
    let path = match endpoint.path.strip_prefix('/') {
        Some(rest) => rest.to_owned(),
        None => endpoint.path,
    };
    self::path(&path)?;
    headers(&endpoint.headers)?;
    request(&endpoint.request)?;
    Ok(EndpointShape {
        path,
        headers: endpoint.headers,
        request: endpoint.request,
        framing: match endpoint.framing {
            wit::Framing::EventStream => Framing::EventStream,
            wit::Framing::Lines => Framing::Lines,
            wit::Framing::Whole => Framing::Whole,
        },
    })
}

fn path(path: &str) -> Result<(), String> {
    if path.len() > PATH_BYTES {
        return Err(too_long("the path has", path.len(), PATH_BYTES));
    }
    let strange = |byte: &u8| !byte.is_ascii_graphic() || matches!(byte, b'#' | b'\\');
    if path.bytes().any(|byte| strange(&byte)) || path.contains("://") {
        return Err(format!(
            "the path `{}` cannot be appended to an address; it is like `api/chat`, with everything else percent-encoded",
            cut(path, 80).escape_debug()
        ));
    }
    Ok(())
}

fn headers(headers: &[(String, String)]) -> Result<(), String> {
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > HEADER_BYTES {
        return Err(too_long("the headers have", bytes, HEADER_BYTES));
    }
    headers.iter().try_for_each(|(name, value)| {
        let shown = || cut(name, 80).escape_debug().to_string();
        // RFC 9110, 5.1 and 5.5: a name is a token; a value has no control characters.
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(token) {
            return Err(format!("`{}` is not a header name", shown()));
        }
        if is_reserved_header(name) {
            return Err(format!("the header `{}` is the host's to send", shown()));
        }
        let visible = |byte: u8| byte.is_ascii_graphic() || byte == b' ' || byte == b'\t';
        if !value.bytes().all(visible) {
            return Err(format!(
                "the value of the header `{}` has characters that cannot be sent",
                shown()
            ));
        }
        Ok(())
    })
}

fn request(request: &str) -> Result<(), String> {
    if request.len() > REQUEST_BYTES {
        return Err(too_long("the request has", request.len(), REQUEST_BYTES));
    }
    match serde_json::from_str::<Map<String, Value>>(request) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!(
            "the request must be a JSON object: {error}, in `{}`",
            cut(request, 80)
        )),
    }
}

fn too_long(what: &str, bytes: usize, most: usize) -> String {
    format!(
        "{what} {} bytes, at most {} are taken",
        grouped(bytes as u64),
        grouped(most as u64)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> wit::Endpoint {
        wit::Endpoint {
            path: "api/chat".into(),
            headers: vec![("x-version".into(), "2024-01-01; beta".into())],
            request: r#"{"model": "{{model}}"}"#.into(),
            framing: wit::Framing::Lines,
        }
    }

    #[test]
    fn a_sound_endpoint_is_taken_as_it_is() {
        let expected = EndpointShape {
            path: "api/chat".into(),
            headers: plain().headers,
            request: plain().request,
            framing: Framing::Lines,
        };
        assert_eq!(shape(plain()), Ok(expected.clone()));
        let rooted = wit::Endpoint {
            path: "/api/chat".into(),
            ..plain()
        };
        assert_eq!(shape(rooted), Ok(expected), "one slash before it changes nothing");
        for path in ["", "generate?alt=sse&key=%20", "a:b@c/~d"] {
            let other = wit::Endpoint {
                path: path.into(),
                ..plain()
            };
            assert_eq!(shape(other).map(|shape| shape.path), Ok(path.to_owned()));
        }
    }

    /// A codec can neither end a request's head early nor select another server.
    #[test]
    fn refuses_paths_that_cannot_be_in_a_request_line() {
        for path in [
            "a b",
            "a\r\nx: y",
            "a#b",
            "http://other/",
            "ä",
            "a\\b",
            "a\0",
            &"p".repeat(5000),
        ] {
            let refused = shape(wit::Endpoint {
                path: path.into(),
                ..plain()
            });
            assert!(refused.is_err_and(|why| why.starts_with("the path ")), "{path}");
        }
    }

    #[test]
    fn headers_that_would_break_a_message_are_refused() {
        let refused = |name: &str, value: &str| {
            let header = (name.to_owned(), value.to_owned());
            let endpoint = wit::Endpoint {
                headers: vec![header],
                ..plain()
            };
            shape(endpoint).unwrap_err()
        };
        for name in ["", "a b", "a:", "ä", "a\n"] {
            assert!(refused(name, "1").ends_with("is not a header name"), "{name:?}");
        }
        for name in ["Host", "content-length", "Transfer-Encoding", "CONNECTION"] {
            assert_eq!(
                refused(name, "1"),
                format!("the header `{name}` is the host's to send")
            );
        }
        for value in ["a\r\nb: c", "\n", "ä", "\0"] {
            assert_eq!(
                refused("x", value),
                "the value of the header `x` has characters that cannot be sent"
            );
        }
        assert!(refused("x", &"v".repeat(17 << 10)).starts_with("the headers have 17,409 bytes"));
    }

    #[test]
    fn a_request_is_a_json_object() {
        for request in ["", "[]", "{", "\"{{messages}}\"", "{} {}"] {
            let refused = shape(wit::Endpoint {
                request: request.into(),
                ..plain()
            });
            assert!(
                refused.is_err_and(|why| why.starts_with("the request must be a JSON object: ")),
                "{request}"
            );
        }
    }
}
