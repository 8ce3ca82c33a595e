//! The transport from outside: recorded bytes, scripted servers on real sockets.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic, also in its functions"
)]

mod answers;
mod connections;
mod endings;
mod failures;
mod faults;
mod http2;
mod stamps;
mod support;
mod tls;
mod untimed;
