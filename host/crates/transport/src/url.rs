//! Conversion of `client.api_base` and a path to the address of a connection and the request line.

use hyper::http::uri::{Authority, Uri};

use veeksha_model::redact_address;

use crate::error::TransportError;

/// Address of a connection and the request target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerAddress {
    /// Set for `https`.
    pub(crate) tls: bool,
    /// Host name or address, without the brackets of IPv6.
    pub(crate) host: String,
    /// TCP port.
    pub(crate) port: u16,
    /// Value of the `Host` header.
    pub(crate) authority: String,
    /// Request target: path and query.
    pub(crate) path_and_query: String,
}

impl ServerAddress {
    /// Joins base URL and path. A query of the base (`?api-version=...`) follows the joined path.
    pub(crate) fn parse(api_base: &str, path: &str) -> Result<Self, TransportError> {
        let base = api_base.trim();
        let refuse = |reason: &str| TransportError::Url {
            url: redact_address(base),
            reason: reason.to_owned(),
        };
        if !base.contains("://") {
            return Err(refuse(
                "the scheme is missing; expected something like `http://localhost:8000/v1`",
            ));
        }
        let uri: Uri = base.parse().map_err(|error| {
            refuse(&format!(
                "{error}; expected something like `http://localhost:8000/v1`"
            ))
        })?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(other) => return Err(refuse(&format!("the scheme `{other}` is not http or https"))),
            None => {
                return Err(refuse(
                    "the scheme is missing; expected something like `http://localhost:8000/v1`",
                ));
            }
        };
        let authority: &Authority = uri.authority().ok_or_else(|| refuse("the host is missing"))?;
        if authority.as_str().contains('@') {
            return Err(refuse(
                "credentials do not belong in the URL; use client.api_key or a header",
            ));
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        if host.is_empty() {
            return Err(refuse("the host is missing"));
        }
        if authority.as_str().len() > authority.host().len() && authority.port_u16().is_none() {
            return Err(refuse("the port is not a number between 0 and 65535"));
        }
        let mut path_and_query = uri.path().trim_end_matches('/').to_owned();
        let path = path.trim_matches('/');
        if !path.is_empty() {
            path_and_query.push('/');
            path_and_query.push_str(path);
        }
        if path_and_query.is_empty() {
            path_and_query.push('/');
        }
        if let Some(query) = uri.query() {
            path_and_query.push(if path.contains('?') { '&' } else { '?' });
            path_and_query.push_str(query);
        }
        path_and_query
            .parse::<hyper::http::uri::PathAndQuery>()
            .map_err(|error| refuse(&format!("with the path `{path}`: {error}")))?;
        Ok(ServerAddress {
            tls,
            port: authority.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            authority: authority.as_str().to_owned(),
            host,
            path_and_query,
        })
    }

    /// Returns `host:port`, for messages.
    pub(crate) fn place(&self) -> String {
        host_and_port(&self.host, self.port)
    }
}

/// Returns `host:port`, with brackets around an IPv6 address.
pub(crate) fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(base: &str, path: &str) -> (bool, String, String) {
        let address = ServerAddress::parse(base, path).unwrap();
        (address.tls, address.place(), address.path_and_query)
    }

    #[test]
    fn base_and_path_are_joined_with_one_slash() {
        for base in ["http://h:1/v1", "http://h:1/v1/", " http://h:1/v1 "] {
            for path in ["chat/completions", "/chat/completions"] {
                assert_eq!(
                    parsed(base, path),
                    (false, "h:1".into(), "/v1/chat/completions".into())
                );
            }
        }
        assert_eq!(parsed("http://h", ""), (false, "h:80".into(), "/".into()));
        assert_eq!(
            parsed("https://h/v1?a=b", "x"),
            (true, "h:443".into(), "/v1/x?a=b".into())
        );
        assert_eq!(
            parsed("http://[::1]:9/", "x"),
            (false, "[::1]:9".into(), "/x".into())
        );
        assert_eq!(ServerAddress::parse("http://[::1]:9", "").unwrap().host, "::1");
    }

    #[test]
    fn refuses_unusable_address_with_a_reason() {
        for (base, reason) in [
            ("localhost:8000/v1", "scheme"),
            ("localhost", "scheme"),
            ("ftp://h/v1", "not http or https"),
            ("http://h:99999/", "port"),
            ("http://", "cannot be used"),
            ("", "scheme"),
            ("http://u:pass@h/", "credentials"),
            ("ftp://h/v1?key=pass@", "not http or https"),
        ] {
            let message = ServerAddress::parse(base, "x").unwrap_err().to_string();
            assert!(message.contains(reason), "{base}: {message}");
            assert!(!message.contains("pass@"), "{message}");
        }
    }
}
