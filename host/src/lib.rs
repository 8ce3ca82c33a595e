//! The command line of `veeksha-host`.
//!
//! [`main`] parses the arguments and hands over to one file of `cli` per command. The commands are
//! carried out by the library `veeksha-app` and presented by `veeksha-present`; a failure becomes a
//! message, a hint and an exit code here.
#![forbid(unsafe_code)]

mod cli;
mod interrupt;

pub use cli::main;
