//! The composition root of `veeksha-host`: the only place that knows every crate.
//!
//! [`main`] parses the command line, hands over to one file of `cli` per command, and turns whatever comes back into a
//! message and an exit code ([`exit`]). `source` reads scenarios; `wire_up` joins scenario, plugins, tokenizer and transport; `collect` joins the
//! events of a run with the evaluator, the files and the progress line.
#![forbid(unsafe_code)]

mod analysis;
mod cells;
mod certificate_section;
mod cli;
mod codec;
mod collect;
mod compat;
mod drive;
mod evaluators;
pub mod exit;
mod expected;
mod failure;
mod flavors;
mod impossible;
mod interrupt;
mod judges;
mod live;
mod mode;
mod objectives;
mod old_run;
mod plan;
mod plugins;
mod prefixes;
mod prompts;
mod recording;
mod replay_section;
mod results;
mod rooted;
mod say;
mod secrets;
mod self_test;
mod sendable;
mod shipped;
mod source;
mod sweep;
mod swept;
mod target;
mod tokenizers;
mod traces;
mod watch;
mod wire_up;

pub use cli::main;
