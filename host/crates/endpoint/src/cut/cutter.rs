//! Splitting of response bytes into events, independent of read boundaries: server-sent events,
//! lines, or the whole body.

use veeksha_model::Framing;

use super::item::{EventTooLarge, Item};
use super::lines::LineDecoder;
use super::sse::SseDecoder;

/// A decoder for one framing.
#[derive(Debug)]
pub(crate) enum Cutter {
    EventStream(SseDecoder),
    Lines(LineDecoder),
    Whole {
        limit: usize,
        body: Vec<u8>,
        handed_out: bool,
    },
}

impl Cutter {
    /// Creates a decoder that refuses events above `limit` bytes.
    pub(crate) fn with_limit(framing: Framing, limit: usize) -> Self {
        match framing {
            Framing::EventStream => Cutter::EventStream(SseDecoder::with_limit(limit)),
            Framing::Lines => Cutter::Lines(LineDecoder::with_limit(limit)),
            Framing::Whole => Cutter::Whole {
                limit,
                body: Vec::new(),
                handed_out: false,
            },
        }
    }

    /// Consumes input up to the end of the next item; `None`: the input is used up.
    pub(crate) fn next<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Item<'s>>, EventTooLarge> {
        match self {
            Cutter::EventStream(decoder) => decoder.next(input),
            Cutter::Lines(decoder) => Ok(decoder.next(input)?.map(Item::Data)),
            Cutter::Whole { limit, body, .. } => {
                if body.len() + input.len() > *limit {
                    return Err(EventTooLarge { limit: *limit });
                }
                body.extend_from_slice(input);
                *input = &[];
                Ok(None)
            }
        }
    }

    /// Ends the body and returns the remaining items, one per call.
    pub(crate) fn finish(&mut self) -> Result<Option<Item<'_>>, EventTooLarge> {
        match self {
            Cutter::EventStream(decoder) => decoder.finish(),
            Cutter::Lines(decoder) => Ok(decoder.next(&mut &b"\n"[..])?.map(Item::Data)),
            Cutter::Whole { body, handed_out, .. } => {
                if std::mem::replace(handed_out, true) || body.trim_ascii().is_empty() {
                    return Ok(None);
                }
                Ok(Some(Item::Data(body)))
            }
        }
    }

    /// Returns true if `input` begins an event like any later event of the stream.
    pub(crate) fn begins_event(&self, input: &[u8]) -> bool {
        match self {
            Cutter::EventStream(decoder) => decoder.begins_event(input),
            Cutter::Lines(decoder) => decoder.is_between_events(),
            Cutter::Whole { .. } => false,
        }
    }

    /// Returns true if no earlier input affects later input.
    pub(crate) fn is_between_events(&self) -> bool {
        match self {
            Cutter::EventStream(decoder) => decoder.is_between_events(),
            Cutter::Lines(decoder) => decoder.is_between_events(),
            Cutter::Whole { .. } => false,
        }
    }
}
