//! Errors of setting up a transport. The result of a single request is a
//! [`Failure`](veeksha_endpoint::Failure), not an error.

use std::path::PathBuf;

/// A transport that cannot start, or an untimed request that failed.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The URL is invalid.
    #[error("client.api_base `{url}` cannot be used: {reason}")]
    Url {
        /// The URL as given, without credentials.
        url: String,
        /// The problem and the expected form.
        reason: String,
    },
    /// A header cannot be sent.
    #[error("the header `{name}` cannot be sent: {reason}")]
    Header {
        /// Its name. The value is omitted because it may be a secret.
        name: String,
        /// The problem.
        reason: String,
    },
    /// The number of client threads is 0.
    #[error("the number of client threads is 0; at least 1 is needed")]
    NoThreads,
    /// The file of trusted certificates is unusable.
    #[error("the certificate file `{}` cannot be used: {reason}", path.display())]
    CaFile {
        /// Path of the file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The client certificate or its key is unusable.
    #[error("the client certificate `{}` cannot be used: {reason}", path.display())]
    ClientCertificate {
        /// Path of the file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The address of a proxy is invalid.
    #[error("the proxy of `{server}` cannot be used: {reason}")]
    Proxy {
        /// Base URL of the server that the proxy is configured for.
        server: String,
        /// The problem. The address itself is omitted because it may contain a password.
        reason: String,
    },
    /// The target has no servers.
    #[error("the target has no server; name one in client.api_base or client.targets")]
    NoServers,
    /// TLS could not be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    /// A thread or its runtime could not be started.
    #[error("client thread {index} cannot be started: {source}")]
    Thread {
        /// Index of the thread.
        index: usize,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The server is unreachable: the name does not resolve, the connection is refused, or TLS
    /// fails.
    #[error("{url}: {reason}")]
    Unreachable {
        /// URL of the request.
        url: String,
        /// Reason for the failure.
        reason: String,
    },
    /// The proxy of a server is unreachable, refuses the tunnel, or asks for credentials.
    #[error("the proxy {proxy} for {url}: {reason}")]
    ProxyFailed {
        /// Address of the proxy, without its credentials.
        proxy: String,
        /// URL of the request.
        url: String,
        /// Reason for the failure.
        reason: String,
    },
    /// An untimed request got no usable answer.
    #[error("{url}: {reason}")]
    Untimed {
        /// URL of the request.
        url: String,
        /// Reason for the failure.
        reason: String,
    },
    /// A download could not be written.
    #[error("`{}` cannot be written: {source}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}
