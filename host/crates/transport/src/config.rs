//! What a transport is told: where the requests go, and how.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use veeksha_model::Role;

use crate::{Dialect, Secret};

/// Makes one text of a conversation, as the model's chat template does: who speaks and what is said, in order. The error is one
/// line for a person.
pub type RenderConversation = Arc<dyn Fn(&[(Role, &str)]) -> Result<String, String> + Send + Sync>;

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
    /// Which API is spoken.
    pub dialect: Dialect,
    /// The `model` field of every request.
    pub model: String,
    /// Sent as `Authorization: Bearer ...`; `None`: the header is left out.
    pub api_key: Option<Secret>,
    /// The field that limits the answer's tokens (usually [`Dialect::default_max_tokens_param`]); `None`: never sent.
    pub max_tokens_param: Option<String>,
    /// The field that asks for at least as many tokens; `None`: never sent. Only requests whose output is exact carry it.
    pub min_tokens_param: Option<String>,
    /// Value of `ignore_eos`; `None`: the field is left out. Only requests whose output is exact carry it.
    pub ignore_eos: Option<bool>,
    /// Fields added to every request body (Veeksha's `additional_sampling_params`); they win over the host's own.
    pub sampling: Map<String, Value>,
    /// Headers added to every request. A name that the host sends too (except `Host`) is replaced.
    pub headers: Vec<(String, String)>,
    /// How certificates are checked, for `https`.
    pub tls: TlsOptions,
    /// Whether the stream is asked for token counts (`stream_options.include_usage`).
    pub stream_options: bool,
    /// For [`Dialect::Completions`]: the conversation as one text; `None`: its texts, joined with line feeds. It runs on the
    /// client thread before the request is sent, because a conversation has answers that were not known earlier; it belongs to
    /// the time before the send, not to any latency. A conversation of 20 messages of 200 tokens takes a template of the usual size
    /// some 25 us on one core.
    pub render: Option<RenderConversation>,
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
        self.path.as_deref().unwrap_or(self.dialect.default_path())
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
            .field("dialect", &self.dialect)
            .field("model", &self.model)
            .field("api_key", &self.api_key)
            .field("max_tokens_param", &self.max_tokens_param)
            .field("min_tokens_param", &self.min_tokens_param)
            .field("ignore_eos", &self.ignore_eos)
            .field("sampling", &self.sampling)
            .field("headers", &headers)
            .field("tls", &self.tls)
            .field("stream_options", &self.stream_options)
            .field("render", &self.render.is_some())
            .finish()
    }
}
