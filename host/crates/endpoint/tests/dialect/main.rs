//! The crate as its users see it: bodies of requests, recorded and written answers, and skeletons against the parser.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may panic, also in its functions"
)]

mod bodies;
mod body;
mod damage;
mod dialects;
mod raw;
mod recordings;
mod shapes;
mod skeletons;
mod support;
