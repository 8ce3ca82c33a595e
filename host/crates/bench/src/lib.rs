//! The project's own performance figures, beside the least that a client can cost.
//!
//! [`run`] takes the figures P1 to P11, E1 and E2 on this machine and gives a [`Report`]: a table, or JSON. A server of the bench's own answers on
//! loopback, in a child process, and logs its truth; [`serve`] is that child. Costs are taken by turns with those of a *floor* client
//! in the same process: one thread, one event queue, no runtime and no parser of JSON. A goal in absolute numbers holds for the machine that
//! it was set on; the ratio to the floor holds anywhere.
#![forbid(unsafe_code)]

mod bench;
mod child;
mod error;
mod figures;
mod floor;
mod lines;
mod load;
mod options;
#[cfg(test)]
mod played;
mod process;
mod program;
mod report;
mod role;
mod server;
mod stats;
mod timer;

pub use bench::run;
pub use error::BenchError;
pub use options::{BenchOptions, Figure};
pub use report::{Bound, Goal, Report, Row, Verdict};
pub use role::serve;

/// The argument with which [`BenchOptions::exe`] is started as a child: a hidden command that calls [`serve`] with standard input and
/// output.
pub const CHILD_COMMAND: &str = "bench-server";
