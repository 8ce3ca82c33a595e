//! Tests of the transport through its public API: recorded bytes, scripted servers on real sockets.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may panic, also in its functions"
)]

mod answers;
mod cancellations;
mod codecs;
mod connections;
mod endings;
mod failures;
mod faults;
mod http2;
mod property;
mod proxies;
mod routed;
mod stamps;
mod support;
mod targets;
mod tls;
mod untimed;
