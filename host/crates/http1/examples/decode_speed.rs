//! Measures the decoder's time for a chunk of a streamed answer, in nanoseconds: with one read for
//! each chunk, as a paced server sends them, and coalesced into reads of 16 KiB, as a busy client
//! receives them.
//!
//! `cargo run --release -p veeksha-http1 --example decode_speed`
//!
//! Instruction counts do not depend on the state of the machine: `decode_speed WAY ANSWERS EVENTS`
//! decodes `ANSWERS` answers of `EVENTS` events one way (`single` or `coalesced`), without a clock.
//! Run it under callgrind with two numbers of events; the difference is the cost of the events,
//! without heads and without the start of the process.

use std::hint::black_box;
use std::time::Duration;

use veeksha_http1::{DecodeError, DecodedPart, Decoder, DecoderLimits};

/// Events of one answer in timed measurements.
const EVENTS: usize = 64;
/// Bytes of one event, a usual size for a chunk of a chat completion with one token.
const EVENT_BYTES: usize = 230;
/// Bytes of a read that returns only part of the available data.
const READ_BYTES: usize = 16 << 10;
/// Answers of one round. The fastest round is reported.
const ROUND: usize = 200;

struct Recording {
    bytes: Vec<u8>,
    /// End of each read if the server is paced.
    paced: Vec<usize>,
}

fn record(events: usize) -> Recording {
    let mut bytes = b"HTTP/1.1 200 OK\r\ndate: Fri, 20 Nov 2026 20:04:40 GMT\r\nserver: uvicorn\r\n\
        content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
        .to_vec();
    let mut paced = vec![bytes.len()];
    let event = format!("data: {}\n\n", "x".repeat(EVENT_BYTES - 8));
    for _ in 0..events {
        bytes.extend_from_slice(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes());
        paced.push(bytes.len());
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    paced.push(bytes.len());
    Recording { bytes, paced }
}

/// Decodes one answer from these reads and returns the number of bytes of its body.
fn decode(decoder: &mut Decoder, bytes: &[u8], reads: &[usize]) -> Result<usize, DecodeError> {
    decoder.restart();
    let mut size = 0;
    let mut begin = 0;
    for end in reads {
        let mut read = black_box(&bytes[begin..*end]);
        while let Some(part) = decoder.next(&mut read)? {
            if let DecodedPart::Body(bytes) = part {
                size += black_box(bytes).len();
            }
        }
        begin = *end;
    }
    Ok(size)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a measurement of this process, which is not part of a run"
)]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

fn fastest(recording: &Recording, reads: &[usize], rounds: usize) -> Result<Duration, DecodeError> {
    let mut decoder = Decoder::new(DecoderLimits::default());
    let mut best = Duration::MAX;
    for _ in 0..rounds {
        let begin = now();
        for _ in 0..ROUND {
            let size = decode(&mut decoder, &recording.bytes, reads)?;
            assert_eq!(size, EVENTS * EVENT_BYTES);
        }
        best = best.min(begin.elapsed());
    }
    Ok(best)
}

fn main() -> Result<(), DecodeError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|number| number.parse().ok());
    let recording = record(number(2).unwrap_or(EVENTS));
    let coalesced: Vec<usize> = (1..=recording.bytes.len().div_ceil(READ_BYTES))
        .map(|read| (read * READ_BYTES).min(recording.bytes.len()))
        .collect();
    for (way, reads) in [("single", &recording.paced), ("coalesced", &coalesced)] {
        match arguments.first() {
            Some(only) if only == way => {
                let mut decoder = Decoder::new(DecoderLimits::default());
                for _ in 0..number(1).unwrap_or(ROUND) {
                    decode(&mut decoder, &recording.bytes, reads)?;
                }
            }
            Some(_) => {}
            None => {
                let best = fastest(&recording, reads, 100)?.as_nanos() as f64;
                println!(
                    "{way:9} {:6.1} ns per chunk, with its share of the head",
                    best / (ROUND * EVENTS) as f64
                );
            }
        }
    }
    Ok(())
}
