//! Events for a plugin that reads answers: split, timestamped and stored, then interpreted in one
//! call.

use veeksha_model::{AnswerPart, ChunkKind, ErrorClass, Framing, Nanos};

use crate::answer::{Answer, EndRule, MAX_COMMENTS};
use crate::answer_outcome::{AnswerOutcome, BodyEnd, QUOTED_CHARS, ReadStamp};
use crate::answer_stream::MAX_EVENTS;
use crate::cut::{Cutter, EventTooLarge, Item, MAX_EVENT_BYTES};
use crate::failure::Failure;

/// The events of one answer as sent by the server.
#[derive(Debug)]
pub struct RawStream {
    cutter: Cutter,
    limit: usize,
    /// The data of all events, concatenated without separators.
    data: Vec<u8>,
    marks: Vec<ItemMark>,
    comments: usize,
    last_read: Option<u64>,
    first_event_at: Option<Nanos>,
    /// The reason for refusing further input, and the time at which it was detected.
    refused: Option<(Failure, Nanos)>,
    /// The first bytes of the body, quoted in the error for an answer without events.
    beginning: Vec<u8>,
}

/// Metadata of one item.
#[derive(Clone, Copy, Debug)]
struct ItemMark {
    stamp: ReadStamp,
    merged: bool,
    bytes: usize,
    /// True for a comment, which has no data.
    comment: bool,
}

impl RawStream {
    /// Creates the state before the first byte. Events of more than `limit_bytes` in total are
    /// refused.
    pub fn new(framing: Framing, limit_bytes: usize) -> Self {
        RawStream {
            // Space for the syntax around the data of an event.
            cutter: Cutter::with_limit(framing, limit_bytes.saturating_add(64).min(MAX_EVENT_BYTES)),
            limit: limit_bytes,
            data: Vec::new(),
            marks: Vec::new(),
            comments: 0,
            last_read: None,
            first_event_at: None,
            refused: None,
            beginning: Vec::new(),
        }
    }

    /// Processes the next bytes of the body. Returns false once the rest is useless.
    pub fn on_bytes(&mut self, stamp: ReadStamp, bytes: &[u8]) -> bool {
        let mut input = bytes;
        while self.refused.is_none() && !input.is_empty() {
            let kept = match self.cutter.next(&mut input) {
                Ok(None) => break,
                Ok(Some(Item::Comment(text))) => Ok((text.len(), true)),
                Ok(Some(Item::Data(data) | Item::Error(data)))
                    if self.data.len() + data.len() <= self.limit =>
                {
                    self.data.extend_from_slice(data);
                    Ok((data.len(), false))
                }
                Ok(Some(_)) => Err(EventTooLarge { limit: self.limit }),
                Err(_) => Err(EventTooLarge {
                    limit: self.limit.min(MAX_EVENT_BYTES),
                }),
            };
            match kept {
                Ok((_, true)) if self.comments == MAX_COMMENTS => {}
                Ok(_) if self.marks.len() == MAX_EVENTS => {
                    let message = format!("the answer has more than {MAX_EVENTS} events");
                    self.refused
                        .get_or_insert((Failure::new(ErrorClass::Protocol, message), stamp.at));
                }
                Ok((bytes, comment)) => self.mark(stamp, bytes, comment),
                Err(error) => self.refuse(stamp, error),
            }
        }
        if let Cutter::Whole { body, .. } = &self.cutter
            && body.len() > self.limit
        {
            let error = EventTooLarge { limit: self.limit };
            self.refuse(stamp, error);
        }
        if self.first_event_at.is_none() {
            let room = (4 * QUOTED_CHARS).saturating_sub(self.beginning.len());
            self.beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        self.refused.is_none()
    }

    fn mark(&mut self, stamp: ReadStamp, bytes: usize, comment: bool) {
        let merged = self.last_read.replace(stamp.read) == Some(stamp.read);
        if !comment && self.first_event_at.is_none() {
            self.first_event_at = Some(stamp.at);
        }
        self.comments += usize::from(comment);
        self.marks.push(ItemMark {
            stamp,
            merged,
            bytes,
            comment,
        });
    }

    fn refuse(&mut self, stamp: ReadStamp, error: EventTooLarge) {
        let message = format!("{error}, or all its events together are");
        self.refused
            .get_or_insert((Failure::new(ErrorClass::Protocol, message), stamp.at));
    }

    /// Returns the arrival time of the first event. Only the plugin can determine if it contains
    /// generated output.
    pub fn first_event_at(&self) -> Option<Nanos> {
        self.first_event_at
    }

    /// Returns the number of events so far, without comments.
    pub fn events(&self) -> usize {
        self.marks.len() - self.marks.iter().filter(|mark| mark.comment).count()
    }

    /// Ends the body; `stamp` is the connection's last read. `decode` receives the data of all
    /// events and returns the parts of each. It is called only if there are events. The rules are
    /// those of [`crate::AnswerStream`].
    ///
    /// # Errors
    /// If `decode` fails; its error is returned.
    pub fn finish<E>(
        mut self,
        stamp: ReadStamp,
        content_type: Option<&str>,
        end: BodyEnd,
        decode: impl FnOnce(&[&[u8]]) -> Result<Vec<Vec<AnswerPart>>, E>,
    ) -> Result<AnswerOutcome, E> {
        if end == BodyEnd::Complete && self.refused.is_none() {
            while let Ok(Some(item)) = self.cutter.finish() {
                if let Item::Data(data) | Item::Error(data) = item {
                    let bytes = data.len();
                    self.data.extend_from_slice(data);
                    self.mark(stamp, bytes, false);
                }
            }
        }
        let mut events = Vec::new();
        let mut rest = &self.data[..];
        for mark in self.marks.iter().filter(|mark| !mark.comment) {
            let (event, behind) = rest.split_at(mark.bytes);
            events.push(event);
            rest = behind;
        }
        let mut answer = Answer::new(matches!(self.cutter, Cutter::Whole { .. }));
        answer.any_event = !events.is_empty();
        let decoded = if events.is_empty() {
            Vec::new()
        } else {
            decode(&events)?
        };
        let mut decoded = decoded.into_iter();
        for mark in &self.marks {
            if answer.is_over() {
                break;
            }
            if mark.comment {
                answer.push(mark.stamp, mark.merged, mark.bytes, ChunkKind::Comment);
                continue;
            }
            // A decoder returns one list per event; missing lists count as empty.
            for part in decoded.next().unwrap_or_default() {
                answer.part(part);
            }
            answer.end_event(mark.stamp, mark.merged, mark.bytes);
        }
        if let Some((failure, at)) = self.refused {
            answer.fail(at, failure);
        }
        Ok(answer.verdict(
            (EndRule::FinishReason, "its end marker"),
            content_type,
            end,
            &self.beginning,
        ))
    }
}
