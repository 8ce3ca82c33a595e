//! HTTP clients, SSE decoding, endpoint dialects, per-chunk timestamps.
//!
//! [`HttpTransport`] is the [`veeksha_ports::Transport`] of a real run. Each of its client threads owns one current-thread
//! runtime and one connection pool; the requests of a session stay on one thread. On the way of a request through this
//! crate, each part is one file:
//!
//! 1. `http_transport` picks the thread and hands the job over without blocking;
//! 2. `client_thread` takes it from its queue and starts a task; `flight` guarantees exactly one outcome;
//! 3. `veeksha_dialect` writes the request as JSON;
//! 4. `pool` gives an idle connection that is still alive, or `connection` opens one (`tls` where asked for);
//! 5. `stamped_io` notes the time of each read and of the last write at the socket;
//! 6. `exchange` sends, reads the answer to the very end of its body, retries once where that is safe;
//! 7. `veeksha_dialect` cuts the bytes into events and makes chunks and a response of them. Both are pure: bytes and times go
//!    in, chunks and a verdict come out.
//!
//! What is deliberately not here: no retry of a fresh connection, no redirect, no compression, no HTTP/2, no proxy. Each of
//! them would blur what a latency means.
#![forbid(unsafe_code)]

mod balance;
mod client_thread;
mod config;
mod connecting;
mod connection;
mod error;
mod exchange;
mod figures;
mod flight;
mod h2_io;
mod http2;
mod http_transport;
mod kernel_time;
mod landed;
mod place;
mod pool;
mod proxy;
mod raw;
mod received;
mod receiver;
mod route;
mod secret;
mod status;
mod target;
mod tls;
pub mod untimed;
mod url;
mod wire;

pub use config::{ConnectionPolicy, HttpVersion, ThreadStart, TransportConfig};
pub use error::TransportError;
pub use figures::ReceiveFigures;
pub use http_transport::{ConnectionStats, HttpTransport};
pub use secret::Secret;
pub use target::{Balance, Server, Target, TlsOptions};
