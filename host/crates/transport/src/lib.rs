//! HTTP clients for the servers under test: every event of an answer with the time at which the kernel received it.
//!
//! [`HttpTransport`] is the [`veeksha_ports::Transport`] of a real run. Each of its client threads owns a current-thread
//! runtime, its idle connections and *one* buffer for all reads; the requests of a session stay on one thread and go to one
//! server. On the way of a request through this crate, each part is one file:
//!
//! 1. `http_transport` picks the thread and hands the job over without blocking; `balance` picks the server;
//! 2. `client_thread` starts a task and knows every flight: deadlines, cancellation, and answers whose data have ended without
//!    their body ending. `flight` is what is known of a request, and
//!    `ticket` guarantees exactly one outcome;
//! 3. `exchange` writes the request (`veeksha_endpoint`), takes an idle connection from the `pool` or has one opened
//!    (`connecting`: name, TCP, `proxy`, `tls`, each measured apart), and retries once where that is safe;
//! 4. `connection` sends and reads within the poll of one task: `receiver` reads the socket and its kernel stamp, `kernel_time` brings
//!    that onto the run's clock, `veeksha_http1` finds the body's bytes. With `http2`, hyper does the framing above the same
//!    reads (`h2_io`);
//! 5. `received` has the bytes understood at once until the first generated chunk, and gathers them (`raw`) after that;
//! 6. `landed` is what leaves the thread: it finishes understanding wherever [`veeksha_ports::PendingOutcome::outcome`] is called.
//!
//! # Rules that are not obvious
//!
//! * **A failure before anything was sent is `Connect` or `Tls`; the request's own deadline is `Timeout`**, wherever it passes;
//!   the message says where. The limit for connecting alone (`connect_timeout`) is `Connect`, or `Tls` in the handshake.
//! * **The body is read to its end** after the data have ended, so that the connection can be used again, but for no longer than
//!   `linger` (and the half of it that lies between two looks). What is waited there is not measured. That the data have ended
//!   is known from what was understood; the bytes that wait are understood when their end looks like the dialect's, when the
//!   stream has been quiet for `linger`, or at every twentieth look.
//! * **An answer may come before the whole request is sent** (413): it is heard, and the connection is not used again.
//! * **Only the loss of a reused connection before any byte of an answer is retried**, once. That failure is nobody's: the server
//!   closed an idle connection while a request was on its way.
//! * **`sent_at` is never later than `first_byte_at`**: the kernel may have the answer before this thread gets to its clock.
//! * With HTTP/2, `sent_at` is the flush after the last piece of the body was taken, and the library ends a connection whose server
//!   sends more than 100 empty frames that end nothing.
//!
//! What is deliberately not here: no retry of a fresh connection, no redirect, no compression. Each of them would blur what a
//! latency means.
#![forbid(unsafe_code)]

mod alarm;
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
mod ticket;
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
