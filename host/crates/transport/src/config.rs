//! How a transport works, whatever it is aimed at.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::target::Target;

/// Everything an [`crate::HttpTransport`] needs to know. Begin with [`TransportConfig::new`] and set what differs.
#[derive(Clone)]
pub struct TransportConfig {
    /// Where requests go and what they look like.
    pub target: Target,
    /// Total deadline of a request: from the moment a client thread takes it until the end of its answer, connecting
    /// and a retry included. A server that trickles does not extend it.
    pub request_timeout: Duration,
    /// Longest time to open a connection: name, TCP, the proxy's consent and TLS together; `None`: only the request's own
    /// deadline counts.
    pub connect_timeout: Option<Duration>,
    /// Number of client threads; at least 1.
    pub threads: usize,
    /// Which requests share a connection.
    pub connections: ConnectionPolicy,
    /// The version of HTTP that is spoken.
    pub http: HttpVersion,
    /// Local addresses of connections, taken in turn; empty: the system chooses. One address has some 28,000 ports for each
    /// server, so more streams than that need several.
    pub source_addresses: Vec<IpAddr>,
    /// How long an answer whose data have ended may leave its body open before the connection is given up.
    pub linger: Duration,
    /// Called on each client thread when it starts, with its number: for priorities and the choice of cores.
    pub on_thread_start: Option<ThreadStart>,
    /// Reads `CLOCK_REALTIME`, on which the kernel stamps what it receives. A test sets the wall clock by this.
    pub realtime: fn() -> u64,
}

/// What a client thread does first; takes the thread's number.
pub type ThreadStart = Arc<dyn Fn(usize) + Send + Sync>;

/// Which requests share a connection. A connection carries one request at a time with HTTP/1.1, and many with HTTP/2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConnectionPolicy {
    /// A request takes any idle connection of its client thread to its server.
    #[default]
    Pooled,
    /// Requests of one session share connections, and no other request uses them.
    PerSession,
    /// Every request opens a connection of its own.
    Never,
}

/// The version of HTTP that is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: over TLS by agreement (ALPN), on plain TCP by prior knowledge.
    Http2,
}

impl TransportConfig {
    /// One client thread, HTTP/1.1, pooled connections, 300 s for a request and 1 s for an open end.
    pub fn new(target: Target) -> Self {
        TransportConfig {
            target,
            request_timeout: Duration::from_secs(300),
            connect_timeout: None,
            threads: 1,
            connections: ConnectionPolicy::default(),
            http: HttpVersion::default(),
            source_addresses: Vec::new(),
            linger: Duration::from_secs(1),
            on_thread_start: None,
            realtime: veeksha_clock::wall_nanos,
        }
    }
}

impl fmt::Debug for TransportConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportConfig")
            .field("target", &self.target)
            .field("request_timeout", &self.request_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("threads", &self.threads)
            .field("connections", &self.connections)
            .field("http", &self.http)
            .field("source_addresses", &self.source_addresses)
            .field("linger", &self.linger)
            .field("on_thread_start", &self.on_thread_start.is_some())
            .finish()
    }
}
