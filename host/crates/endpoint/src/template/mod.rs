//! An API that somebody described: no code, only what a request looks like and where an answer has its parts.
//!
//! A request is JSON in which some strings are placeholders, for example `{"text": "{{prompt}}", "limit": "{{max_tokens}}"}`. An
//! answer is read with JSON pointers ([RFC 6901](https://www.rfc-editor.org/rfc/rfc6901)), for example `/choices/0/text`; `*` where
//! an array's index is expected means every element.

mod definition;
mod error;
mod placeholder;
mod pointer;
mod request;
mod spec;

pub use definition::Template;
pub use error::TemplateError;
pub use spec::{Pointers, TemplateSpec};

pub(crate) use placeholder::Placeholder;
pub(crate) use pointer::{Found, Target};
pub(crate) use request::Fill;
