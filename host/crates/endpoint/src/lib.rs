//! The APIs of inference servers: request bodies, and the interpretation of response events. Pure:
//! no sockets, no clock.
//!
//! An [`EndpointKind`] is an API. [`request_body`] writes a request as JSON. [`AnswerStream`]
//! splits the bytes of a response into events and converts them into chunks and a response: its
//! inputs are bytes and their read times, its result is an [`AnswerOutcome`]. [`RawStream`] does
//! the same for a plugin that interprets the events. An [`EndpointTemplate`] describes an API
//! without code; [`check_request`] and [`ConversationContent`] name what an API cannot express. A
//! [`HeaderTemplate`] is the value of a header that differs between requests.
#![forbid(unsafe_code)]

mod answer;
mod answer_failure;
mod answer_outcome;
mod answer_stream;
mod api;
mod body;
mod conversation_content;
mod cut;
mod echo;
mod endpoint_kind;
mod error_body;
mod events;
mod failure;
mod feature;
mod header;
mod header_template;
mod json_writer;
mod raw_stream;
mod skeleton;
mod surrogates;
mod template;
mod token_values;

pub use answer_outcome::{AnswerOutcome, BodyEnd, ReadStamp};
pub use answer_stream::{AnswerStream, MAX_EVENTS, MAX_TEXT_BYTES, whole_answer, whole_answer_after_echo};
pub use api::{Api, DEFAULT_REASONING_PARAM, RenderConversation};
pub use body::request_body;
pub use conversation_content::{ConversationContent, check_request};
pub use cut::{EventTooLarge, Item, MAX_EVENT_BYTES, SseDecoder};
pub use echo::EchoedPrompt;
pub use endpoint_kind::EndpointKind;
pub use error_body::{ServerError, error_in};
pub use failure::{Failure, one_line, shorten};
pub use header::{Header, KeyHeader};
pub use header_template::{HeaderTemplate, HeaderTemplateError, HeaderValues, InvalidLabel};
pub use raw_stream::RawStream;
pub use template::{EndpointTemplate, Pointers, TemplateError, TemplateSpec};
