//! The chunks of an answer: gaps between them, and tokens in each.

use veeksha_model::{Nanos, RequestRecord};

/// The gaps between successive generated chunks, in nanoseconds.
pub fn gaps(record: &RequestRecord) -> impl Iterator<Item = Nanos> + '_ {
    let later = record.generated_at().skip(1);
    record
        .generated_at()
        .zip(later)
        .map(|(earlier, later)| later.saturating_sub(earlier))
}

/// Returns true if two token counts of an answer are equal, or differ by the end token only:
/// servers count it, and it has no text for a tokenizer to count.
pub(crate) fn agree(one: u64, other: u64) -> bool {
    one.abs_diff(other) <= 1
}

/// Returns the tokens of each generated chunk, in order; `None` where they are unknown.
///
/// If the server's total differs from the sum over the chunks by more than one token, the chunks
/// were counted by a tokenizer other than the model's, or end within words. The counts are then
/// scaled to the server's total and rounded cumulatively, so that they add up to it.
pub fn answer_tokens_by_chunk(record: &RequestRecord) -> Option<Vec<u32>> {
    let mut tokens = record.tokens_by_chunk()?;
    let counted: u64 = tokens.iter().copied().map(u64::from).sum();
    let total = u64::from(record.output_tokens);
    if agree(counted, total) || counted == 0 || total == 0 {
        return Some(tokens);
    }
    let (mut sum, mut given) = (0u64, 0u64);
    for tokens in &mut tokens {
        sum += u64::from(*tokens);
        let by_now = (u128::from(sum) * u128::from(total) / u128::from(counted)) as u64;
        *tokens = (by_now - given) as u32;
        given = by_now;
    }
    Some(tokens)
}

/// Returns a lower bound of the output tokens after the first chunk: the total minus the tokens of
/// the first chunk. These are the chunk's own count, scaled to the server's total; where chunks
/// were not counted, an equal share. A generated chunk has at least one token.
pub(crate) fn tokens_after_first(record: &RequestRecord, chunks: u32) -> f64 {
    let total = f64::from(record.output_tokens);
    let (first, counted) = match record.tokens_by_chunk() {
        Some(tokens) => {
            let counted: u64 = tokens.iter().copied().map(u64::from).sum();
            (tokens.first().copied().unwrap_or(0), counted)
        }
        None => (1, u64::from(chunks)),
    };
    let scale = if counted == 0 || agree(counted, u64::from(record.output_tokens)) {
        1.0
    } else {
        total / counted as f64
    };
    total - (f64::from(first) * scale).max(1.0)
}

#[cfg(test)]
mod tests {
    use veeksha_model::{Chunk, ChunkKind, NodeId, RequestId, SessionId};

    use super::*;

    fn answer(chunks: usize, total: u32, by_chunk: &[u32]) -> RequestRecord {
        let chunk = |place: usize| Chunk {
            at: place as Nanos,
            lag: 0,
            bytes: 1,
            kind: ChunkKind::Content,
            merged: false,
        };
        RequestRecord {
            chunks: (0..chunks).map(chunk).collect(),
            chunk_tokens: by_chunk.to_vec(),
            output_tokens: total,
            ..RequestRecord::answered(RequestId {
                session: SessionId(0),
                node: NodeId(0),
            })
        }
    }

    #[test]
    fn scales_counts_of_another_tokenizer_to_the_servers_total() {
        let scaled = |total, tokens: &[u32]| answer_tokens_by_chunk(&answer(tokens.len(), total, tokens));
        assert_eq!(scaled(6, &[1, 3, 2]), Some(vec![1, 3, 2]));
        // One more than the sum: the token that ends the answer.
        assert_eq!(scaled(7, &[1, 3, 2]), Some(vec![1, 3, 2]));
        assert_eq!(scaled(12, &[1, 3, 2]), Some(vec![2, 6, 4]));
        assert_eq!(scaled(3, &[1, 1, 1, 1, 1]), Some(vec![0, 1, 0, 1, 1]));
        // The server reports nothing.
        assert_eq!(scaled(0, &[1, 3, 2]), Some(vec![1, 3, 2]));
    }

    #[test]
    fn chunks_without_counts_have_one_token_each_or_are_unknown() {
        assert_eq!(answer_tokens_by_chunk(&answer(3, 3, &[])), Some(vec![1, 1, 1]));
        assert_eq!(answer_tokens_by_chunk(&answer(3, 9, &[])), None);
    }

    #[test]
    fn tokens_of_the_first_chunk_are_taken_off_the_total() {
        let after = |chunks, total, by_chunk: &[u32]| {
            tokens_after_first(&answer(chunks, total, by_chunk), chunks as u32)
        };
        assert_eq!(after(7, 140, &[20; 7]), 120.0);
        assert_eq!(after(3, 10, &[7, 2, 1]), 3.0);
        // Equal shares.
        assert_eq!(after(7, 140, &[]), 120.0);
        // Counted by a tokenizer that returns 25 tokens for 20.
        assert_eq!(after(7, 140, &[25; 7]), 120.0);
        // One token in each chunk, plus the token that ends the answer.
        assert_eq!(after(5, 5, &[]), 4.0);
        assert_eq!(after(5, 6, &[1; 5]), 5.0);
        assert_eq!(after(5, 6, &[]), 5.0);
        // A first chunk that ends within a character, with more chunks than tokens.
        assert_eq!(after(3, 2, &[0, 1, 1]), 1.0);
        assert_eq!(after(9, 3, &[]), 2.0);
    }
}
