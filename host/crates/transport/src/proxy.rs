//! HTTP proxies: address parsing and tunnel requests.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::http::uri::Uri;
use veeksha_http1::{DecodedPart, Decoder, DecoderLimits};

use crate::api_key::ApiKey;
use crate::error::TransportError;
use crate::url::host_and_port;

/// A proxy that is reached over plain HTTP.
pub(crate) struct Proxy {
    /// Host name or address, without the brackets of IPv6.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Value of `Proxy-Authorization`, if the address contains a user.
    pub(crate) authorization: Option<ApiKey>,
}

impl Proxy {
    /// Parses `http://user:password@host:port`. Errors never contain the address, because it may
    /// contain a password.
    pub(crate) fn parse(address: &str, server: &str) -> Result<Self, TransportError> {
        let refuse = |reason: &str| TransportError::Proxy {
            server: veeksha_model::redact_address(server),
            reason: reason.to_owned(),
        };
        let expected = "expected something like `http://proxy:3128`, with `user:password@` before the name if it asks for them";
        let uri: Uri = address.trim().parse().map_err(|_| refuse(expected))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(refuse(
                    "only proxies that are spoken to in plain http are supported",
                ));
            }
            _ => return Err(refuse(expected)),
        }
        let authority = uri.authority().ok_or_else(|| refuse(expected))?;
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(refuse("the address of a proxy has no path"));
        }
        let authorization = match authority.as_str().rsplit_once('@') {
            Some((userinfo, _)) => {
                let plain = percent_decoded(userinfo)
                    .ok_or_else(|| refuse("its user or password has a `%` without two hexadecimal digits"))?;
                let with_colon = if userinfo.contains(':') { "" } else { ":" };
                let pair = [plain.as_slice(), with_colon.as_bytes()].concat();
                Some(ApiKey::new(format!("Basic {}", BASE64_STANDARD.encode(pair))))
            }
            None => None,
        };
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        if host.is_empty() {
            return Err(refuse(expected));
        }
        Ok(Proxy {
            host,
            port: authority.port_u16().unwrap_or(80),
            authorization,
        })
    }

    /// Returns `host:port`, for messages.
    pub(crate) fn place(&self) -> String {
        host_and_port(&self.host, self.port)
    }

    /// Returns the request for a tunnel to a server (`host:port`).
    pub(crate) fn connect_request(&self, server: &str) -> Vec<u8> {
        let mut request = format!("CONNECT {server} HTTP/1.1\r\nhost: {server}\r\n");
        if let Some(authorization) = &self.authorization {
            request.push_str("proxy-authorization: ");
            request.push_str(authorization.expose());
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        request.into_bytes()
    }
}

/// The fix for status 407.
pub(crate) const CREDENTIALS: &str =
    "; set the user and the password of the proxy in client.proxy, as in `http://user:password@proxy:3128`";

/// State of a proxy's answer.
pub(crate) enum Tunnel {
    /// The answer is incomplete.
    More,
    /// The tunnel is open. Contains the bytes already received through it: with HTTP/2 the server
    /// sends first.
    Open(Vec<u8>),
    /// The proxy refused, or its answer is invalid.
    Refused(String),
}

/// Parser of a proxy's answer. An answer that accepts has no body.
pub(crate) struct TunnelAnswer(Decoder);

impl TunnelAnswer {
    pub(crate) fn new() -> Self {
        TunnelAnswer(Decoder::new(DecoderLimits::default()))
    }

    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> Tunnel {
        loop {
            match self.0.next(&mut bytes) {
                Ok(Some(DecodedPart::Head(head))) if (200..300).contains(&head.status) => {
                    return Tunnel::Open(bytes.to_vec());
                }
                Ok(Some(DecodedPart::Head(head))) => {
                    let remedy = match head.status {
                        407 => CREDENTIALS,
                        _ => "",
                    };
                    return Tunnel::Refused(format!("refuses the tunnel with HTTP {}{remedy}", head.status));
                }
                Ok(Some(_)) => {}
                Ok(None) => return Tunnel::More,
                Err(error) => return Tunnel::Refused(format!("does not answer in HTTP: {error}")),
            }
        }
    }
}

/// Decodes percent escapes: `%41` is `A`. Returns `None` for a `%` that is not followed by two
/// hexadecimal digits.
fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        decoded.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(address: &str) -> (String, Option<String>) {
        let proxy = Proxy::parse(address, "http://h/v1").unwrap();
        let authorization = proxy
            .authorization
            .as_ref()
            .map(|secret| secret.expose().to_owned());
        (proxy.place(), authorization)
    }

    #[test]
    fn parses_host_port_and_user_of_a_proxy() {
        assert_eq!(parsed("http://proxy:3128"), ("proxy:3128".into(), None));
        assert_eq!(parsed("http://[::1]/"), ("[::1]:80".into(), None));
        // RFC 7617, section 2: the example of the specification.
        let expected = Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".to_owned());
        assert_eq!(
            parsed("http://Aladdin:open%20sesame@p:1"),
            ("p:1".into(), expected)
        );
        // Computed with `printf 'u:' | base64`.
        assert_eq!(parsed("http://u@p").1.as_deref(), Some("Basic dTo="));
    }

    #[test]
    fn refuses_invalid_proxy_without_printing_it() {
        for address in [
            "proxy:3128",
            "https://u:hidden@p",
            "socks5://hidden@p",
            "http://u:hidden@p/path",
            "http://u:hid%zzen@p",
            "hidden",
            "",
        ] {
            let error = Proxy::parse(address, "http://h/v1").err().unwrap().to_string();
            assert!(
                error.contains("http://h/v1") && !error.contains("hid"),
                "{address}: {error}"
            );
        }
    }

    #[test]
    fn tunnel_opens_after_2xx_in_any_split() {
        let answer = b"HTTP/1.1 200 Connection established\r\nvia: p\r\n\r\n";
        for cut in 0..answer.len() {
            let mut tunnel = TunnelAnswer::new();
            assert!(matches!(tunnel.take(&answer[..cut]), Tunnel::More));
            assert!(matches!(tunnel.take(&answer[cut..]), Tunnel::Open(rest) if rest.is_empty()));
        }
        let refused = |answer: &[u8]| match TunnelAnswer::new().take(answer) {
            Tunnel::Refused(words) => words,
            _ => panic!("accepted"),
        };
        assert!(refused(b"HTTP/1.1 407 No\r\n\r\n").contains("client.proxy"));
        assert!(refused(b"HTTP/1.1 503 No\r\ncontent-length: 2\r\n\r\nno").contains("HTTP 503"));
        assert!(refused(b"SSH-2.0-x\r\n").contains("HTTP"));
        let early = TunnelAnswer::new().take(b"HTTP/1.1 200 OK\r\n\r\nSETT");
        assert!(matches!(early, Tunnel::Open(rest) if rest == b"SETT"));
    }
}
