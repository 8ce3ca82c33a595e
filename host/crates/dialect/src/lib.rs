//! The APIs of inference servers: the body of a request, and what the events of an answer mean. Pure: no sockets, no clock.
//!
//! [`request_body`] writes a request as JSON. [`sse`] cuts the bytes of an answer into events and [`stream`] makes chunks and a
//! response of them: bytes and the times at which they came go in, chunks and a verdict come out.
#![forbid(unsafe_code)]

mod api;
mod body;
mod dialect;
mod error_body;
mod failure;
pub mod sse;
pub mod stream;
mod wire;

pub use api::{Api, RenderConversation};
pub use body::request_body;
pub use dialect::Dialect;
pub use error_body::{ServerError, error_in};
pub use failure::{Failure, one_line, shorten};
