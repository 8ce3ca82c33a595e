//! Facts about one request that every tool needs: its start and end, and the tokens of its chunks.

use veeksha_model::{Chunk, ChunkKind, ErrorClass, Nanos, RequestRecord, Status};

/// Returns when a client of this host took the request up, which is what a tool's clock reads just
/// before it calls its HTTP library. Waiting for a connection, name resolution, connecting and TLS
/// come after it; limits and queues of the load generator come before it.
pub(crate) fn pickup_time(record: &RequestRecord) -> Nanos {
    record.picked_up_at.unwrap_or(record.dispatched_at)
}

/// Returns when the request was written, after the connection was established.
pub(crate) fn write_time(record: &RequestRecord) -> Nanos {
    record.sent_at.unwrap_or_else(|| pickup_time(record))
}

/// Returns the last event of the answer of any kind: `[DONE]`, usage, a comment, or the failure.
pub(crate) fn end_time(record: &RequestRecord) -> Nanos {
    let last = record.chunks.last().map_or(0, |chunk| chunk.at);
    last.max(record.completed_at)
}

/// Outcome of a request, as far as the tools distinguish cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Answered completely.
    Answered,
    /// The server sent `error` inside a stream that is complete for HTTP; several tools ignore it.
    ErrorEvent,
    /// Cancelled by the client.
    Cancelled,
    /// Any other failure.
    Failed,
}

/// Returns the outcome of the request.
pub(crate) fn ending(record: &RequestRecord) -> Ending {
    match &record.status {
        Status::Ok { .. } => Ending::Answered,
        Status::CancelledByClient => Ending::Cancelled,
        Status::Failed { class, .. } => match class {
            ErrorClass::InStream => Ending::ErrorEvent,
            ErrorClass::Cancelled => Ending::Cancelled,
            _ => Ending::Failed,
        },
    }
}

/// Returns the prompt tokens by the host's tokenizer without those of a chat template, as counted
/// by a tool that tokenizes the text it sends.
pub(crate) fn client_prompt_tokens(record: &RequestRecord) -> u64 {
    u64::from(record.total_prompt_tokens.saturating_sub(record.template_tokens))
}

/// Returns the prompt tokens: the server's count, else the client's.
pub(crate) fn prompt_tokens(record: &RequestRecord) -> u64 {
    let usage = record.usage.map(|usage| u64::from(usage.prompt));
    usage.unwrap_or_else(|| client_prompt_tokens(record))
}

/// A token count and its reliability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CountedTokens {
    /// Number of tokens.
    pub(crate) tokens: u64,
    /// True if the host's tokenizer counted them; false if the server's total is used or
    /// distributed over chunks.
    pub(crate) exact: bool,
}

/// Returns the chunks with generated content, with their tokens by the host's tokenizer, or one
/// token each if that is unknown.
pub(crate) fn generated(record: &RequestRecord) -> impl Iterator<Item = (&Chunk, u64)> + '_ {
    let known = tokens_per_chunk_known(record);
    let chunks = record.chunks.iter().filter(|chunk| chunk.kind.is_generated());
    chunks.enumerate().map(move |(at, chunk)| {
        let tokens = if known {
            record.chunk_tokens.get(at).copied()
        } else {
            None
        };
        (chunk, tokens.map_or(1, u64::from))
    })
}

fn generated_count(record: &RequestRecord) -> usize {
    let generated = record.chunks.iter().filter(|chunk| chunk.kind.is_generated());
    generated.count()
}

fn tokens_per_chunk_known(record: &RequestRecord) -> bool {
    !record.chunk_tokens.is_empty() && record.chunk_tokens.len() == generated_count(record)
}

