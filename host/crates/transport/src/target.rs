//! Targets of requests: servers and their API.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use veeksha_endpoint::{Api, HeaderTemplate, KeyHeader};
use veeksha_model::{Framing, Request, is_safe_header, redact_address};
use veeksha_ports::Codec;

use crate::api_key::ApiKey;
use crate::api_key::redact;

/// One or more equivalent servers, and the API to use with them.
#[derive(Clone)]
pub struct Target {
    /// The servers; at least one.
    pub servers: Vec<Server>,
    /// Assignment of sessions to the servers.
    pub balance: BalanceRule,
    /// Appended to each server's `api_base` (Veeksha's `address_append_value`). `None`: the default
    /// path of the API.
    pub path: Option<String>,
    /// Format of requests and answers.
    pub api: Api,
    /// Headers added to every request, whose values may have the placeholders of a
    /// [`HeaderTemplate`]. They replace headers of the same name that the host sends (except
    /// `Host`).
    pub headers: Vec<(String, String)>,
    /// A plugin that decodes the answers, and the framing of its input. `None`: the built-in
    /// decoder of the API is used.
    pub codec: Option<(Arc<dyn Codec>, Framing)>,
    /// Secrets in the bodies of requests, which a server may repeat in an answer or a message.
    pub body_secrets: Vec<String>,
}

/// One server of a target.
#[derive(Clone, Default)]
pub struct Server {
    /// Base URL, for example `http://localhost:8000/v1`; `http` or `https`.
    pub api_base: String,
    /// Sent in the header that the API defines for it (mostly `Authorization: Bearer ...`). `None`:
    /// the header is omitted.
    pub api_key: Option<ApiKey>,
    /// Headers of requests to this server, with placeholders as in those of the target. They take
    /// precedence over those of the target.
    pub headers: Vec<(String, String)>,
    /// Settings of certificate checks, for `https`.
    pub tls: TlsOptions,
    /// Address of a proxy, for example `http://user:password@proxy:3128`. The user and the password
    /// are secrets.
    pub proxy: Option<String>,
}

/// Assignment of sessions to several servers. All requests of a session go to one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BalanceRule {
    /// Session *i* goes to server *i* modulo the number of servers.
    #[default]
    RoundRobin,
    /// A session goes to the server with the fewest requests in flight when the session's first
    /// request is submitted. The choice holds until 2^20 later sessions have begun; a session that
    /// continues after that is assigned again.
    LeastInFlight,
}

/// Settings of the server certificate check and of the client certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// A PEM file with certificates that are trusted in addition to those of the system.
    pub ca_file: Option<PathBuf>,
    /// Accepts any certificate. For test servers only.
    pub insecure: bool,
    /// A PEM file with the certificate and its chain, which the client presents to a server that
    /// requests one.
    pub client_certificate: Option<PathBuf>,
    /// A PEM file with the key of that certificate. `None`: the key is in the same file.
    pub client_key: Option<PathBuf>,
}

impl Server {
    /// Returns a server at a base URL, without a key.
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
    /// Returns a target with one server.
    pub fn single(server: Server, api: Api) -> Self {
        Target {
            servers: vec![server],
            balance: BalanceRule::default(),
            path: None,
            api,
            headers: Vec::new(),
            codec: None,
            body_secrets: Vec::new(),
        }
    }

    /// Returns the path that is appended to `api_base`.
    pub(crate) fn path(&self) -> &str {
        self.path
            .as_deref()
            .unwrap_or_else(|| self.api.endpoint.default_path())
    }

    /// Returns the name and the value of the header with the server's key, if it has one.
    pub(crate) fn key_header(&self, server: &Server) -> Option<(&'static str, String)> {
        let key = server.api_key.as_ref()?.expose();
        Some(match self.api.endpoint.auth() {
            KeyHeader::Bearer => ("authorization", format!("Bearer {key}")),
            KeyHeader::XApiKey => ("x-api-key", key.to_owned()),
        })
    }

    /// Removes every configured secret from a text that a server sent.
    pub(crate) fn redact(&self, text: &str) -> String {
        let mut text = redact_headers(text.to_owned(), &self.headers);
        for secret in &self.body_secrets {
            text = redact(&text, secret);
        }
        self.servers.iter().fold(text, |text, server| server.redact(text))
    }

    /// Removes these secrets and the values of headers that the workload set for a request.
    pub(crate) fn redact_for(&self, request: &Request, text: &str) -> String {
        redact_headers(self.redact(text), &request.headers)
    }
}

fn redact_headers(mut text: String, headers: &[(String, String)]) -> String {
    for (_, value) in headers.iter().filter(|(name, _)| !is_safe_header(name)) {
        for secret in HeaderTemplate::literals(value) {
            text = redact(&text, secret);
            // `Bearer KEY`: the key alone is also a secret.
            if let Some((_, key)) = secret.trim().rsplit_once(' ') {
                text = redact(&text, key);
            }
        }
    }
    text
}

/// Returns the names of headers, whose values may be secrets.
fn names(headers: &[(String, String)]) -> Vec<&str> {
    headers.iter().map(|(name, _)| name.as_str()).collect()
}

/// Header values may be secrets, so only their names are printed.
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

/// As for [`Target`]. Of a proxy, only its presence is printed.
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
