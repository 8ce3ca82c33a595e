//! Validation of HTTP headers that a workload sets.

use crate::redact::is_reserved_header;

/// The name and the value of an HTTP header.
pub type HeaderField = (String, String);

/// Maximum total size of the headers of one request or one session, in bytes.
const MAX_HEADER_BYTES: usize = 16 << 10;

/// The name of the header with the trace of a request (W3C Trace Context).
pub const TRACEPARENT: &str = "traceparent";

/// Returns the trace id of a `traceparent` of version 00; `None` if it is not valid.
pub fn trace_id_in(traceparent: &str) -> Option<u128> {
    let is_hex = |text: &str, digits| {
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        text.len() == digits && text.bytes().all(is_digit)
    };
    let mut parts = traceparent.split('-');
    let (version, trace) = (parts.next()?, parts.next()?);
    let (span, flags) = (parts.next()?, parts.next()?);
    let is_valid = version == "00" && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    let has_span = span.bytes().any(|byte| byte != b'0');
    let trace_id = u128::from_str_radix(trace, 16).ok().filter(|id| *id != 0)?;
    (is_valid && has_span && parts.next().is_none()).then_some(trace_id)
}

/// The reason for which headers of a workload were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The name is not a token of RFC 9110.
    #[error("the header name {0:?} is not valid: use letters, digits and `-`")]
    Name(String),
    /// The client sets the header itself, or it carries the key of the server.
    #[error("the header `{name}` cannot be set by a workload; {}", reason(.name))]
    Reserved {
        /// Its name.
        name: String,
    },
    /// A name is used twice.
    #[error("the header `{0}` is set twice")]
    Twice(String),
    /// The value contains a line break or another control character.
    #[error("the value of the header `{0}` is not one line of ASCII, or begins or ends with a blank")]
    Value(String),
    /// The value contains a placeholder, which would be sent as it is.
    #[error(
        "the value of the header `{0}` contains `{{{{`, and placeholders are replaced in `client.headers` only; write the \
         value itself, or set the header there"
    )]
    Placeholder(String),
    /// A `traceparent` that servers would ignore.
    #[error(
        "the header `traceparent` is not one of W3C Trace Context: it has the form \
         `00-TRACE-SPAN-FLAGS` with 32, 16 and 2 lower-case hexadecimal digits, and neither id is 0"
    )]
    TraceParent,
    /// The headers are too long.
    #[error("{0} bytes of headers, at most {MAX_HEADER_BYTES} are sent")]
    TooLong(usize),
}

fn reason(name: &str) -> &'static str {
    if is_reserved_header(name) {
        "the client sets it itself"
    } else {
        "keys of servers are set by `client.api_key`"
    }
}

/// Checks the headers of a request or a session.
pub fn check_headers(headers: &[HeaderField]) -> Result<(), HeaderError> {
    let mut bytes = 0;
    for (index, (name, value)) in headers.iter().enumerate() {
        bytes += name.len() + value.len();
        if !is_header_name(name) {
            return Err(HeaderError::Name(name.chars().take(80).collect()));
        }
        let is_key = ["authorization", "proxy-authorization", "x-api-key", "api-key"]
            .iter()
            .any(|key| name.eq_ignore_ascii_case(key));
        if is_key || is_reserved_header(name) {
            return Err(HeaderError::Reserved { name: name.clone() });
        }
        let is_same = |(other, _): &HeaderField| other.eq_ignore_ascii_case(name);
        if headers[..index].iter().any(is_same) {
            return Err(HeaderError::Twice(name.clone()));
        }
        // Leading and trailing blanks are not a part of a value on the wire.
        if value.trim() != value || !is_header_text(value) {
            return Err(HeaderError::Value(name.clone()));
        }
        if value.contains("{{") {
            return Err(HeaderError::Placeholder(name.clone()));
        }
        if name.eq_ignore_ascii_case(TRACEPARENT) && trace_id_in(value).is_none() {
            return Err(HeaderError::TraceParent);
        }
    }
    if bytes > MAX_HEADER_BYTES {
        return Err(HeaderError::TooLong(bytes));
    }
    Ok(())
}

