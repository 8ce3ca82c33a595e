//! Errors of starting the live page.

use std::io;
use std::net::SocketAddr;

/// An error that prevents the live page from being served.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// Other machines could reach the page without authentication.
    #[error(
        "the live page at {address} could be read by other machines; set a token for it, or listen on 127.0.0.1 or [::1]"
    )]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// The token is too weak or cannot be sent.
    #[error("the token of the live page is not usable: {reason}; use 16 to 256 visible ASCII characters")]
    Token {
        /// The problem with the token.
        reason: &'static str,
    },
    /// Listening on the address failed.
    #[error(
        "cannot serve the live page at {address}: {source}; choose another address, or port 0 for any free one"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
    /// The thread could not be started.
    #[error("cannot start the thread of the live page: {0}")]
    Thread(#[source] io::Error),
}
