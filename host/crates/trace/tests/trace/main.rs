//! Traces through the public API: files in, sessions out.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may panic, also in its functions"
)]

mod bad_input;
mod grouping;
mod order;
mod reading;
mod robust;
mod sessions;
mod sniffing;
mod support;
