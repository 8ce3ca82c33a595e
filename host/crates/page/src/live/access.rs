//! Access control of the live page, without IO.
//!
//! **Other machines** reach the page only if it listens on a non-loopback address, which requires a
//! token.
//!
//! **A foreign web page**, open in a browser on this machine, can send requests to the loopback. It
//! cannot read the responses unless its host name resolves to the loopback (DNS rebinding); then
//! `Host` contains that name. Therefore a page that listens on the loopback requires a loopback
//! name in `Host`, with or without a token. Elsewhere a foreign page has neither the token nor,
//! under its host name, the cookie.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;
use std::net::{IpAddr, SocketAddr};

use hyper::header::{AUTHORIZATION, COOKIE, HOST};
use hyper::{HeaderMap, StatusCode, Uri};

use crate::error::PageError;

/// The access rules.
pub(crate) struct Access {
    token: Option<String>,
    /// True if the server is reachable from this machine only.
    loopback: bool,
    cookie_name: String,
    /// The cookie that replaces the token in the browser; invalid after the run.
    cookie: String,
}

/// The decision on a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AccessDecision {
    /// The request is admitted.
    Admitted,
    /// The request is admitted, and receives the cookie that replaces the token.
    AdmittedWithCookie(String),
    /// The request is refused.
    Refused(StatusCode, &'static str),
}

impl Access {
    pub(crate) fn new(address: SocketAddr, token: Option<String>) -> Result<Access, PageError> {
        if let Some(token) = &token {
            let wrong = |reason| Err(PageError::Token { reason });
            if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return wrong("it has characters that are not visible ASCII");
            }
            if token.len() < 16 {
                return wrong("it is shorter than 16 characters");
            }
            if token.len() > 256 {
                return wrong("it is longer than 256 characters");
            }
        }
        let loopback = address.ip().is_loopback();
        if !loopback && token.is_none() {
            return Err(PageError::Open { address });
        }
        Ok(Access {
            token,
            loopback,
            cookie_name: String::new(),
            cookie: random_name(),
        })
    }

    /// Returns the rules for the actual port. Browsers share cookies between the ports of a
    /// machine, so the port is part of the cookie's name.
    pub(crate) fn at(self, port: u16) -> Access {
        Access {
            cookie_name: format!("veeksha_live_{port}"),
            ..self
        }
    }

    pub(crate) fn admit(&self, uri: &Uri, headers: &HeaderMap) -> AccessDecision {
        let Some(host) = single(headers, HOST.as_str()) else {
            return AccessDecision::Refused(StatusCode::BAD_REQUEST, "one Host header is needed\n");
        };
        if self.loopback && !is_loopback_name(host) {
            return AccessDecision::Refused(
                StatusCode::MISDIRECTED_REQUEST,
                "this page answers to localhost, 127.0.0.1 and [::1] only\n",
            );
        }
        let Some(token) = &self.token else {
            return AccessDecision::Admitted;
        };
        if let Some(given) = uri.query().and_then(token_of_query) {
            return if same(&given, token.as_bytes()) {
                AccessDecision::AdmittedWithCookie(format!(
                    "{}={}; Path=/; HttpOnly; SameSite=Strict",
                    self.cookie_name, self.cookie
                ))
            } else {
                REFUSED
            };
        }
        let bearer = single(headers, AUTHORIZATION.as_str()).and_then(|value| {
            let (scheme, given) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| given.trim())
        });
        let by_bearer = bearer.is_some_and(|given| same(given.as_bytes(), token.as_bytes()));
        let cookies = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let by_cookie = cookies
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(name, value)| name == self.cookie_name && same(value.as_bytes(), self.cookie.as_bytes()));
        if by_bearer || by_cookie {
            AccessDecision::Admitted
        } else {
            REFUSED
        }
    }
}

const REFUSED: AccessDecision = AccessDecision::Refused(
    StatusCode::UNAUTHORIZED,
    "the token of this page is needed: add ?token=... to its address, or send Authorization: Bearer ...\n",
);

/// Returns the value of a header that occurs exactly once.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// Returns true if a `Host` names this machine's loopback, with any port (a tunnel may forward a
/// different one).
fn is_loopback_name(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) => (address, port),
            None => return false,
        },
        None => host.find(':').map_or((host, ""), |colon| host.split_at(colon)),
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || (!port.is_empty() && !port.starts_with(':')) {
        return false;
    }
    if host.starts_with('[') {
        return name
            .parse::<std::net::Ipv6Addr>()
            .is_ok_and(|address| address.is_loopback());
    }
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns the bytes of `token` in a query, with percent escapes decoded.
fn token_of_query(query: &str) -> Option<Vec<u8>> {
    let text = query.split('&').find_map(|pair| pair.strip_prefix("token="))?;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| high * 16 + low),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    Some(bytes)
}

fn hex(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}

/// Returns true if two secrets are equal, in a time that does not depend on the position of a
/// difference. Their length is not secret.
fn same(given: &[u8], wanted: &[u8]) -> bool {
    if given.len() != wanted.len() {
        return false;
    }
    let difference = given.iter().zip(wanted).fold(0, |difference, (given, wanted)| {
        black_box(difference | (given ^ wanted))
    });
    black_box(difference) == 0
}

