//! Where requests go: servers, and the way to speak to them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use veeksha_endpoint::{Api, KeyHeader};
use veeksha_model::{Framing, is_safe_header, redact_address};
use veeksha_ports::Codec;

use crate::secret::Secret;
use crate::secret::redact;

/// One or more servers that offer the same, and the way to speak to them.
#[derive(Clone)]
pub struct Target {
    /// The servers; at least one.
    pub servers: Vec<Server>,
    /// How sessions are spread over them.
    pub balance: Balance,
    /// Appended to each server's `api_base` (Veeksha's `address_append_value`); `None`: the dialect's own path.
    pub path: Option<String>,
    /// What requests and answers look like.
    pub api: Api,
    /// Headers added to every request. A name that the host sends too (except `Host`) is replaced.
    pub headers: Vec<(String, String)>,
    /// A plugin that reads the answers, and how they are cut for it; `None`: the dialect reads them.
    pub codec: Option<(Arc<dyn Codec>, Framing)>,
}

/// One server.
#[derive(Clone, Default)]
pub struct Server {
    /// Base URL, for example `http://localhost:8000/v1`; `http` or `https`.
    pub api_base: String,
    /// Sent in the header that the dialect has for it (mostly `Authorization: Bearer ...`); `None`: the header is left out.
    pub api_key: Option<Secret>,
    /// Headers of requests to this server; they win over those of the target.
    pub headers: Vec<(String, String)>,
    /// How certificates are checked, for `https`.
    pub tls: TlsOptions,
    /// Address of a proxy, for example `http://user:password@proxy:3128`; the user and the password are secrets.
    pub proxy: Option<String>,
}

/// How sessions are spread over several servers. A session's requests go to one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Balance {
    /// Session *i* goes to server *i* modulo their number.
    #[default]
    RoundRobin,
    /// A session goes to the server that has the fewest requests in flight when the session's first request is submitted.
    /// The choice holds until 2^20 later sessions have begun; then the session, should it go on, chooses again.
    LeastInFlight,
}

/// How a server's certificate is checked, and what is shown of our own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// A PEM file with certificates that are trusted besides those of the system.
    pub ca_file: Option<PathBuf>,
    /// Accept any certificate. For test servers only.
    pub insecure: bool,
    /// A PEM file with the certificate, and those that lead to its issuer, which the client shows to a server that asks.
    pub client_certificate: Option<PathBuf>,
    /// A PEM file with the key of that certificate; `None`: it is in the same file.
    pub client_key: Option<PathBuf>,
}

impl Server {
    /// A server at a base URL, without a key.
    pub fn at(api_base: impl Into<String>) -> Self {
        Server {
            api_base: api_base.into(),
            ..Server::default()
        }
    }

    fn redact(&self, text: String) -> String {
        let mut text = text;
        if let Some(key) = &self.api_key {
            text = redact(&text, key.expose());
        }
        if let Some(proxy) = &self.proxy
            && let Some((userinfo, _)) = proxy.rsplit_once('@')
        {
            let userinfo = userinfo
                .split_once("://")
                .map_or(userinfo, |(_, userinfo)| userinfo);
            text = redact(&text, userinfo);
            if let Some((_, password)) = userinfo.split_once(':') {
                text = redact(&text, password);
            }
        }
        let query = self.api_base.split_once('?').map_or("", |(_, query)| query);
        for (_, value) in query.split('&').filter_map(|parameter| parameter.split_once('=')) {
            text = redact(&text, value);
        }
        redact_headers(text, &self.headers)
    }
}

impl Target {
    /// One server.
    pub fn single(server: Server, api: Api) -> Self {
        Target {
            servers: vec![server],
            balance: Balance::default(),
            path: None,
            api,
            headers: Vec::new(),
            codec: None,
        }
    }

    /// The path that is appended to `api_base`.
    pub(crate) fn path(&self) -> &str {
        self.path
            .as_deref()
            .unwrap_or_else(|| self.api.endpoint.default_path())
    }

    /// The header that carries a server's key, and its value, where there is one.
    pub(crate) fn key_header(&self, server: &Server) -> Option<(&'static str, String)> {
        let key = server.api_key.as_ref()?.expose();
        Some(match self.api.endpoint.auth() {
            KeyHeader::Bearer => ("authorization", format!("Bearer {key}")),
            KeyHeader::XApiKey => ("x-api-key", key.to_owned()),
        })
    }

    /// Removes every secret that was configured from a text that came from a server.
    pub(crate) fn redact(&self, text: &str) -> String {
        let text = redact_headers(text.to_owned(), &self.headers);
        self.servers.iter().fold(text, |text, server| server.redact(text))
    }
}

fn redact_headers(mut text: String, headers: &[(String, String)]) -> String {
    for (_, value) in headers.iter().filter(|(name, _)| !is_safe_header(name)) {
        text = redact(&text, value);
        // `Bearer KEY`: the key alone is a secret, too.
        if let Some((_, key)) = value.trim().rsplit_once(' ') {
            text = redact(&text, key);
        }
    }
    text
}

/// Names of headers, whose values may be secrets.
fn names(headers: &[(String, String)]) -> Vec<&str> {
    headers.iter().map(|(name, _)| name.as_str()).collect()
}

/// Header values may be secrets, so only their names are shown.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("servers", &self.servers)
            .field("balance", &self.balance)
            .field("path", &self.path)
            .field("api", &self.api)
            .field("headers", &names(&self.headers))
            .field("codec", &self.codec.as_ref().map(|(_, framing)| framing))
            .finish()
    }
}

/// As for [`Target`], and of a proxy only that there is one.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("api_base", &redact_address(&self.api_base))
            .field("api_key", &self.api_key)
            .field("headers", &names(&self.headers))
            .field("tls", &self.tls)
            .field("proxy", &self.proxy.is_some())
            .finish()
    }
}
