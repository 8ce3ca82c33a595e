//! The transport of a real run: client threads behind the port.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap,
    HeaderName, HeaderValue, TRANSFER_ENCODING, USER_AGENT,
};
use veeksha_clock::RunClock;
use veeksha_ports::{Job, Sinks, Transport};

use crate::client_thread::{ClientThread, Command};
use crate::connection::connector;
use crate::exchange::{Counters, Route};
use crate::flight::{Delivery, Ticket};
use crate::tls::client_config;
use crate::url::Endpoint;
use crate::{Server, Target, TransportConfig, TransportError};

/// How connections were used, over all client threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionStats {
    /// Connections opened.
    pub opened: u64,
    /// Requests first sent on a connection that an earlier one had used.
    pub reused: u64,
    /// Of those, requests sent again on a fresh connection, because the reused one was dead.
    pub retried: u64,
}

/// Sends requests over HTTP/1.1 on threads of its own. Dropping it stops it.
pub struct HttpTransport {
    threads: Vec<ClientThread>,
    delivery: Arc<Delivery>,
    counters: Arc<Counters>,
}

impl HttpTransport {
    /// Checks the configuration, reads certificates and starts the client threads. Nothing is sent yet.
    pub fn start(config: TransportConfig, clock: RunClock, sinks: Sinks) -> Result<Self, TransportError> {
        if config.threads == 0 {
            return Err(TransportError::NoThreads);
        }
        let Some(server) = config.target.servers.first().cloned() else {
            return Err(TransportError::NoServers);
        };
        let endpoint = Endpoint::parse(&server.api_base, config.target.path())?;
        let headers = headers(&config.target, &server, &endpoint)?;
        let tls = match endpoint.tls {
            true => Some(connector(client_config(&server.tls)?)),
            false => None,
        };
        let counters = Arc::new(Counters::default());
        let delivery = Arc::new(Delivery {
            sinks,
            in_flight: AtomicUsize::new(0),
            clock,
        });
        let route = Route {
            target: Arc::new(config.target),
            server: Arc::new(server),
            endpoint: Arc::new(endpoint),
            headers,
            tls,
            clock,
            counters: Arc::clone(&counters),
        };
        // If a later thread fails to start, dropping the transport ends the earlier ones.
        let mut transport = HttpTransport {
            threads: Vec::with_capacity(config.threads),
            delivery,
            counters,
        };
        for index in 0..config.threads {
            transport
                .threads
                .push(ClientThread::start(index, route.clone(), config.request_timeout)?);
        }
        Ok(transport)
    }

    /// Gives up whatever is in flight, delivers its outcomes and waits for the threads to end.
    pub fn stop(self) {
        drop(self);
    }

    /// How connections were used so far.
    pub fn connections(&self) -> ConnectionStats {
        ConnectionStats {
            opened: self.counters.opened.load(Ordering::Relaxed),
            reused: self.counters.reused.load(Ordering::Relaxed),
            retried: self.counters.retried.load(Ordering::Relaxed),
        }
    }

    fn tell_all(&self, command: impl Fn() -> Command) {
        for thread in &self.threads {
            // A thread that is gone has nothing in flight.
            let _ = thread.commands.send(command());
        }
    }
}

impl Transport for HttpTransport {
    fn submit(&self, job: Job) {
        // Sessions are numbered in order, so the remainder spreads them evenly.
        let index = (job.id.session.0 % self.threads.len() as u64) as usize;
        let ticket = Box::new(Ticket::new(job, &self.delivery));
        // If the thread is gone, the ticket comes back inside the error, is dropped, and pays.
        let _ = self.threads[index].commands.send(Command::Send(ticket));
    }

    fn cancel_all(&self) {
        self.tell_all(|| Command::CancelAll);
    }

    fn in_flight(&self) -> usize {
        self.delivery.in_flight.load(Ordering::SeqCst)
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        self.tell_all(|| Command::Stop);
        for thread in &mut self.threads {
            if let Some(handle) = thread.thread.take() {
                // A thread that panicked has dropped its tickets, which have paid.
                let _ = handle.join();
            }
        }
    }
}

/// The headers of every request. The user's own replace the host's.
fn headers(target: &Target, server: &Server, endpoint: &Endpoint) -> Result<HeaderMap, TransportError> {
    let mut headers = HeaderMap::new();
    headers.insert(HOST, value("Host", &endpoint.authority)?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("veeksha-host/", env!("CARGO_PKG_VERSION"))),
    );
    if let Some(key) = &server.api_key {
        let mut bearer = value("Authorization", &format!("Bearer {}", key.expose()))?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    for (name, text) in target.headers.iter().chain(&server.headers) {
        let refuse = |reason: &str| TransportError::Header {
            name: name.clone(),
            reason: reason.to_owned(),
        };
        let parsed: HeaderName = name.parse().map_err(|_| refuse("this is not a header name"))?;
        if [CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION].contains(&parsed) {
            return Err(refuse("the HTTP client sets it"));
        }
        let header = value(name, text)?;
        headers.insert(parsed, header);
    }
    Ok(headers)
}

/// A header's value; the error does not repeat it.
fn value(name: &str, text: &str) -> Result<HeaderValue, TransportError> {
    HeaderValue::from_str(text).map_err(|_| TransportError::Header {
        name: name.to_owned(),
        reason: "its value has a line end or another character that a header cannot carry".to_owned(),
    })
}
