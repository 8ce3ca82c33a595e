//! User-defined APIs: a declarative description of the request body and of the parts of an answer.
//!
//! A request is JSON in which some strings are placeholders, for example
//! `{"text": "{{prompt}}", "limit": "{{max_tokens}}"}`. An answer is read with JSON pointers ([RFC
//! 6901](https://www.rfc-editor.org/rfc/rfc6901)), for example `/choices/0/text`; `*` in the
//! position of an array index matches every element.

mod definition;
mod error;
mod placeholder;
mod pointer;
mod request;
mod spec;

pub use definition::EndpointTemplate;
pub use error::TemplateError;
pub use spec::{Pointers, TemplateSpec};

pub(crate) use placeholder::Placeholder;
pub(crate) use pointer::{PointerSink, PointerTarget};
pub(crate) use request::Fill;
