//! Figures of short runs that are worked out by hand, and properties of all runs.
#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a test may panic, also in its functions")]

mod certificate;
mod fidelity;
mod latencies;
mod order;
mod runs;
mod sequences;
