//! Views and files compared with the output of the tools themselves.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may")]

mod any_run;
mod files;
mod fixture;
mod golden;
mod views;
