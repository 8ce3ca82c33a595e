//! An HTTP/1.1 server around the engine with the APIs of inference servers.
//!
//! It has two threads. One drives the engine in real time: it waits for absolute deadlines and
//! writes each token to its socket itself, so that neither a runtime's timer nor another thread
//! delays the `write` call. The other one accepts connections and reads requests (a current-thread
//! runtime), and writes what a socket did not accept immediately. HTTP is written by hand, because
//! faults need bytes that no HTTP library sends, and because the time of each `write` has to be
//! recorded.
//!
//! Routes: `POST /v1/chat/completions`, `/v1/completions`, `/v1/responses` (OpenAI), `/v1/messages`
//! (Anthropic), `/generate` and `/generate_stream` (TGI), `/api/generate` (Ollama), the last three
//! also below `/v1`; `GET /v1/models`, `GET /health`, `GET /metrics`. Connections are kept alive.
//!
//! Streams have the shape of vLLM's: one write per token; the first write of a chat contains the
//! role event and the first token, the last one the last token and all events that end the stream.
//! APIs whose streams begin with announcements send these when the request is admitted to the
//! batch.

mod answer;
mod answer_framing;
mod answer_writer;
mod completion;
mod connection;
mod delivery_mode;
mod driver;
mod head;
mod incoming;
mod metrics;
mod observed_requests;
mod options;
mod pacing;
mod recorder;
mod request;
mod routes;
mod script;
mod served_api;
mod service;
mod socket;
mod truth;
mod truth_line;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::net::TcpSocket;
use tokio::sync::oneshot;
use veeksha_clock::RunClock;

use crate::profile_check::ProfileError;
use driver::EngineDriver;
use service::Service;

pub use metrics::ServerStats;
pub use options::{SimOptions, Tokenize};
pub use pacing::Pacing;
pub use truth::{TruthOutcome, TruthRecord};
pub use truth_line::{TruthLineError, truth_line};

/// Maximum number of connections in the kernel's accept queue.
const BACKLOG: u32 = 4096;

/// The reason why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The profile is invalid.
    #[error("the profile is not valid: {0}")]
    Profile(#[from] ProfileError),
    /// Listening on the address failed.
    #[error("cannot listen on {addr}: {source}; choose another address, or port 0 for any free one")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// Starting the runtime or a thread failed.
    #[error("cannot start the simulator's threads: {0}")]
    Threads(#[source] io::Error),
}

/// A running server. Dropping it stops it.
pub struct SimServer {
    addr: SocketAddr,
    service: Arc<Service>,
    stop: Option<oneshot::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl SimServer {
    /// Listens on `addr` and serves until [`stop`](SimServer::stop). All recorded times are
    /// readings of `clock`.
    pub fn start(addr: SocketAddr, options: SimOptions, clock: RunClock) -> Result<SimServer, SimError> {
        options.profile.check()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(SimError::Threads)?;
        let listen = || {
            // Sockets register with the runtime in which they are created.
            let _runtime = runtime.enter();
            let socket = if addr.is_ipv4() {
                TcpSocket::new_v4()
            } else {
                TcpSocket::new_v6()
            }?;
            socket.set_reuseaddr(true)?;
            socket.bind(addr)?;
            let listener = socket.listen(BACKLOG)?;
            let addr = listener.local_addr()?;
            Ok((listener, addr))
        };
        let (listener, addr) = listen().map_err(|source| SimError::Listen { addr, source })?;
        let driver = Arc::new(EngineDriver::new(options.profile.clone(), options.seed, clock));
        let service = Arc::new(Service::new(options, clock, Arc::clone(&driver)));
        let (stop, stopped) = oneshot::channel();
        let mut server = SimServer {
            addr,
            service: Arc::clone(&service),
            stop: Some(stop),
            threads: Vec::new(),
        };
        let engine = std::thread::Builder::new()
            .name("sim-engine".into())
            .spawn(move || driver.run());
        server.threads.push(engine.map_err(SimError::Threads)?);
        let network = std::thread::Builder::new()
            .name("sim-network".into())
            .spawn(move || {
                runtime.block_on(connection::serve(listener, service, stopped));
                // A long prompt may still be in the tokenizer; its result is discarded.
                runtime.shutdown_background();
            });
        server.threads.push(network.map_err(SimError::Threads)?);
        Ok(server)
    }

    /// Returns the listening address, with the actual port if port 0 was requested.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns a record per completion request so far, in order of arrival.
    pub fn truth(&self) -> Vec<TruthRecord> {
        self.service.requests.truth.records()
    }

    /// Returns the values of `/metrics`.
    pub fn stats(&self) -> ServerStats {
        self.service.stats()
    }

    /// Closes all connections and waits for the threads to end.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            // Fails only if the network thread has already ended.
            let _ = stop.send(());
        }
        self.service.driver.stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has printed a message; there is nothing left to stop.
            let _ = thread.join();
        }
    }
}

impl Drop for SimServer {
    fn drop(&mut self) {
        self.end();
    }
}
