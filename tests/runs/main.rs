//! Real runs, seen from outside: sockets, files, exit codes.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what is wrong by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod certificate;
mod connections;
mod dialects;
mod doctor;
mod documents;
mod faults;
mod guests;
mod interrupts;
mod limits;
mod llama;
mod published;
mod quickstart;
mod replay;
mod results;
mod server;
mod soak;
mod trace_content;
mod traces;
mod truth;
mod virtual_time;
