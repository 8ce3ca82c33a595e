//! Arrival times of an answer's chunks in a compact encoding.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Serialize, Serializer};
use veeksha_events::RequestRecord;
use veeksha_model::Nanos;

/// The largest number of chunks that is kept for an answer; longer answers are thinned to every
/// second, third, ... chunk.
const MOST: usize = 4096;

/// Arrival times and token counts of the generated chunks of an answer: whole microseconds, as
/// differences, in LEB128 (seven bits per byte, lowest first). A gap of 20 ms takes three bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkTimes {
    /// The first number is the first chunk's time − the request's intended instant (0 if it arrived
    /// earlier), each further one the gap to the previous chunk.
    times: Vec<u8>,
    /// The tokens of each chunk; empty if each has one.
    tokens: Vec<u8>,
    /// The sampling interval in chunks; 1 if all are kept.
    stride: u32,
}

impl ChunkTimes {
    /// Encodes the generated chunks of a record; `None` if there are none.
    pub fn of(record: &RequestRecord) -> Option<ChunkTimes> {
        let count = record.generated_at().count();
        if count == 0 {
            return None;
        }
        let stride = count.div_ceil(MOST);
        let mut times = Vec::with_capacity(count / stride * 3);
        // Times are truncated to microseconds before the difference is taken, so that truncation
        // errors do not add up.
        let mut before = micros(record.intended);
        for at in record.generated_at().step_by(stride).map(micros) {
            push(&mut times, at.saturating_sub(before));
            before = before.max(at);
        }
        let mut tokens = Vec::new();
        if record.chunk_tokens.iter().any(|&tokens| tokens != 1) {
            // A chunk that represents several has the tokens of all of them.
            for group in record.chunk_tokens.chunks(stride) {
                push(&mut tokens, group.iter().map(|&tokens| u64::from(tokens)).sum());
            }
        } else if stride > 1 {
            (0..count)
                .step_by(stride)
                .for_each(|first| push(&mut tokens, stride.min(count - first) as u64));
        }
        Some(ChunkTimes {
            times,
            tokens,
            stride: u32::try_from(stride).unwrap_or(u32::MAX),
        })
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> usize {
        self.times.len() + self.tokens.len()
    }

    /// Returns the numbers: first the time from the intended instant, then the gaps, in
    /// microseconds.
    pub fn micros(&self) -> Vec<u64> {
        numbers(&self.times)
    }

    /// Returns the tokens of each chunk; empty if each has one.
    pub fn tokens(&self) -> Vec<u64> {
        numbers(&self.tokens)
    }
}

/// Base64 of the times; if needed, followed by `.` and the tokens, `.` and the stride.
impl Serialize for ChunkTimes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(self.bytes() * 4 / 3 + 8);
        STANDARD_NO_PAD.encode_string(&self.times, &mut text);
        if !self.tokens.is_empty() || self.stride > 1 {
            text.push('.');
            STANDARD_NO_PAD.encode_string(&self.tokens, &mut text);
        }
        if self.stride > 1 {
            text.push('.');
            text.push_str(&self.stride.to_string());
        }
        serializer.serialize_str(&text)
    }
}

fn micros(at: Nanos) -> u64 {
    at / 1000
}

fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    let mut numbers = Vec::new();
    let (mut number, mut shift) = (0u64, 0u32);
    for byte in bytes {
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            numbers.push(number);
            (number, shift) = (0, 0);
        }
    }
    numbers
}