/// Counts the tokens of the chunks of the `wanted` kinds, like a client that tokenizes the texts.
pub(crate) fn client_tokens(record: &RequestRecord, wanted: fn(ChunkKind) -> bool) -> CountedTokens {
    let chunks = generated_count(record) as u64;
    let of_kind = |(chunk, tokens): (&Chunk, u64)| if wanted(chunk.kind) { tokens } else { 0 };
    let sum: u64 = generated(record).map(of_kind).sum();
    let total = u64::from(record.output_tokens);
    if tokens_per_chunk_known(record) || chunks == total {
        // Counted tokens per chunk, or one token in each.
        return CountedTokens {
            tokens: sum,
            exact: true,
        };
    }
    if !record.is_ok() {
        // The tokens before a failure were not counted: one per chunk is the lower bound.
        return CountedTokens {
            tokens: sum,
            exact: false,
        };
    }
    if sum == chunks {
        return CountedTokens {
            tokens: total,
            exact: !record.output_tokens_from_usage,
        };
    }
    let reasoning = record.usage.and_then(|usage| usage.reasoning).map(u64::from);
    let chunks_of = |kind| record.chunks.iter().filter(|chunk| chunk.kind == kind).count() as u64;
    let (thought, visible) = (
        chunks_of(ChunkKind::Reasoning),
        chunks - chunks_of(ChunkKind::Reasoning),
    );
    let tokens = match reasoning {
        // The server reports reasoning tokens separately, so only the rest has to be distributed.
        Some(reasoning) => {
            let rest = total.saturating_sub(reasoning);
            let thinks = if wanted(ChunkKind::Reasoning) {
                reasoning
            } else {
                0
            };
            let shows = if wanted(ChunkKind::Reasoning) {
                sum.saturating_sub(thought)
            } else {
                sum
            };
            thinks + share(rest, shows, visible)
        }
        None => share(total, sum, chunks),
    };
    CountedTokens { tokens, exact: false }
}

/// Returns `total` times `part`/`whole`, rounded.
fn share(total: u64, part: u64, whole: u64) -> u64 {
    if whole == 0 {
        return 0;
    }
    (total as f64 * part as f64 / whole as f64).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Request, record};

    fn visible(kind: ChunkKind) -> bool {
        matches!(kind, ChunkKind::Content)
    }

    fn any(kind: ChunkKind) -> bool {
        kind.is_generated()
    }

    #[test]
    fn counts_tokens_per_chunk_if_known() {
        let request = Request::default()
            .reasoning(&[10.0, 20.0])
            .content(&[30.0, 40.0])
            .chunk_tokens(&[3, 4, 5, 6])
            .output(17, true);
        let record = record(&request);
        assert_eq!(
            client_tokens(&record, visible),
            CountedTokens {
                tokens: 11,
                exact: true
            }
        );
        assert_eq!(
            client_tokens(&record, any),
            CountedTokens {
                tokens: 18,
                exact: true
            }
        );
    }

    #[test]
    fn equal_chunk_and_token_counts_mean_one_each() {
        let request = Request::default()
            .reasoning(&[10.0, 20.0])
            .content(&[30.0])
            .output(3, true);
        let record = record(&request);
        assert_eq!(
            client_tokens(&record, visible),
            CountedTokens {
                tokens: 1,
                exact: true
            }
        );
    }

    #[test]
    fn uses_the_servers_split_or_distributes_by_chunks() {
        // 20 tokens, 8 of them reasoning; two visible chunks, both wanted: 12.
        let split = Request::default()
            .reasoning(&[10.0, 20.0])
            .content(&[30.0, 40.0])
            .output(20, true)
            .reasoned(8);
        assert_eq!(
            client_tokens(&record(&split), visible),
            CountedTokens {
                tokens: 12,
                exact: false
            }
        );
        // Without the server's split: half of the chunks, half of the tokens.
        let plain = Request::default()
            .reasoning(&[10.0, 20.0])
            .content(&[30.0, 40.0])
            .output(20, true);
        assert_eq!(
            client_tokens(&record(&plain), visible),
            CountedTokens {
                tokens: 10,
                exact: false
            }
        );
        // All chunks wanted: the total, either the server's or the host's.
        let total = Request::default().content(&[30.0, 40.0]).output(20, true);
        assert_eq!(
            client_tokens(&record(&total), visible),
            CountedTokens {
                tokens: 20,
                exact: false
            }
        );
        let counted = Request::default().content(&[30.0, 40.0]).output(20, false);
        assert_eq!(
            client_tokens(&record(&counted), visible),
            CountedTokens {
                tokens: 20,
                exact: true
            }
        );
    }

    #[test]
    fn missing_timestamps_fall_back_to_earlier_ones() {
        let mut record = record(&Request::default().content(&[500.0]).output(1, true));
        (record.dispatched_at, record.picked_up_at, record.sent_at) = (10, Some(12), Some(15));
        record.completed_at = 400;
        assert_eq!(
            (pickup_time(&record), write_time(&record), end_time(&record)),
            (12, 15, 500_000_000)
        );
        (record.picked_up_at, record.sent_at) = (None, None);
        record.chunks.clear();
        assert_eq!(
            (pickup_time(&record), write_time(&record), end_time(&record)),
            (10, 10, 400)
        );
    }
}
