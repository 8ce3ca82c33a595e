//! Serialization of requests.

use std::io::Write as _;
use std::ops::Range;

/// A request line and the header fields that are the same for every request. It is built once; each
/// request appends its variable fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTemplate {
    start: Vec<u8>,
    /// Name and position in `start` of each header field.
    fields: Vec<(String, Range<usize>)>,
    empty: EmptyBody,
}

/// Representation of a body of 0 bytes (RFC 9110, section 8.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EmptyBody {
    /// The method expects a body: `content-length: 0` is sent.
    Announced,
    /// The method expects no body: no length is sent.
    Unmentioned,
}

/// Reason why a request cannot be written. Values are omitted because they may be secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The method is not a token.
    #[error("the method `{method}` is not made of letters")]
    Method {
        /// The method as given.
        method: String,
    },
    /// The method is HEAD or CONNECT.
    #[error(
        "the method {method} cannot be used: its answers are framed in another way than the decoder knows"
    )]
    UnframedMethod {
        /// The method as given.
        method: String,
    },
    /// The target contains spaces, control characters or non-ASCII bytes.
    #[error("the target `{target}` has characters that have to be percent-encoded, or is empty")]
    Target {
        /// The target as given.
        target: String,
    },
    /// The header name is not a token.
    #[error("the header name `{name}` is empty or has characters that a name cannot have")]
    HeaderName {
        /// The name as given.
        name: String,
    },
    /// The value contains CR, LF, NUL or another control character.
    #[error("the value of the header `{name}` has a line end or another control character")]
    HeaderValue {
        /// Name of the header.
        name: String,
    },
    /// A framing header was given. This crate itself sets the length of the body.
    #[error("the header `{name}` cannot be set: the body's length is written for each request")]
    Framing {
        /// `content-length` or `transfer-encoding`.
        name: String,
    },
    /// `host` is missing or repeated (RFC 9112, section 3.2).
    #[error(
        "a request needs the header `host` exactly once among those of its template, and has it {count} times"
    )]
    Host {
        /// Number of occurrences.
        count: usize,
    },
}

impl RequestTemplate {
    /// Builds the request line and the constant header fields, in the given order. `host` must be
    /// one of them.
    ///
    /// # Errors
    /// If a part cannot be sent unchanged or would change where the request ends, and for HEAD and
    /// CONNECT.
    pub fn new(method: &str, target: &str, headers: &[(&str, &[u8])]) -> Result<Self, RequestError> {
        if !is_token(method) {
            return Err(RequestError::Method {
                method: method.escape_debug().to_string(),
            });
        }
        if matches!(method, "HEAD" | "CONNECT") {
            return Err(RequestError::UnframedMethod {
                method: method.to_owned(),
            });
        }
        if target.is_empty() || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(RequestError::Target {
                target: target.escape_debug().to_string(),
            });
        }
        let count = headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
            .count();
        if count != 1 {
            return Err(RequestError::Host { count });
        }
        let mut start = format!("{method} {target} HTTP/1.1\r\n").into_bytes();
        let mut fields = Vec::with_capacity(headers.len());
        for (name, value) in headers {
            let begin = start.len();
            push_field(&mut start, name, value)?;
            fields.push(((*name).to_owned(), begin..start.len()));
        }
        let empty = if matches!(method, "POST" | "PUT" | "PATCH") {
            EmptyBody::Announced
        } else {
            EmptyBody::Unmentioned
        };
        Ok(Self { start, fields, empty })
    }

    /// Appends a request's head to `out`: the template, the `extra` fields in the given order,
    /// which replace fields of the template with the same name, and the length of the body that the
    /// caller appends after it. A length of 0 is omitted if the method expects no body.
    ///
    /// # Errors
    /// If an extra field cannot be sent unchanged, is a second `host`, or would change where the
    /// request ends. `out` is then unchanged.
    pub fn write(
        &self,
        out: &mut Vec<u8>,
        extra: &[(&str, &str)],
        content_length: usize,
    ) -> Result<(), RequestError> {
        let begin = out.len();
        let size: usize = extra
            .iter()
            .map(|(name, value)| name.len() + value.len() + 4)
            .sum();
        out.reserve(self.start.len() + size + "content-length: 18446744073709551615\r\n\r\n".len());
        self.write_start(out, extra);
        for (name, value) in extra {
            let pushed = if name.eq_ignore_ascii_case("host") {
                Err(RequestError::Host { count: 2 })
            } else {
                push_field(out, name, value.as_bytes())
            };
            if let Err(error) = pushed {
                out.truncate(begin);
                return Err(error);
            }
        }
        if content_length > 0 || self.empty == EmptyBody::Announced {
            // Writing to memory does not fail.
            let _ = write!(out, "content-length: {content_length}\r\n");
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }
}

impl RequestTemplate {
    /// Appends the template without the fields that `replaced` has.
    fn write_start(&self, out: &mut Vec<u8>, replaced: &[(&str, &str)]) {
        let mut copied = 0;
        for (name, range) in &self.fields {
            if replaced.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                out.extend_from_slice(&self.start[copied..range.start]);
                copied = range.end;
            }
        }
        out.extend_from_slice(&self.start[copied..]);
    }
}

