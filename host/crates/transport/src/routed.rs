//! Several transports behind one: each request goes to the transport of its client.

use veeksha_clock::RunClock;
use veeksha_model::{DEFAULT_CLIENT, RequestId};
use veeksha_ports::{Job, Sinks, Transport};

use crate::config::TransportConfig;
use crate::error::TransportError;
use crate::http_transport::HttpTransport;

/// The transports of a run by the names of their clients, the first of which sends the requests
/// that name none. Dropping it stops them.
pub struct RoutedTransport {
    clients: Vec<(String, HttpTransport)>,
}

impl RoutedTransport {
    /// Starts a transport for each client. Their servers and their threads are numbered in this
    /// order: the first server of a client follows the last one of the client before it.
    ///
    /// # Errors
    /// The same as for [`HttpTransport::start`], and if there are no clients.
    pub fn start(
        configs: Vec<(String, TransportConfig)>,
        clock: RunClock,
        sinks: &Sinks,
    ) -> Result<Self, TransportError> {
        let (mut first_server, mut first_thread) = (0_u16, 0);
        let mut clients = Vec::with_capacity(configs.len());
        for (name, mut config) in configs {
            config.first_server = first_server;
            config.first_thread = first_thread;
            let servers = u16::try_from(config.target.servers.len());
            let next = servers.ok().and_then(|servers| first_server.checked_add(servers));
            first_server = next.ok_or(TransportError::NoServers)?;
            first_thread += config.threads;
            clients.push((name, HttpTransport::start(config, clock, sinks.clone())?));
        }
        if clients.is_empty() {
            return Err(TransportError::NoServers);
        }
        Ok(RoutedTransport { clients })
    }

    /// Returns the transport of a client; the first one if the name is unknown, which the workload
    /// has been checked for.
    fn of(&self, client: Option<&str>) -> &HttpTransport {
        let name = client.unwrap_or(DEFAULT_CLIENT);
        let known = self.clients.iter().find(|(known, _)| known == name);
        &known.unwrap_or(&self.clients[0]).1
    }

    fn transports(&self) -> impl Iterator<Item = &HttpTransport> {
        self.clients.iter().map(|(_, transport)| transport)
    }
}

impl Transport for RoutedTransport {
    fn submit(&self, job: Job) {
        self.of(job.request.request.client.as_deref()).submit(job);
    }

    fn cancel(&self, request: RequestId) {
        // The name of the client is not part of the id, and remembering it for every request in
        // flight would need a lock on each of them. A transport that does not have the request
        // ignores the command.
        self.transports().for_each(|transport| transport.cancel(request));
    }

    fn cancel_all(&self) {
        self.transports().for_each(Transport::cancel_all);
    }

    fn in_flight(&self) -> usize {
        self.transports().map(Transport::in_flight).sum()
    }
}
