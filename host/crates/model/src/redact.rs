//! Redaction of configuration values for the terminal and files: a value that is not known to be
//! safe could be a secret.

/// Replacement for a secret.
pub const REDACTED: &str = "***";

/// Headers that carry no secret. Any other header may.
const SAFE_HEADERS: [&str; 14] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "anthropic-beta",
    "anthropic-version",
    "cache-control",
    "connection",
    "content-encoding",
    "content-type",
    "openai-beta",
    "traceparent",
    "user-agent",
    "x-correlation-id",
    "x-request-id",
];

/// Parameters of an address that carry no secret.
const SAFE_PARAMETERS: [&str; 3] = ["api-version", "api_version", "version"];

/// Headers that control the connection or the length and coding of a message. The client sets them
/// itself.
const RESERVED_HEADERS: [&str; 11] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns true if neither a scenario nor a plugin can set a header of this name.
pub fn is_reserved_header(name: &str) -> bool {
    RESERVED_HEADERS
        .iter()
        .any(|reserved| name.eq_ignore_ascii_case(reserved))
}

/// Returns true if the value of a header of this name may be printed. This is an allow list,
/// because a list of names that suggest secrets is never complete: `x-jwt`, `sessionid`, `x-pass`.
pub fn is_safe_header(name: &str) -> bool {
    SAFE_HEADERS.iter().any(|safe| name.eq_ignore_ascii_case(safe))
}

/// Redacts user, password, fragment and all parameter values except `api-version` in an address.
/// Malformed addresses are redacted too, because error messages print them.
pub fn redact_address(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), address),
    };
    let (user, rest) = match end_of_user(rest) {
        Some(at) => (format!("{REDACTED}@"), &rest[at + 1..]),
        None => (String::new(), rest),
    };
    let (place, hidden) = match rest.split_once('#') {
        Some((place, _)) => (place, format!("#{REDACTED}")),
        None => (rest, String::new()),
    };
    let (place, parameters) = match place.split_once('?') {
        Some((place, parameters)) => (place, format!("?{}", shown_parameters(parameters))),
        None => (place, String::new()),
    };
    format!("{scheme}{user}{place}{parameters}{hidden}")
}

/// Returns the position of the `@` after user and password. They belong before the first slash; but
/// an unencoded password may contain slashes, and then the part before the first slash does not end
/// in a port.
fn end_of_user(rest: &str) -> Option<usize> {
    let host_ends = rest.find('/').unwrap_or(rest.len());
    if let Some(at) = rest[..host_ends].rfind('@') {
        return Some(at);
    }
    let port = rest[..host_ends].rsplit_once(':').map(|(_, port)| port);
    let is_port = |port: &str| {
        let port = port.split(['?', '#']).next().unwrap_or_default();
        port.ends_with(']') || port.chars().all(|digit| digit.is_ascii_digit())
    };
    match port {
        Some(port) if !is_port(port) => rest.rfind('@'),
        _ => None,
    }
}

fn shown_parameters(parameters: &str) -> String {
    let shown = parameters
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, _)) if SAFE_PARAMETERS.contains(&name) => parameter.to_owned(),
            Some((name, _)) => format!("{name}={REDACTED}"),
            None => REDACTED.to_owned(),
        });
    shown.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redacts_everything_but_location_in_addresses() {
        for (address, shown) in [
            ("http://localhost:8000/v1", "http://localhost:8000/v1"),
            ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
            ("sim://llama-8b", "sim://llama-8b"),
            ("https://host/@me/v1", "https://host/@me/v1"),
            ("nonsense", "nonsense"),
            ("https://me:pw@host/v1", "https://***@host/v1"),
            ("https://token@host/v1", "https://***@host/v1"),
            ("https://me:p@ss@host", "https://***@host"),
            ("https://me:p/w@host/v1", "https://***@host/v1"),
            ("https://me:p?w@host/v1", "https://***@host/v1"),
            ("me:pw@host", "***@host"),
            (
                "https://h/v1?api-version=2&api_key=abc&b=c&flag",
                "https://h/v1?api-version=2&api_key=***&b=***&***",
            ),
            ("https://h?key=a://b@c", "https://h?key=***"),
            ("https://h/v1#token", "https://h/v1#***"),
        ] {
            assert_eq!(redact_address(address), shown);
        }
    }

    #[test]
    fn only_listed_headers_are_safe() {
        for name in ["Accept", "content-type", "X-Request-ID", "anthropic-version"] {
            assert!(is_safe_header(name), "{name}");
        }
        for name in ["bearer", "x-jwt", "sessionid", "x-pass", "x-access", "Cookie", ""] {
            assert!(!is_safe_header(name), "{name}");
        }
    }
}