/// Returns 128 unpredictable bits: SipHash of the empty input under two keys from the system's
/// random source.
fn random_name() -> String {
    let draw = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", draw(), draw())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "a+token&with=16%chars";

    fn admit(access: &Access, uri: &str, headers: &[(&str, &str)]) -> AccessDecision {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: hyper::header::HeaderName = name.parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        access.admit(&uri.parse().unwrap(), &map)
    }

    fn access(address: &str, token: Option<&str>) -> Access {
        Access::new(address.parse().unwrap(), token.map(str::to_owned))
            .unwrap()
            .at(80)
    }

    #[test]
    fn other_machines_need_a_token() {
        for address in ["0.0.0.0:80", "[::]:80", "192.168.1.4:80", "[fe80::1]:80"] {
            let refused = Access::new(address.parse().unwrap(), None);
            assert!(matches!(refused, Err(PageError::Open { .. })), "{address}");
            assert!(Access::new(address.parse().unwrap(), Some(TOKEN.into())).is_ok());
        }
        for address in ["127.0.0.1:80", "[::1]:80", "127.9.9.9:0"] {
            assert!(Access::new(address.parse().unwrap(), None).is_ok(), "{address}");
        }
    }

    #[test]
    fn weak_tokens_are_refused() {
        for token in [
            "",
            "fifteen-letters",
            "sixteen letters!!",
            "sixteen-lettérs!",
            &"x".repeat(257),
        ] {
            let refused = Access::new("127.0.0.1:0".parse().unwrap(), Some(token.into()));
            assert!(matches!(refused, Err(PageError::Token { .. })), "{token}");
        }
    }

    #[test]
    fn the_loopback_answers_to_its_own_names_only() {
        let access = access("127.0.0.1:80", None);
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1",
            "127.0.0.1:1",
            "127.1.2.3",
            "[::1]",
            "[::1]:80",
        ] {
            assert_eq!(
                admit(&access, "/", &[("host", host)]),
                AccessDecision::Admitted,
                "{host}"
            );
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "evil.example:127.0.0.1",
            "localhost:80@evil",
            "[::1].evil",
            "[::1",
            "[::2]",
            "10.0.0.1",
            "0.0.0.0",
            "",
        ] {
            let refused = admit(&access, "/", &[("host", host)]);
            assert!(
                matches!(
                    refused,
                    AccessDecision::Refused(StatusCode::MISDIRECTED_REQUEST, _)
                ),
                "{host}"
            );
        }
        let two = [("host", "localhost"), ("host", "evil.example")];
        for headers in [&two[..], &[]] {
            let refused = admit(&access, "/", headers);
            assert!(matches!(
                refused,
                AccessDecision::Refused(StatusCode::BAD_REQUEST, _)
            ));
        }
    }

    #[test]
    fn a_token_opens_in_three_ways() {
        let access = access("0.0.0.0:80", Some(TOKEN));
        let host = ("host", "bench.example");
        assert_eq!(admit(&access, "/", &[host]), REFUSED);
        let AccessDecision::AdmittedWithCookie(cookie) =
            admit(&access, "/?a=b&token=a%2Btoken%26with=16%25chars", &[host])
        else {
            panic!("the token in the address was refused");
        };
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"));
        assert!(
            !cookie.contains("chars"),
            "the cookie does not give the token away"
        );
        let pair = cookie.split(';').next().unwrap();
        assert_eq!(
            admit(&access, "/data", &[host, ("cookie", &format!("x=y; {pair}"))]),
            AccessDecision::Admitted
        );
        let bearer = format!("bearer {TOKEN}");
        assert_eq!(
            admit(&access, "/data", &[host, ("authorization", &bearer)]),
            AccessDecision::Admitted
        );
    }

    #[test]
    fn what_is_nearly_the_token_is_refused() {
        let access = access("127.0.0.1:80", Some(TOKEN));
        let host = ("host", "localhost");
        for query in [
            "/?token=",
            "/?token=a%2Btoken%26with=16%25char",
            "/?token=a%2Btoken%26with=16%25charS",
            "/?Token=x",
        ] {
            assert_eq!(admit(&access, query, &[host]), REFUSED, "{query}");
        }
        // A valid cookie does not compensate for a wrong token in the address.
        let cookie = format!("veeksha_live_80={}", access.cookie);
        assert_eq!(
            admit(&access, "/?token=wrong", &[host, ("cookie", &cookie)]),
            REFUSED
        );
        for (name, value) in [
            ("authorization", TOKEN.to_owned()),
            ("authorization", format!("Basic {TOKEN}")),
            ("cookie", format!("veeksha_live_81={}", access.cookie)),
            ("cookie", "veeksha_live_80=".to_owned()),
        ] {
            assert_eq!(
                admit(&access, "/", &[host, (name, &value)]),
                REFUSED,
                "{name}: {value}"
            );
        }
        // With a token, a foreign host name is refused on the loopback too.
        let bearer = format!("Bearer {TOKEN}");
        let foreign = admit(
            &access,
            "/",
            &[("host", "evil.example"), ("authorization", &bearer)],
        );
        assert!(matches!(
            foreign,
            AccessDecision::Refused(StatusCode::MISDIRECTED_REQUEST, _)
        ));
    }

    #[test]
    fn cookies_differ_from_run_to_run() {
        assert_ne!(random_name(), random_name());
    }
}
