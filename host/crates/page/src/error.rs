//! Why the live page is not served.

use std::io;
use std::net::SocketAddr;

/// Why the live page is not served.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// Others could reach it, and nothing would keep them out.
    #[error(
        "the live page at {address} could be read by other machines; set a token for it, or listen on 127.0.0.1 or [::1]"
    )]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// The token would be no protection, or cannot be sent.
    #[error("the token of the live page is not usable: {reason}; use 16 to 256 visible ASCII characters")]
    Token {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The address cannot be listened on.
    #[error(
        "cannot serve the live page at {address}: {source}; choose another address, or port 0 for any free one"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The thread did not start.
    #[error("cannot start the thread of the live page: {0}")]
    Thread(#[source] io::Error),
}