fn push_field(out: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), RequestError> {
    if !is_token(name) {
        return Err(RequestError::HeaderName {
            name: name.escape_debug().to_string(),
        });
    }
    if name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding") {
        return Err(RequestError::Framing {
            name: name.to_owned(),
        });
    }
    if value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(RequestError::HeaderValue {
            name: name.to_owned(),
        });
    }
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Returns true for a token (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: (&str, &[u8]) = ("host", b"h:1");

    #[test]
    fn extra_field_replaces_that_of_the_template() {
        let headers = [HOST, ("Accept", b"*/*".as_slice()), ("x-a", b"1"), ("x-b", b"2")];
        let template = RequestTemplate::new("POST", "/", &headers).unwrap();
        let mut out = Vec::new();
        template
            .write(&mut out, &[("accept", "a"), ("X-B", "b")], 0)
            .unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "POST / HTTP/1.1\r\nhost: h:1\r\nx-a: 1\r\naccept: a\r\nX-B: b\r\ncontent-length: 0\r\n\r\n"
        );
    }

    fn written(method: &str, extra: &[(&str, &str)], length: usize) -> Result<String, RequestError> {
        let mut out = b"kept".to_vec();
        let template = RequestTemplate::new(method, "/v1/x?y=%20", &[HOST, ("Accept", b"*/*")]).unwrap();
        let result = template.write(&mut out, extra, length);
        let text = String::from_utf8(out).unwrap();
        let request = text.strip_prefix("kept").unwrap().to_owned();
        if result.is_err() {
            assert_eq!(request, "", "an error leaves nothing behind");
        }
        result.map(|()| request)
    }

    #[test]
    fn request_consists_of_template_extra_fields_and_length() {
        assert_eq!(
            written("POST", &[("x-request-id", "a\tb"), ("traceparent", "")], 12).unwrap(),
            "POST /v1/x?y=%20 HTTP/1.1\r\nhost: h:1\r\nAccept: */*\r\n\
             x-request-id: a\tb\r\ntraceparent: \r\ncontent-length: 12\r\n\r\n"
        );
    }

    #[test]
    fn no_body_is_announced_only_where_one_is_expected() {
        let plain = "/v1/x?y=%20 HTTP/1.1\r\nhost: h:1\r\nAccept: */*\r\n";
        assert_eq!(
            written("POST", &[], 0).unwrap(),
            format!("POST {plain}content-length: 0\r\n\r\n")
        );
        assert_eq!(written("GET", &[], 0).unwrap(), format!("GET {plain}\r\n"));
        assert_eq!(
            written("GET", &[], 3).unwrap(),
            format!("GET {plain}content-length: 3\r\n\r\n")
        );
    }

    #[test]
    fn refuses_bytes_that_would_change_the_request() {
        let new = |method, target, headers: &[(&str, &[u8])]| {
            RequestTemplate::new(method, target, headers).unwrap_err()
        };
        for method in ["", "PO ST", "GET\r\n", "P\u{d6}ST", "GET/"] {
            assert!(
                matches!(new(method, "/", &[HOST]), RequestError::Method { .. }),
                "{method:?}"
            );
        }
        for method in ["HEAD", "CONNECT"] {
            assert!(matches!(
                new(method, "/", &[HOST]),
                RequestError::UnframedMethod { .. }
            ));
        }
        for target in ["", "/a b", "/a\r\nx: y", "/\0", "/\u{e4}", "/\t", "/\x7f"] {
            assert!(
                matches!(new("GET", target, &[HOST]), RequestError::Target { .. }),
                "{target:?}"
            );
        }
        for name in ["", "a b", "a:", "a\r", "\u{e4}", "a\0"] {
            let error = new("GET", "/", &[HOST, (name, b"v")]);
            assert!(matches!(error, RequestError::HeaderName { .. }), "{name:?}");
            assert!(matches!(
                written("GET", &[(name, "v")], 0),
                Err(RequestError::HeaderName { .. })
            ));
        }
        for value in ["a\rb", "a\nb", "a\r\nb: c", "\0", "\x7f", "\x1b[m"] {
            let error = new("GET", "/", &[HOST, ("n", value.as_bytes())]);
            assert_eq!(
                error,
                RequestError::HeaderValue { name: "n".to_owned() },
                "{value:?}"
            );
            assert!(!error.to_string().contains(value), "a value may be a secret");
            assert_eq!(written("GET", &[("ok", "1"), ("n", value)], 0), Err(error));
        }
        for name in ["Content-Length", "transfer-encoding"] {
            assert!(matches!(
                new("GET", "/", &[HOST, (name, b"1")]),
                RequestError::Framing { .. }
            ));
            assert!(matches!(
                written("GET", &[(name, "1")], 0),
                Err(RequestError::Framing { .. })
            ));
        }
    }

    #[test]
    fn there_is_one_host() {
        let hosts = |headers: &[(&str, &[u8])]| RequestTemplate::new("GET", "/", headers);
        assert_eq!(hosts(&[]), Err(RequestError::Host { count: 0 }));
        assert_eq!(
            hosts(&[HOST, ("Host", b"b")]),
            Err(RequestError::Host { count: 2 })
        );
        assert_eq!(
            written("GET", &[("HOST", "b")], 0),
            Err(RequestError::Host { count: 2 })
        );
    }

    #[test]
    fn bytes_beyond_ascii_are_allowed_in_values() {
        let template = RequestTemplate::new("GET", "/", &[HOST, ("n", b"caf\xe9")]).unwrap();
        let mut out = Vec::new();
        template.write(&mut out, &[("m", "caf\u{e9}")], 0).unwrap();
        assert_eq!(
            out,
            b"GET / HTTP/1.1\r\nhost: h:1\r\nn: caf\xe9\r\nm: caf\xc3\xa9\r\n\r\n"
        );
    }
}
