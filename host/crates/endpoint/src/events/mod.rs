//! What the events of an answer mean, endpoint by endpoint. Each file reads one event and tells the [`Answer`] what it says.

mod anthropic;
mod chat;
mod json;
mod reader;
mod responses;
mod template;
mod tgi;

pub(crate) use reader::Reader;
