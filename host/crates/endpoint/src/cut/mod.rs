//! Splitting of a response body into events: server-sent events, lines, or the whole body.

mod cutter;
mod item;
mod lines;
mod sse;

pub(crate) use cutter::Cutter;
pub use item::{EventTooLarge, Item, MAX_EVENT_BYTES};
pub use sse::SseDecoder;
