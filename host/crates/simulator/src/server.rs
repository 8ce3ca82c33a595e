//! The engine behind an HTTP/1.1 server that speaks the APIs of inference servers.
//!
//! Two threads. One drives the engine in real time: it waits for absolute deadlines and writes each token to its socket itself, so
//! that neither a timer of a runtime nor another thread stands between a deadline and the `write` call. The other one accepts
//! connections and reads requests (a current-thread runtime), and writes what a socket would not take at once. HTTP is written
//! by hand, because faults need bytes that no HTTP library sends, and because the time of each `write` is what counts here.
//!
//! Routes: `POST /v1/chat/completions`, `/v1/completions`, `/v1/responses` (OpenAI), `/v1/messages` (Anthropic),
//! `/generate` and `/generate_stream` (TGI), `/api/generate` (Ollama), the last three also below `/v1`; `GET /v1/models`,
//! `GET /health`, `GET /metrics`. Connections are kept alive.
//!
//! Streams have the shape of vLLM's: one write per token; a chat's first write holds the role event and the first token, the
//! last one the last token and all that ends the stream. APIs whose streams begin with announcements send these when the request
//! is admitted to the batch.

mod answer;
mod connection;
mod driver;
mod head;
mod incoming;
mod line;
mod metrics;
mod pacing;
mod recorder;
mod request;
mod routes;
mod script;
mod service;
mod truth;
mod truth_line;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use tokio::net::TcpSocket;
use tokio::sync::oneshot;
use veeksha_clock::RunClock;
use veeksha_model::Nanos;

use crate::{Profile, ProfileError, text};
use driver::Driver;
use service::Service;

pub use metrics::ServerStats;
pub use pacing::Pacing;
pub use truth::{TruthOutcome, TruthRecord};
pub use truth_line::{TruthLineError, truth_line};

/// Turns a prompt into token ids: their number is the prompt's length, their values name the blocks of the prefix cache.
pub type Tokenize = Arc<dyn Fn(&str) -> Vec<u32> + Send + Sync>;

/// Connections that the kernel queues until they are accepted.
const BACKLOG: u32 = 4096;

/// The longest body that is read.
const BODY_LIMIT: usize = 64 << 20;

/// What a [`SimServer`] is made of.
#[derive(Clone)]
pub struct SimOptions {
    /// The engine.
    pub profile: Profile,
    /// The seed of everything that is drawn.
    pub seed: u64,
    /// The tokenizer of prompts.
    pub tokenize: Tokenize,
    /// Records of requests kept for [`SimServer::truth`]; older ones are forgotten. 0 keeps none.
    pub truth_capacity: usize,
    /// Chunks kept in all finished records together, 16 bytes each; the oldest records are forgotten when there are more.
    pub truth_chunks: usize,
    /// Is sent each record as soon as it is over, also those that are forgotten. The receiver should keep up: the channel is
    /// unbounded.
    pub truth_over: Option<Sender<TruthRecord>>,
}

impl SimOptions {
    /// The profile with [`text::approximate_tokens`] as its tokenizer and room for 100,000 records with 8,000,000 chunks.
    pub fn new(profile: Profile, seed: u64) -> Self {
        SimOptions {
            profile,
            seed,
            tokenize: Arc::new(text::approximate_tokens),
            truth_capacity: 100_000,
            truth_chunks: 8_000_000,
            truth_over: None,
        }
    }

    /// A server whose times are known (see [`Profile::twin`]), and which costs as little as it can: a prompt's tokens are a
    /// quarter of its bytes, and nobody looks at them.
    pub fn twin(ttft: Nanos, gap: Nanos, streams: u32) -> Self {
        SimOptions {
            tokenize: Arc::new(|text: &str| vec![0; text.len() / 4 + 1]),
            ..SimOptions::new(Profile::twin(ttft, gap, streams), 0)
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
        let driver = Arc::new(Driver::new(options.profile.clone(), options.seed, clock));
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
