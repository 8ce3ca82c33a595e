//! Cuts the bytes of an answer into events, whatever the reads were: server-sent events, lines, or the body as a whole.

use veeksha_model::Framing;

use super::item::{EventTooLarge, Item};
use super::lines::LineDecoder;
use super::sse::SseDecoder;

/// Cuts bytes as a framing asks for it.
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
    /// Refuses events above `limit` bytes.
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

    /// Takes bytes off the front of the input up to the end of the next item; `None`: the input is used up.
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

    /// The body has ended: what is left of it, item by item.
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

    /// Whether `input` begins an event, as any later event of the stream would.
    pub(crate) fn begins_event(&self, input: &[u8]) -> bool {
        match self {
            Cutter::EventStream(decoder) => decoder.begins_event(input),
            Cutter::Lines(decoder) => decoder.is_between_events(),
            Cutter::Whole { .. } => false,
        }
    }

    /// Whether nothing of what has come so far bears on what comes next.
    pub(crate) fn is_between_events(&self) -> bool {
        match self {
            Cutter::EventStream(decoder) => decoder.is_between_events(),
            Cutter::Lines(decoder) => decoder.is_between_events(),
            Cutter::Whole { .. } => false,
        }
    }
}
