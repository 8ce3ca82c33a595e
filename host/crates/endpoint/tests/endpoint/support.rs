//! Shared helpers of the tests.

use veeksha_endpoint::{AnswerOutcome, AnswerStream, BodyEnd, EndpointKind, ReadStamp};
use veeksha_model::ChunkKind;

/// Returns a fixture of `tests/fixtures/`.
pub(crate) fn bytes_of(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the stamp of read number `read`, at the time `read`.
pub(crate) fn stamp(read: u64) -> ReadStamp {
    ReadStamp {
        at: read,
        lag: 0,
        read,
    }
}

/// Parses the pieces as one read each, at the times 1, 2, ...
pub(crate) fn parse_with<'a>(
    mut stream: AnswerStream,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> AnswerOutcome {
    let mut read = 0;
    for piece in pieces {
        read += 1;
        if !piece.is_empty() && !stream.on_bytes(stamp(read), piece) {
            break;
        }
    }
    stream.finish(stamp(read), Some("text/event-stream"), BodyEnd::Complete)
}

pub(crate) fn parse_as<'a>(
    endpoint: &EndpointKind,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> AnswerOutcome {
    parse_with(AnswerStream::new(endpoint), pieces)
}

/// Returns one letter per event: r role, c content, R reasoning, t tool, f finish, u usage, D end
/// marker, : comment.
pub(crate) fn letters(verdict: &AnswerOutcome) -> String {
    let letter = |kind| match kind {
        ChunkKind::Role => 'r',
        ChunkKind::Reasoning => 'R',
        ChunkKind::Content => 'c',
        ChunkKind::Tool => 't',
        ChunkKind::Finish => 'f',
        ChunkKind::Usage => 'u',
        ChunkKind::Done => 'D',
        ChunkKind::Comment => ':',
    };
    verdict.chunks.iter().map(|chunk| letter(chunk.kind)).collect()
}
