//! Results of short runs with expected values computed by hand, and properties of all runs.
#![forbid(unsafe_code)]
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test may panic, also in its functions"
)]

mod course;
mod critical_path;
mod custom;
mod fidelity;
mod groups;
mod latencies;
mod metrics;
mod nonsense;
mod objectives;
mod order;
mod reference;
mod runs;
mod sequences;
mod sessions;
mod tool_runs;
