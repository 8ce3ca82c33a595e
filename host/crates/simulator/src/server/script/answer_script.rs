//! The script of one answer: it writes events to a buffer.

use veeksha_model::{ChunkKind, Usage};

use crate::engine::FinishReason;

/// Events to be written: their bytes, and the end of each.
#[derive(Debug, Default)]
pub(in crate::server) struct EventBuffer {
    pub(in crate::server) bytes: Vec<u8>,
    pub(in crate::server) marks: Vec<(usize, ChunkKind)>,
}

impl EventBuffer {
    pub(in crate::server) fn clear(&mut self) {
        self.bytes.clear();
        self.marks.clear();
    }

    pub(in crate::server) fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Ends an event.
    pub(in crate::server) fn end(&mut self, kind: ChunkKind) {
        self.marks.push((self.bytes.len(), kind));
    }

    /// Appends a server-sent event with a name and JSON data.
    pub(in crate::server) fn named(&mut self, name: &str, data: &serde_json::Value, kind: ChunkKind) {
        self.text("event: ");
        self.text(name);
        self.text("\ndata: ");
        self.text(&data.to_string());
        self.text("\n\n");
        self.end(kind);
    }
}

/// Presence of the event that ends a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum EndMarker {
    Sent,
    Missing,
}

/// The events of one answer.
pub(in crate::server) trait Script: Send {
    /// Writes the events before the first token, when the request is admitted to the batch.
    fn begin(&mut self, _out: &mut EventBuffer, _usage: &Usage) {}

    /// Writes one token. `last`: the answer is complete with it.
    fn token(&mut self, out: &mut EventBuffer, index: u32, last: bool);

    /// Writes the events after the last token.
    fn finish(&mut self, out: &mut EventBuffer, reason: FinishReason, usage: &Usage, marker: EndMarker);

    /// Writes an error in place of the rest.
    fn error(&mut self, out: &mut EventBuffer, message: &str);

    /// Returns the body of an answer that is not streamed; without a reason it was cut off.
    fn whole(&self, reason: Option<FinishReason>, usage: &Usage) -> Vec<u8>;
}
