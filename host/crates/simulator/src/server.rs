//! The engine behind an OpenAI-compatible HTTP server.
//!
//! Two threads: one drives the engine in real time, one runs the network (a current-thread runtime). No timer of the runtime paces
//! anything: the engine's thread waits for absolute deadlines and tells the network what came out.
//!
//! Routes: `POST /v1/chat/completions`, `POST /v1/completions` (streamed and not), `GET /v1/models`, `GET /health`,
//! `GET /metrics`. Connections are kept alive.
//!
//! Streams have the shape of vLLM's: one write per token; a chat's first write holds the role event and the first token, the
//! last one the last token, the finish event, the usage event (with `stream_options.include_usage`) and `[DONE]`.

mod answer;
mod connection;
mod dialect;
mod driver;
mod metrics;
mod request;
mod routes;
mod truth;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::net::TcpSocket;
use tokio::sync::oneshot;
use veeksha_clock::RunClock;

use crate::{Profile, ProfileError, text};
use driver::Driver;
use routes::Service;

pub use metrics::ServerStats;
pub use truth::{TruthOutcome, TruthRecord};

/// Turns a prompt into token ids: their number is the prompt's length, their values name the blocks of the prefix cache.
pub type Tokenize = Arc<dyn Fn(&str) -> Vec<u32> + Send + Sync>;

/// Connections that the kernel queues until they are accepted.
const BACKLOG: u32 = 4096;

/// What a [`SimServer`] is made of.
#[derive(Clone)]
pub struct SimOptions {
    /// The engine.
    pub profile: Profile,
    /// The seed of everything that is drawn.
    pub seed: u64,
    /// The tokenizer of prompts.
    pub tokenize: Tokenize,
    /// Records of finished requests kept for [`SimServer::truth`]; older ones are forgotten. 0 keeps none.
    pub truth_capacity: usize,
}

impl SimOptions {
    /// The profile with [`text::approximate_tokens`] as its tokenizer and room for 100,000 records.
    pub fn new(profile: Profile, seed: u64) -> Self {
        SimOptions {
            profile,
            seed,
            tokenize: Arc::new(text::approximate_tokens),
            truth_capacity: 100_000,
        }
    }
}

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The profile is not valid.
    #[error("the profile is not valid: {0}")]
    Profile(#[from] ProfileError),
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}: {source}; choose another address, or port 0 for any free one")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The runtime or a thread did not start.
    #[error("cannot start the simulator's threads: {0}")]
    Threads(#[source] io::Error),
}

/// A running server. Dropping it stops it too.
pub struct SimServer {
    addr: SocketAddr,
    service: Arc<Service>,
    stop: Option<oneshot::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl SimServer {
    /// Listens on `addr` and serves until [`stop`](SimServer::stop). All recorded times are readings of `clock`.
    pub fn start(addr: SocketAddr, options: SimOptions, clock: RunClock) -> Result<SimServer, SimError> {
        options.profile.check()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(SimError::Threads)?;
        let listen = || {
            // Sockets register themselves with the runtime they are made in.
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
        let (driver, feed) = Driver::new(options.profile.clone(), options.seed, clock);
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
                runtime.block_on(connection::serve(listener, service, feed, stopped));
                // Tokenization of a long prompt may still be under way; nobody waits for it.
                runtime.shutdown_background();
            });
        server.threads.push(network.map_err(SimError::Threads)?);
        Ok(server)
    }

    /// Where the server listens: with the real port if port 0 was asked for.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What happened to every completion request so far, in the order of arrival.
    pub fn truth(&self) -> Vec<TruthRecord> {
        self.service.truth.records()
    }

    /// The figures of `/metrics`.
    pub fn stats(&self) -> ServerStats {
        self.service.stats()
    }

    /// Closes all connections and waits for the threads to end.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            // Fails only if the network thread has already gone.
            let _ = stop.send(());
        }
        self.service.driver.stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has printed so; there is nothing left to end.
            let _ = thread.join();
        }
    }
}

impl Drop for SimServer {
    fn drop(&mut self) {
        self.end();
    }
}
