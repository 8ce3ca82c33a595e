//! Command line of `veeksha-host`.
//!
//! [`main`] parses the arguments and calls the module of `cli` for the command. The commands are
//! implemented by the library `veeksha-app` and presented by `veeksha-present`; this crate converts
//! a failure to a message, a hint and an exit code.
#![forbid(unsafe_code)]

mod cli;
mod interrupt;

pub use cli::main;