/// Returns true for the name of a header (a token of RFC 9110, section 5.6.2).
pub fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

/// Returns true for text that a header's value may contain: ASCII without control characters other
/// than tabs.
pub fn is_header_text(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte == b'\t' || byte == b' ' || byte.is_ascii_graphic())
}

/// Returns the headers of a session, except those that the request replaces, and then those of the
/// request.
pub(crate) fn merged(session: &[HeaderField], request: Vec<HeaderField>) -> Vec<HeaderField> {
    if session.is_empty() {
        return request;
    }
    let replaced = |name: &str| request.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let kept = session.iter().filter(|(name, _)| !replaced(name));
    let mut merged: Vec<HeaderField> = kept.cloned().collect();
    merged.extend(request);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, value: &str) -> HeaderField {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn refuses_headers_that_cannot_be_sent() {
        let cases = [
            (header("", "x"), HeaderError::Name(String::new())),
            (header("a b", "x"), HeaderError::Name("a b".into())),
            (header("a\r\nb", "x"), HeaderError::Name("a\r\nb".into())),
            (
                header("Transfer-Encoding", "chunked"),
                HeaderError::Reserved {
                    name: "Transfer-Encoding".into(),
                },
            ),
            (
                header("AUTHORIZATION", "Bearer k"),
                HeaderError::Reserved {
                    name: "AUTHORIZATION".into(),
                },
            ),
            (
                header("X-Api-Key", "k"),
                HeaderError::Reserved {
                    name: "X-Api-Key".into(),
                },
            ),
            (header("x-a", "1\r\nx-b: 2"), HeaderError::Value("x-a".into())),
            (header("x-a", "1 "), HeaderError::Value("x-a".into())),
            (header("x-a", "größe"), HeaderError::Value("x-a".into())),
            (
                header("x-a", "{{run.id}}"),
                HeaderError::Placeholder("x-a".into()),
            ),
            (header("Traceparent", "zz"), HeaderError::TraceParent),
            (
                header("x-a", &"v".repeat(MAX_HEADER_BYTES)),
                HeaderError::TooLong(MAX_HEADER_BYTES + 3),
            ),
        ];
        let twice = [header("x-a", "1"), header("X-A", "2")];
        assert_eq!(check_headers(&twice), Err(HeaderError::Twice("X-A".into())));
        for (case, expected) in cases {
            assert_eq!(check_headers(&[case]), Err(expected));
        }
        assert_eq!(
            check_headers(&[header("x-session-id", "s 1"), header("x-empty", "")]),
            Ok(())
        );
    }

    /// The first one is the example of W3C Trace Context, section 3.2.2.
    #[test]
    fn traces_have_the_form_of_the_standard() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let valid = format!("00-{trace}-00f067aa0ba902b7-01");
        assert_eq!(
            trace_id_in(&valid),
            Some(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736)
        );
        for invalid in [
            String::new(),
            "zz".to_owned(),
            valid.replace("00-4", "01-4"),
            valid.to_uppercase(),
            valid.replace(trace, &"0".repeat(32)),
            valid.replace("00f067aa0ba902b7", &"0".repeat(16)),
            valid.replace(trace, &trace[1..]),
            valid.replace("-01", ""),
            format!("{valid}-00"),
            valid.replace('4', "+"),
        ] {
            assert_eq!(trace_id_in(&invalid), None, "{invalid}");
        }
        assert_eq!(check_headers(&[header("traceparent", &valid)]), Ok(()));
    }

    #[test]
    fn header_of_request_replaces_that_of_session() {
        let session = [header("X-Tenant", "a"), header("x-trace", "t")];
        let request = vec![header("x-tenant", "b")];
        assert_eq!(
            merged(&session, request),
            [header("x-trace", "t"), header("x-tenant", "b")]
        );
    }
}
