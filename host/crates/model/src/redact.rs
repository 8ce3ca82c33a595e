//! Redaction of configuration values for the terminal and files: a value that is not known to be
//! safe could be a secret.

use std::borrow::Cow;

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
    let host_ends = rest.find('/').unwrap_or(rest.len());
    let (user, rest) = match end_of_user(rest, host_ends) {
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

/// Redacts the addresses in a text: user and password, and the values of parameters that
/// `is_secret` names. All other characters stay, because a text is not a configuration: what is not
/// known to be secret belongs to it. An address ends at white space, a quotation mark or a bracket
/// that addresses cannot contain.
pub fn redact_addresses<'t>(text: &'t str, is_secret: &dyn Fn(&str) -> bool) -> Cow<'t, str> {
    let mut redacted = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(SCHEME_END) {
        let (before, behind) = rest.split_at(at + SCHEME_END.len());
        let ends =
            |letter: char| letter.is_whitespace() || letter.is_control() || "\"'`<>\\".contains(letter);
        let (address, after) = behind.split_at(behind.find(ends).unwrap_or(behind.len()));
        redacted.push_str(before);
        let scheme = before[..at]
            .rsplit(|letter: char| !letter.is_ascii_alphanumeric())
            .next();
        redact_one(scheme.unwrap_or_default(), address, is_secret, &mut redacted);
        rest = after;
    }
    redacted.push_str(rest);
    if redacted == text {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(redacted)
    }
}

/// The end of a scheme.
const SCHEME_END: &str = "://";

/// Appends the redacted form of the part of an address behind `://`.
fn redact_one(scheme: &str, address: &str, is_secret: &dyn Fn(&str) -> bool, redacted: &mut String) {
    let host_ends = address.find(['/', '?', '#']).unwrap_or(address.len());
    let mut rest = address;
    if let Some(at) = end_of_user(address, host_ends) {
        // `ssh://git@host` names an account.
        let is_account = scheme.ends_with("ssh") && !address[..at].contains(':');
        redacted.push_str(if is_account { &address[..at] } else { REDACTED });
        rest = &address[at..];
    }
    for piece in rest.split_inclusive(['?', '#', '&', ';']) {
        let value = piece.trim_end_matches(['?', '#', '&', ';']);
        let separator = &piece[value.len()..];
        match value.split_once('=') {
            Some((name, secret)) if !secret.is_empty() && is_secret(name) => {
                redacted.push_str(name);
                redacted.push('=');
                redacted.push_str(REDACTED);
            }
            // An address may contain another one.
            _ => redacted.push_str(&redact_addresses(value, is_secret)),
        }
        redacted.push_str(separator);
    }
}

/// Returns the position of the `@` after user and password. They belong to the part before
/// `host_ends`; but an unencoded password may contain slashes, and then the part before the first
/// slash does not end in a port.
fn end_of_user(rest: &str, host_ends: usize) -> Option<usize> {
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
    fn redacts_single_addresses_of_a_text() {
        let is_secret = |name: &str| ["token", "sig"].contains(&name);
        for (text, shown) in [
            (
                "Read https://a.b/c and https://d.e/f?token=x now. #More? a=b",
                "Read https://a.b/c and https://d.e/f?token=*** now. #More? a=b",
            ),
            (
                "(ftp://u:p@h/x) me@h.i \"http://t@h\"",
                "(ftp://***@h/x) me@h.i \"http://***@h\"",
            ),
            ("postgres://u:p/w@h/db?x=1", "postgres://***@h/db?x=1"),
            (
                "a://h/?to=b://u:p@i&sig=1#token=2",
                "a://h/?to=b://***@i&sig=***#token=***",
            ),
            ("https://p/https://u:p@h", "https://p/https://***@h"),
            ("ssh://git:pw@host/x", "ssh://***@host/x"),
        ] {
            assert_eq!(redact_addresses(text, &is_secret), shown);
        }
        for text in [
            "https://a.b/@c/d?q=1&k=me@h.i#part",
            "https://a.b?q=me@h.i",
            "https://[::1]:8000/v1\n# Heading\nMore",
            "git+ssh://git@host/x",
            "://",
            "a :// b?token",
            "https://h?token=&sig",
        ] {
            assert!(
                matches!(redact_addresses(text, &is_secret), Cow::Borrowed(_)),
                "{text}"
            );
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
