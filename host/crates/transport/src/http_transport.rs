//! The transport of a real run: client threads that implement the port.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use veeksha_clock::RunClock;
use veeksha_model::{RequestId, SessionId};
use veeksha_ports::{Job, Sinks, Transport};

use crate::client_thread::{ClientCommand, ClientThread};
use crate::config::TransportConfig;
use crate::error::TransportError;
use crate::load_balancer::LoadBalancer;
use crate::receive_stats::ReceiveStats;
use crate::route::Route;
use crate::ticket::{Delivery, Ticket};

/// Usage of connections, summed over all client threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionStats {
    /// Connections opened.
    pub opened: u64,
    /// Requests first sent on a connection that an earlier request had used.
    pub reused: u64,
    /// The subset of `reused` that was sent again on a new connection because the reused one was
    /// dead.
    pub retried: u64,
}

impl ConnectionStats {
    /// Returns the fraction of requests that were answered on a reused connection, or `None` before
    /// the first request.
    pub fn share(&self) -> Option<f64> {
        let requests = self.opened + self.reused - self.retried.min(self.reused);
        (requests > 0).then(|| (self.reused - self.retried.min(self.reused)) as f64 / requests as f64)
    }
}

/// Sends requests over HTTP on dedicated threads. Dropping it stops them.
pub struct HttpTransport {
    threads: Vec<ClientThread>,
    delivery: Arc<Delivery>,
    route: Arc<Route>,
    /// The kernel stamps received data only while at least one socket requests it, and starts with
    /// a delay. This socket requests it for the lifetime of the transport, so that the first answer
    /// on a new connection is stamped as well.
    _stamping: Option<UdpSocket>,
}

/// Returns a socket that requests receive timestamps and receives nothing, or `None` if the
/// platform does not support it.
fn stamping() -> Option<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    setsockopt(&socket, ReceiveTimestampns, &true).ok()?;
    Some(socket)
}

impl HttpTransport {
    /// Checks a configuration and reads its certificates. Starts nothing.
    ///
    /// # Errors
    /// The same as for [`HttpTransport::start`].
    pub fn check(config: TransportConfig) -> Result<(), TransportError> {
        Route::new(config, RunClock::with_origin(0)).map(drop)
    }

    /// Checks the configuration, reads certificates and starts the client threads. Sends nothing
    /// yet.
    pub fn start(config: TransportConfig, clock: RunClock, sinks: Sinks) -> Result<Self, TransportError> {
        if config.threads == 0 {
            return Err(TransportError::NoThreads);
        }
        let (first, threads) = (config.first_thread, config.threads);
        let on_start = config.on_thread_start.clone();
        let route = Route::new(config, clock)?;
        let delivery = Arc::new(Delivery {
            sinks,
            in_flight: AtomicUsize::new(0),
            spread: LoadBalancer::new(route.target.balance, route.servers.len()),
            first_server: route.first_server,
            clock,
        });
        // If a later thread fails to start, dropping the transport stops the earlier ones.
        let mut transport = HttpTransport {
            threads: Vec::with_capacity(threads),
            delivery,
            route,
            _stamping: stamping(),
        };
        for index in first..first + threads {
            transport.threads.push(ClientThread::start(
                index,
                Arc::clone(&transport.route),
                Arc::clone(&transport.delivery),
                on_start.clone(),
            )?);
        }
        Ok(transport)
    }

    /// Cancels everything in flight, delivers the outcomes and waits for the threads to end.
    pub fn stop(self) {
        drop(self);
    }

    /// Returns the usage of connections so far.
    pub fn connections(&self) -> ConnectionStats {
        ConnectionStats {
            opened: self.route.counters.opened.load(Ordering::Relaxed),
            reused: self.route.counters.reused.load(Ordering::Relaxed),
            retried: self.route.counters.retried.load(Ordering::Relaxed),
        }
    }

    /// Returns the counters of the receive path so far.
    pub fn receive_stats(&self) -> ReceiveStats {
        let mut sum = ReceiveStats::default();
        for thread in &self.threads {
            thread.counters.add_to(&mut sum);
        }
        sum
    }

    /// Returns the thread of a session.
    fn thread_of(&self, session: SessionId) -> &ClientThread {
        // Session numbers are consecutive or, in a part of a run, have equal steps: Fibonacci
        // hashing distributes both evenly.
        let spread = session.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        &self.threads[(spread % self.threads.len() as u64) as usize]
    }

    fn broadcast(&self, command: impl Fn() -> ClientCommand) {
        for thread in &self.threads {
            // A thread that has ended has nothing in flight.
            let _ = thread.commands.send(command());
        }
    }
}

impl Transport for HttpTransport {
    fn submit(&self, job: Job) {
        let thread = self.thread_of(job.id.session);
        let ticket = Box::new(Ticket::new(job, &self.delivery));
        // If the thread has ended, the ticket is returned inside the error and dropped, and
        // delivers its outcome.
        let _ = thread.commands.send(ClientCommand::Send(ticket));
    }

    fn cancel(&self, request: RequestId) {
        // A thread that has ended has nothing in flight.
        let thread = self.thread_of(request.session);
        let _ = thread.commands.send(ClientCommand::Cancel(request));
    }

    fn cancel_all(&self) {
        self.broadcast(|| ClientCommand::CancelAll);
    }

    fn in_flight(&self) -> usize {
        self.delivery.in_flight.load(Ordering::SeqCst)
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        self.broadcast(|| ClientCommand::Stop);
        for thread in &mut self.threads {
            if let Some(handle) = thread.thread.take() {
                // A panicked thread has dropped its tickets, which delivered their outcomes.
                let _ = handle.join();
            }
        }
    }
}
