//! Transport settings that do not depend on the target.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::target::Target;

/// The complete configuration of an [`crate::HttpTransport`]. Start with [`TransportConfig::new`]
/// and override individual fields.
#[derive(Clone)]
pub struct TransportConfig {
    /// Servers and API of the requests.
    pub target: Target,
    /// Total deadline of a request: from the moment a client thread takes it until the end of its
    /// answer, including connecting and a retry. A server that trickles bytes does not extend it.
    pub request_timeout: Duration,
    /// Maximum time to open a connection: name resolution, TCP, the proxy's response and TLS
    /// together. `None`: only the deadline of the request applies.
    pub connect_timeout: Option<Duration>,
    /// Number of client threads; at least 1.
    pub threads: usize,
    /// Number of the first client thread, where a run has several transports. It is part of the
    /// thread's name.
    pub first_thread: usize,
    /// Index of the first server in outcomes, where a run has several transports.
    pub first_server: u16,
    /// Rules for sharing connections between requests.
    pub connections: ConnectionPolicy,
    /// HTTP version of the requests.
    pub http: HttpProtocol,
    /// Local addresses of connections, used in turn. If empty, the system chooses. One address has
    /// about 28,000 ports for each server, so more streams than that require several addresses.
    pub source_addresses: Vec<IpAddr>,
    /// Time that the body of an answer may stay open after its data have ended, before the
    /// connection is closed.
    pub linger: Duration,
    /// Callback that runs on each client thread when it starts, with the thread's number. It sets
    /// priorities and the CPU affinity.
    pub on_thread_start: Option<ThreadStart>,
    /// Id of the run, at the beginning of the `x-request-id` of each request. Empty: the run has
    /// none.
    pub run_id: String,
    /// True to send a `traceparent` (W3C Trace Context) with each request.
    pub traceparent: bool,
    /// Reads `CLOCK_REALTIME`, the clock with which the kernel stamps received data. Tests replace
    /// it to simulate a step of the wall clock.
    pub realtime: fn() -> u64,
}

/// Callback at the start of a client thread; its argument is the thread's number.
pub type ThreadStart = Arc<dyn Fn(usize) + Send + Sync>;

/// Rules for sharing connections between requests. A connection carries one request at a time with
/// HTTP/1.1, and many with HTTP/2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConnectionPolicy {
    /// A request uses any idle connection of its client thread to its server.
    #[default]
    Pooled,
    /// The requests of one session share connections, which no other request uses.
    PerSession,
    /// Every request opens a new connection.
    Never,
}

/// The HTTP version of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HttpProtocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: negotiated by ALPN over TLS, with prior knowledge over plain TCP.
    Http2,
}

impl TransportConfig {
    /// Returns a configuration with one client thread, HTTP/1.1, pooled connections, a request
    /// timeout of 300 s, a linger time of 1 s and no id of the run.
    pub fn new(target: Target) -> Self {
        TransportConfig {
            target,
            request_timeout: Duration::from_secs(300),
            connect_timeout: None,
            threads: 1,
            first_thread: 0,
            first_server: 0,
            connections: ConnectionPolicy::default(),
            http: HttpProtocol::default(),
            source_addresses: Vec::new(),
            linger: Duration::from_secs(1),
            on_thread_start: None,
            run_id: String::new(),
            traceparent: false,
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
            .field("first_thread", &self.first_thread)
            .field("first_server", &self.first_server)
            .field("connections", &self.connections)
            .field("http", &self.http)
            .field("source_addresses", &self.source_addresses)
            .field("linger", &self.linger)
            .field("on_thread_start", &self.on_thread_start.is_some())
            .field("run_id", &self.run_id)
            .field("traceparent", &self.traceparent)
            .finish()
    }
}
