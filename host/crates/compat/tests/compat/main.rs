//! What other tools say of a run, and what this crate says that they say.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may")]

mod any_run;
mod files;
mod fixture;
mod golden;
mod views;
