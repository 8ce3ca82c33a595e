//! A server prepared for requests: the address to connect to and the constant head of every request
//! to it.

use hyper::http::uri::Uri;
use tokio_rustls::TlsConnector;
use veeksha_http1::RequestTemplate;

use crate::config::{ConnectionPolicy, HttpProtocol, TransportConfig};
use crate::error::TransportError;
use crate::proxy::Proxy;
use crate::request_headers::RequestHeaders;
use crate::target::Server;
use crate::tls::{connector, set_alpn};
use crate::url::ServerAddress;

/// One server of a target.
pub(crate) struct PreparedServer {
    pub(crate) address: ServerAddress,
    pub(crate) tls: Option<TlsConnector>,
    pub(crate) proxy: Option<Proxy>,
    /// True if a proxy opens a tunnel; false if it forwards requests.
    is_tunnelled: bool,
    /// Head of each request with its constant headers, for HTTP/1.1.
    pub(crate) template: RequestTemplate,
    pub(crate) headers: RequestHeaders,
    pub(crate) uri: Uri,
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
        let headers = RequestHeaders::new(config, server)?;
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
                .constant
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
