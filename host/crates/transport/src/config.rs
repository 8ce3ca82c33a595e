//! What a transport is told: where the requests go, and how.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use veeksha_dialect::Api;

use crate::Secret;

/// Everything an [`crate::HttpTransport`] needs to know.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    /// Where requests go and what they look like.
    pub target: Target,
    /// Total deadline of a request: from the moment a client thread takes it until the end of its answer, connecting
    /// and a retry included. A server that trickles does not extend it.
    pub request_timeout: Duration,
    /// Number of client threads; at least 1.
    pub threads: usize,
}

/// A server and the way to speak to it.
#[derive(Clone)]
pub struct Target {
    /// Base URL, for example `http://localhost:8000/v1`; `http` or `https`.
    pub api_base: String,
    /// Appended to `api_base` (Veeksha's `address_append_value`); `None`: the dialect's own path.
    pub path: Option<String>,
    /// What requests and answers look like.
    pub api: Api,
    /// Sent as `Authorization: Bearer ...`; `None`: the header is left out.
    pub api_key: Option<Secret>,
    /// Headers added to every request. A name that the host sends too (except `Host`) is replaced.
    pub headers: Vec<(String, String)>,
    /// How certificates are checked, for `https`.
    pub tls: TlsOptions,
}

/// How a server's certificate is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// A PEM file with certificates that are trusted besides those of the system.
    pub ca_file: Option<PathBuf>,
    /// Accept any certificate. For test servers only.
    pub insecure: bool,
}

impl Target {
    /// The path that is appended to `api_base`.
    pub(crate) fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(self.api.dialect.default_path())
    }

    /// Removes every secret that was configured from a text that came from the server.
    pub(crate) fn redact(&self, text: &str) -> String {
        let mut text = match &self.api_key {
            Some(key) => crate::secret::redact(text, key.expose()),
            None => text.to_owned(),
        };
        for (_, value) in self.headers.iter().filter(|(name, _)| names_a_secret(name)) {
            text = crate::secret::redact(&text, value);
            // `Bearer KEY`: the key alone is a secret, too.
            if let Some((_, key)) = value.trim().rsplit_once(' ') {
                text = crate::secret::redact(&text, key);
            }
        }
        text
    }
}

/// Whether a header's value is to be kept out of every message, judged by its name.
pub(crate) fn names_a_secret(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    ["key", "auth", "token", "secret", "cookie", "password"]
        .iter()
        .any(|word| header.contains(word))
}

/// Header values may be secrets, so only their names are shown.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Target")
            .field("api_base", &self.api_base)
            .field("path", &self.path)
            .field("api", &self.api)
            .field("api_key", &self.api_key)
            .field("headers", &headers)
            .field("tls", &self.tls)
            .finish()
    }
}
