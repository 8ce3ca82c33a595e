//! Tests of the decoding of answers: by tables, against hyper's client on the same bytes, under
//! mutations, and on recorded bytes of inference servers.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod agreement;
mod decoding;
mod generated;
mod hyper_client;
mod mutations;
mod recorded;
mod table;
