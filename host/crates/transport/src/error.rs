//! Why a transport could not be set up. What happens to a single request is a [`crate::Failure`], not an error.

use std::path::PathBuf;

/// A transport that cannot start, or an untimed request that failed.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The URL is of no use.
    #[error("client.api_base `{url}` cannot be used: {reason}")]
    Url {
        /// What was given, without credentials.
        url: String,
        /// What is wrong with it and what would be right.
        reason: String,
    },
    /// A header cannot be sent.
    #[error("the header `{name}` cannot be sent: {reason}")]
    Header {
        /// Its name; the value may be a secret.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// No client threads.
    #[error("the number of client threads is 0; at least 1 is needed")]
    NoThreads,
    /// The file of trusted certificates is of no use.
    #[error("the certificate file `{}` cannot be used: {reason}", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The client's own certificate or its key is of no use.
    #[error("the client certificate `{}` cannot be used: {reason}", path.display())]
    ClientCertificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A proxy's address is of no use.
    #[error("the proxy of `{server}` cannot be used: {reason}")]
    Proxy {
        /// The server, by its base URL.
        server: String,
        /// What is wrong; the address itself may hold a password.
        reason: String,
    },
    /// There is no server to send requests to.
    #[error("the target has no server; name one in client.api_base or client.targets")]
    NoServers,
    /// TLS could not be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    /// A thread or its runtime could not be started.
    #[error("client thread {index} cannot be started: {source}")]
    Thread {
        /// Which one.
        index: usize,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Nothing answers at the address: the name does not resolve, the connection is refused, or TLS fails.
    #[error("{url}: {reason}")]
    Unreachable {
        /// What was asked.
        url: String,
        /// What happened.
        reason: String,
    },
    /// An untimed request got no usable answer.
    #[error("{url}: {reason}")]
    Untimed {
        /// What was asked.
        url: String,
        /// What happened.
        reason: String,
    },
    /// A download could not be written.
    #[error("`{}` cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}
