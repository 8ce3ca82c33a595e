//! The shell with a workload and a transport made for the test: what goes in comes out once, and
//! everything ends.

#![expect(clippy::unwrap_used, reason = "a test reports a failure by panicking")]

mod agent_failures;
mod arrivals;
mod clients;
mod fakes;
mod hooks;
mod limits;
mod prefixes;
mod prompt_additions;
mod real_time;
mod replay;
mod shards;
mod soak;
mod virtual_time;
mod warm_up;
