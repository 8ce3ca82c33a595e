//! HTTP clients for the servers under test. They return every event of an answer with the time at
//! which the kernel received it.
//!
//! [`HttpTransport`] is the [`veeksha_ports::Transport`] of a real run; a run with several clients
//! has one for each of them, behind a [`RoutedTransport`]. Each of its client threads owns a
//! current-thread runtime, its idle connections and *one* buffer for all reads. The requests of a
//! session stay on one thread and go to one server. The modules follow the life of a request:
//!
//! 1. `http_transport` selects the thread and passes the job on without blocking; `load_balancer`
//!    selects the server;
//! 2. `client_thread` starts a task; `client_context` holds all flights: deadlines, cancellation,
//!    and answers whose data have ended without the end of the body. `flight` is the state of a
//!    request, and `ticket` guarantees exactly one outcome;
//! 3. `exchange` writes the request (`veeksha_endpoint`), takes an idle connection from the `pool`
//!    or opens a new one (`connecting`: name resolution, TCP, `proxy`, `tls`, each measured
//!    separately), and retries once where that is safe;
//! 4. `connection` sends and reads within the poll of one task: `receiver` reads the socket and its
//!    kernel stamp, `kernel_time` converts the stamp to the run's clock, and `veeksha_http1` finds
//!    the bytes of the body. With `http2`, hyper does the framing on top of the same reads
//!    (`h2_io`);
//! 5. `received` decodes the bytes at once until the first generated chunk, and collects them
//!    (`undecoded_bytes`) after that;
//! 6. `landed` leaves the thread: it completes the decoding on the thread that calls
//!    [`veeksha_ports::PendingOutcome::outcome`].
//!
//! # Rules that are not obvious
//!
//! * **A failure before anything was sent is `Connect` or `Tls`. An expired request deadline is
//!   `Timeout`**, in every phase; the message names the phase. An expired limit for connecting
//!   alone (`connect_timeout`) is `Connect`, or `Tls` in the handshake.
//! * **The body is read to its end** after the data have ended, so that the connection can be
//!   reused, but for no longer than `linger` (plus up to half of it, the interval between two
//!   checks). This waiting time is not measured. The end of the data is known from the decoded
//!   bytes. Waiting bytes are decoded when their end matches the end marker of the API, when the
//!   stream has been quiet for `linger`, or at every twentieth check.
//! * **An answer may arrive before the whole request is sent** (413): it is read, and the
//!   connection is not reused.
//! * **Only the loss of a reused connection before any byte of an answer is retried**, once. This
//!   failure is not attributed to the server: it closed an idle connection while a request was on
//!   its way.
//! * **`sent_at` is never later than `first_byte_at`**: the kernel may have the answer before this
//!   thread reads its clock.
//! * With HTTP/2, `sent_at` is the flush after the last piece of the body was taken, and the
//!   library closes a connection whose server sends more than 100 empty frames without END_STREAM.
//!
//! Deliberately omitted: retries on new connections, redirects, and compression. Each of them would
//! blur the meaning of a latency.
#![forbid(unsafe_code)]

mod alarm;
mod api_key;
mod client_context;
mod client_thread;
mod config;
mod connecting;
mod connection;
mod error;
mod exchange;
mod flight;
mod flight_phase;
mod h2_io;
mod http2;
mod http_transport;
mod kernel_time;
mod landed;
mod load_balancer;
mod pool;
mod prepared_server;
mod proxy;
mod receive_stats;
mod received;
mod receiver;
mod request_headers;
mod response_ids;
mod route;
mod routed;
mod status;
mod target;
mod ticket;
mod tls;
mod trace_id;
mod undecoded_bytes;
pub mod untimed;
mod url;
mod wire;

pub use api_key::ApiKey;
pub use config::{ConnectionPolicy, HttpProtocol, ThreadStart, TransportConfig};
pub use error::TransportError;
pub use http_transport::{ConnectionStats, HttpTransport};
pub use receive_stats::ReceiveStats;
pub use routed::RoutedTransport;
pub use target::{BalanceRule, Server, Target, TlsOptions};
