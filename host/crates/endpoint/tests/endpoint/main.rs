//! Tests of the public API: request bodies, recorded and constructed answers, and skeletons
//! compared with the parser.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may panic, also in its functions"
)]

mod client_changes;
mod complete_messages;
mod echo;
mod kinds;
mod openai_bodies;
mod other_bodies;
mod raw;
mod recordings;
mod robustness;
mod shapes;
mod skeletons;
mod support;
