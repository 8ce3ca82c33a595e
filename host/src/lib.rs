//! The composition root of `veeksha-host`: the only place that knows every crate.
//!
//! [`main`] parses the command line, hands over to one file of `cli` per command, and turns whatever comes back into a
//! message and an exit code ([`exit`]). `wire_up` joins scenario, plugins, tokenizer and transport; `collect` joins the
//! events of a run with the evaluator, the files and the progress line.
#![forbid(unsafe_code)]

mod cli;
mod collect;
pub mod exit;
mod failure;
mod interrupt;
mod results;
mod say;
mod shipped;
mod wire_up;

pub use cli::main;
