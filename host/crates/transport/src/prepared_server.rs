//! A server prepared for requests: the address to connect to and the constant head of every request
//! to it.

use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::http::uri::Uri;
use tokio_rustls::TlsConnector;
use veeksha_http1::RequestTemplate;
use veeksha_model::is_reserved_header;

use crate::config::{ConnectionPolicy, HttpProtocol, TransportConfig};
use crate::error::TransportError;
use crate::proxy::Proxy;
use crate::target::{Server, Target};
use crate::tls::{connector, set_alpn};
use crate::url::ServerAddress;

/// Identifies the request in the server's logs as `session/node`, like the files of the run.
pub(crate) static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// One server of a target.
pub(crate) struct PreparedServer {
    pub(crate) address: ServerAddress,
    pub(crate) tls: Option<TlsConnector>,
    pub(crate) proxy: Option<Proxy>,
    /// True if a proxy opens a tunnel; false if it forwards requests.
    is_tunnelled: bool,
    /// Head of each request, for HTTP/1.1.
    pub(crate) template: RequestTemplate,
    /// The same head for HTTP/2.
    pub(crate) headers: HeaderMap,
    pub(crate) uri: Uri,
    /// Set if the user configured a custom request id.
    pub(crate) names_requests: bool,
}

impl PreparedServer {
    /// Checks a server's part of the configuration and reads its certificates.
    pub(crate) fn new(config: &TransportConfig, server: &Server) -> Result<Self, TransportError> {
        let address = ServerAddress::parse(&server.api_base, config.target.path())?;
        let proxy = match &server.proxy {
            Some(proxy) => Some(Proxy::parse(proxy, &server.api_base)?),
            None => None,
        };
        let tls = if address.tls {
            Some(connector(set_alpn(
                crate::tls::client_config(&server.tls)?,
                config.http,
            )))
        } else {
            None
        };
        let headers = headers(&config.target, server)?;
        let scheme = if address.tls { "https" } else { "http" };
        let url = format!("{scheme}://{}{}", address.authority, address.path_and_query);
        // A proxy for plain HTTP needs the absolute URL. A tunnel does not change the request to
        // the server.
        let is_tunnelled = address.tls || config.http == HttpProtocol::Http2;
        let forwarding = proxy.as_ref().filter(|_| !is_tunnelled);
        let target = match forwarding {
            Some(_) => &url,
            None => &address.path_and_query,
        };
        let mut fields: Vec<(&str, &[u8])> = vec![("host", address.authority.as_bytes())];
        fields.extend(
            headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_bytes())),
        );
        if let Some(authorization) = forwarding.and_then(|proxy| proxy.authorization.as_ref()) {
            fields.push(("proxy-authorization", authorization.expose().as_bytes()));
        }
        if config.connections == ConnectionPolicy::Never {
            // The side that closes first keeps the port for a minute, which is better left to the
            // server.
            fields.push(("connection", b"close"));
        }
        let refuse = |reason: String| TransportError::Url {
            url: address.place(),
            reason,
        };
        let template =
            RequestTemplate::new("POST", target, &fields).map_err(|error| refuse(error.to_string()))?;
        let uri = url
            .parse()
            .map_err(|error: hyper::http::uri::InvalidUri| refuse(error.to_string()))?;
        Ok(PreparedServer {
            tls,
            proxy,
            is_tunnelled,
            template,
            names_requests: headers.contains_key(&REQUEST_ID),
            headers,
            uri,
            address,
        })
    }

    /// Returns the proxy if it opens a tunnel instead of forwarding requests.
    pub(crate) fn tunnel(&self) -> Option<&Proxy> {
        self.proxy.as_ref().filter(|_| self.is_tunnelled)
    }

    /// Returns the address at which connections are opened, for messages: the server's, or the
    /// proxy's with the server's.
    pub(crate) fn first_hop(&self) -> String {
        match &self.proxy {
            Some(proxy) => format!("the proxy {} for {}", proxy.place(), self.address.place()),
            None => self.address.place(),
        }
    }

    /// Returns the address that requests are sent to, for messages: the server's, or that of the
    /// proxy that forwards them, with the server's.
    pub(crate) fn peer(&self) -> String {
        if self.is_tunnelled {
            self.address.place()
        } else {
            self.first_hop()
        }
    }
}

/// Returns the headers of every request. Later ones replace earlier ones, in this order: client,
/// API, key, target, server.
fn headers(target: &Target, server: &Server) -> Result<HeaderMap, TransportError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("veeksha-host/", env!("CARGO_PKG_VERSION"))),
    );
    let endpoint = target.api.endpoint.extra_headers().iter();
    let endpoint = endpoint.map(|(name, text)| (&**name, &**text));
    let key = target.key_header(server);
    let key = key.iter().map(|(name, text)| (*name, text.as_str()));
    let own = target.headers.iter().chain(&server.headers);
    let own = own.map(|(name, text)| (name.as_str(), text.as_str()));
    for (name, text) in endpoint.chain(key).chain(own) {
        let refuse = |reason: &str| TransportError::Header {
            name: name.to_owned(),
            reason: reason.to_owned(),
        };
        let parsed: HeaderName = name.parse().map_err(|_| refuse("this is not a header name"))?;
        if is_reserved_header(name) {
            return Err(refuse("the HTTP client sets it"));
        }
        headers.insert(parsed, value(name, text)?);
    }
    for header in headers.values_mut() {
        // Excludes the value from HTTP/2 header compression tables and from debug output.
        header.set_sensitive(true);
    }
    for harmless in [CONTENT_TYPE, ACCEPT, ACCEPT_ENCODING, USER_AGENT] {
        if let Some(header) = headers.get_mut(harmless) {
            header.set_sensitive(false);
        }
    }
    Ok(headers)
}

/// Returns a header value. The error omits the value.
fn value(name: &str, text: &str) -> Result<HeaderValue, TransportError> {
    HeaderValue::from_str(text).map_err(|_| TransportError::Header {
        name: name.to_owned(),
        reason: "its value has a line end or another character that a header cannot carry".to_owned(),
    })
}
