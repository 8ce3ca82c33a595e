//! State that all requests of a transport share.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

use veeksha_clock::RunClock;

use crate::config::{ConnectionPolicy, HttpProtocol, TransportConfig};
use crate::error::TransportError;
use crate::prepared_server::PreparedServer;
use crate::target::Target;

/// Connection counters, summed over all client threads.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) opened: AtomicU64,
    pub(crate) reused: AtomicU64,
    pub(crate) retried: AtomicU64,
}

/// State that all requests share.
pub(crate) struct Route {
    pub(crate) target: Target,
    /// The servers of the target.
    pub(crate) servers: Vec<PreparedServer>,
    /// Index of the first of them in outcomes.
    pub(crate) first_server: u16,
    pub(crate) clock: RunClock,
    pub(crate) realtime: fn() -> u64,
    pub(crate) counters: Counters,
    pub(crate) request_timeout: Duration,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) linger: Duration,
    pub(crate) connections: ConnectionPolicy,
    pub(crate) http: HttpProtocol,
    pub(crate) source_addresses: Vec<IpAddr>,
    pub(crate) next_source: AtomicUsize,
}

impl Route {
    /// Checks the configuration and reads certificates.
    pub(crate) fn new(config: TransportConfig, clock: RunClock) -> Result<Arc<Self>, TransportError> {
        if config.target.servers.is_empty() || config.target.servers.len() > usize::from(u16::MAX) {
            return Err(TransportError::NoServers);
        }
        let servers = config
            .target
            .servers
            .iter()
            .map(|server| PreparedServer::new(&config, server))
            .collect::<Result<_, _>>()?;
        Ok(Arc::new(Route {
            servers,
            first_server: config.first_server,
            clock,
            realtime: config.realtime,
            counters: Counters::default(),
            request_timeout: config.request_timeout,
            connect_timeout: config.connect_timeout,
            linger: config.linger,
            connections: config.connections,
            http: config.http,
            source_addresses: config.source_addresses,
            next_source: AtomicUsize::new(0),
            target: config.target,
        }))
    }
}
