//! Interpretation of response events, one module per endpoint. Each module reads one event and
//! calls the methods of [`Answer`](crate::answer::Answer).

mod anthropic;
mod chat;
mod json;
mod log_probabilities;
mod reader;
mod responses;
mod template;
mod tgi;

pub(crate) use reader::EventReader;
