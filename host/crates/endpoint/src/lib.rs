//! The APIs of inference servers: the body of a request, and what the events of an answer mean. Pure: no sockets, no clock.
//!
//! A [`Dialect`] is an API. [`request_body`] writes a request as JSON. [`AnswerStream`] cuts the bytes of an answer into events and makes
//! chunks and a response of them: bytes and the times at which they came go in, chunks and a verdict come out. [`RawStream`] does the
//! same for a plugin that knows what events mean. A [`Template`] describes an API without code.
#![forbid(unsafe_code)]

mod api;
mod body;
mod cut;
mod dialect;
mod error_body;
mod events;
mod failure;
pub mod stream;
mod template;

pub use api::{Api, RenderConversation};
pub use body::request_body;
pub use cut::{EventTooLarge, Item, MAX_EVENT_BYTES, sse};
pub use dialect::{Dialect, Header, KeyHeader};
pub use error_body::{ServerError, error_in};
pub use failure::{Failure, one_line, shorten};
pub use stream::{AnswerStream, BodyEnd, RawStream, ReadStamp, Verdict, whole_answer};
pub use template::{Pointers, Template, TemplateError, TemplateSpec};
