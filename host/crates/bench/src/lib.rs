//! Benchmarks of veeksha-host itself, compared with a minimal client.
//!
//! [`run`] executes P1 to P11, A1, E1 and E2 on this machine and returns a [`Report`]: a table, or
//! JSON. A dedicated server answers on loopback, in a child process, and logs the true send times;
//! [`serve`] is that child. Cost measurements alternate with those of a *baseline* client in the
//! same process: one thread, one event queue, no async runtime and no JSON parser. An absolute goal
//! holds for the machine that it was set on; the ratio to the baseline holds anywhere.
#![forbid(unsafe_code)]

mod baseline;
mod bench;
mod benchmarks;
mod child;
mod error;
#[cfg(test)]
mod in_process_child;
mod lines;
mod load;
mod options;
mod process;
mod program;
mod report;
mod server;
mod stats;
mod task;
mod timer;

pub use bench::run;
pub use error::BenchError;
pub use options::{BenchOptions, Benchmark};
pub use report::{BenchmarkBound, Goal, GoalStatus, Measurement, Report};
pub use task::{CHILD_COMMAND, serve};
