//! The arrival times of a request's output tokens.

use veeksha_events::RequestRecord;
use veeksha_model::Nanos;

/// Returns the instant of each arrival of output and its share of the output tokens, in `parts` of
/// a token. A response that was not streamed arrives at once. The shares add up to the request's
/// output tokens, so that sums over time equal the totals of the run.
///
/// Chunks are weighted by the host's tokenizer if it counted them, otherwise equally. The weights
/// are only relative: the server's count includes tokens without text (the end of the answer, for
/// example), and text split into chunks has more tokens than the whole text.
pub(crate) fn token_times(record: &RequestRecord, parts: u64) -> impl Iterator<Item = (Nanos, u64)> + '_ {
    let chunks = record.output_at().count();
    let listed = &record.chunk_tokens;
    let listed = if listed.len() == chunks { &listed[..] } else { &[] };
    let counted: u64 = listed.iter().copied().map(u64::from).sum();
    let (listed, whole) = match counted {
        0 => (&[][..], chunks as u64),
        counted => (listed, counted),
    };
    let tokens = u64::from(record.output_tokens);
    let (mut weight, mut given) = (0, 0);
    record.output_at().enumerate().map(move |(place, at)| {
        weight += listed.get(place).copied().map_or(1, u64::from);
        // Rounded cumulatively, so that no part is lost.
        let by_now = if whole == tokens {
            weight.saturating_mul(parts)
        } else {
            let all = u128::from(tokens) * u128::from(parts);
            u64::try_from(all * u128::from(weight) / u128::from(whole.max(1))).unwrap_or(u64::MAX)
        };
        let came = by_now - given;
        given = by_now;
        (at, came)
    })
}

#[cfg(test)]
mod tests {
    use veeksha_model::{Chunk, ChunkKind};

    use super::*;

    fn came(chunks: usize, tokens: u32, listed: &[u32], parts: u64) -> Vec<u64> {
        let chunk = |place: usize| Chunk {
            at: place as Nanos,
            lag: 0,
            bytes: 1,
            kind: ChunkKind::Content,
            merged: false,
        };
        let record = RequestRecord {
            chunks: (0..chunks).map(chunk).collect(),
            chunk_tokens: listed.to_vec(),
            output_tokens: tokens,
            ..crate::blank::record()
        };
        token_times(&record, parts).map(|(_, came)| came).collect()
    }

    #[test]
    fn tokens_of_a_response_that_was_not_streamed_arrive_at_once() {
        let record = RequestRecord {
            chunks: vec![Chunk {
                at: 7,
                lag: 0,
                bytes: 100,
                kind: ChunkKind::Finish,
                merged: false,
            }],
            output_tokens: 9,
            ..crate::blank::record()
        };
        assert_eq!(token_times(&record, 10).collect::<Vec<_>>(), [(7, 90)]);
        let empty = RequestRecord {
            output_tokens: 0,
            ..record
        };
        assert_eq!(token_times(&empty, 10).next(), None);
    }

    #[test]
    fn chunks_carry_what_they_were_counted_to_have() {
        assert_eq!(came(3, 6, &[1, 3, 2], 1), [1, 3, 2]);
        assert_eq!(came(2, 2, &[], 10), [10, 10]);
    }

    #[test]
    fn the_servers_count_is_divided_by_the_hosts() {
        // The server counts eight tokens where the chunks have six: 8/6 for each of theirs.
        assert_eq!(came(3, 8, &[1, 3, 2], 3), [4, 12, 8]);
        assert_eq!(came(3, 8, &[1, 3, 2], 1).iter().sum::<u64>(), 8);
    }

    #[test]
    fn without_a_count_of_chunks_each_has_the_same() {
        assert_eq!(came(4, 6, &[], 2), [3, 3, 3, 3]);
        assert_eq!(came(2, 6, &[0, 0], 1), [3, 3]);
        assert_eq!(came(3, 2, &[], 1).iter().sum::<u64>(), 2);
        assert_eq!(came(3, 0, &[], 1), [0, 0, 0]);
        assert!(came(0, 5, &[], 1).is_empty());
    }
}
