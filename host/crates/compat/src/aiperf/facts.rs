//! The facts about one request that AIPerf's metrics need.

use std::ops::Range;

use veeksha_model::{ChunkKind, Nanos, RequestRecord, Usage};

use crate::answer::{self, Ending};
use crate::sample::GapPool;

/// One request; instants in nanoseconds since the run's zero, durations in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct RequestFacts {
    /// `credit_issued_ns`: the dispatch by the load generator.
    pub(super) issued: Nanos,
    /// `request_start_ns`.
    pub(super) start: Nanos,
    /// `request_end_ns`: the last event of any kind, or the failure.
    pub(super) end: Nanos,
    /// AIPerf counts the request as an error: it failed, or nothing was generated.
    pub(super) error: bool,
    /// Durations since the start, for answers with content.
    pub(super) ttft: Option<Nanos>,
    pub(super) latency: Option<Nanos>,
    pub(super) first_output: Option<Nanos>,
    /// Second content response minus first.
    pub(super) second: Option<Nanos>,
    pub(super) isl: u64,
    /// Tokens of visible text and tool calls, and of reasoning; `None` if the answer has none.
    pub(super) output: Option<u64>,
    pub(super) reasoning: Option<u64>,
    /// The host's tokenizer produced the counts, so they can be compared with the server's.
    pub(super) counted: bool,
    pub(super) requested: Option<u32>,
    pub(super) usage: Option<Usage>,
    pub(super) reused: bool,
    pub(super) dns: Option<Nanos>,
    pub(super) connecting: Option<Nanos>,
    pub(super) waiting: Option<Nanos>,
    pub(super) receiving: Option<Nanos>,
    /// Range of its gaps between content responses in the pool.
    pub(super) gaps: Range<usize>,
}

impl RequestFacts {
    /// Reads the facts from a record and appends the gaps to the pool.
    pub(super) fn of(record: &RequestRecord, pool: &mut GapPool) -> RequestFacts {
        let start = answer::pickup_time(record);
        let content = || record.chunks.iter().filter(|chunk| chunk.kind.is_generated());
        let error = answer::ending(record) != Ending::Answered || content().next().is_none();
        let since = |at: Option<Nanos>| at.filter(|_| !error).map(|at| at.saturating_sub(start));
        let first = content().next().map(|chunk| chunk.at);
        let visible = |kind| matches!(kind, ChunkKind::Content | ChunkKind::Tool);
        let second = content().nth(1).zip(first);
        let begin = pool.len();
        if !error {
            let mut before: Option<Nanos> = None;
            for chunk in content() {
                if let Some(before) = before {
                    pool.push(chunk.at.saturating_sub(before));
                }
                before = Some(chunk.at);
            }
        }
        let some = |wanted: fn(ChunkKind) -> bool| {
            let any = content().any(|chunk| wanted(chunk.kind));
            any.then(|| answer::client_tokens(record, wanted))
                .filter(|_| !error)
        };
        let output = some(|kind| matches!(kind, ChunkKind::Content | ChunkKind::Tool));
        let reasoning = some(|kind| kind == ChunkKind::Reasoning);
        let known = |value: Option<Nanos>| if record.connection_reused { Some(0) } else { value };
        let connecting = record
            .connect
            .map(|connect| connect.saturating_add(record.tls.unwrap_or(0)));
        let reads = record.chunks.iter().filter(|chunk| !chunk.merged).count();
        let last = record.chunks.last().map(|chunk| chunk.at);
        let pickup_time = record.first_byte_at;
        RequestFacts {
            issued: record.dispatched_at,
            start,
            end: answer::end_time(record),
            error,
            ttft: since(first),
            latency: since(content().next_back().map(|chunk| chunk.at)),
            first_output: since(content().find(|chunk| visible(chunk.kind)).map(|chunk| chunk.at)),
            second: second
                .filter(|_| !error)
                .map(|(second, first)| second.at.saturating_sub(first)),
            isl: answer::client_prompt_tokens(record),
            counted: output.is_none_or(|count| count.exact) && reasoning.is_none_or(|count| count.exact),
            output: output.map(|count| count.tokens),
            reasoning: reasoning.map(|count| count.tokens),
            requested: record.target_output_tokens,
            usage: record.usage,
            reused: record.connection_reused,
            dns: known(record.resolve.or(record.connect.map(|_| 0))),
            connecting: known(connecting),
            waiting: record
                .sent_at
                .zip(pickup_time)
                .and_then(|(sent, pickup_time)| pickup_time.checked_sub(sent)),
            receiving: match (pickup_time, last) {
                (Some(_), Some(_)) if reads == 1 => Some(0),
                (Some(pickup_time), Some(last)) => last.checked_sub(pickup_time),
                _ => None,
            },
            gaps: begin..pool.len(),
        }
    }

    /// `output_sequence_length`.
    pub(super) fn osl(&self) -> Option<u64> {
        match (self.output, self.reasoning) {
            (None, None) => None,
            (output, reasoning) => Some(output.unwrap_or(0) + reasoning.unwrap_or(0)),
        }
    }

    /// Returns the instant of the first content.
    pub(super) fn generation_start(&self) -> Option<Nanos> {
        self.ttft.map(|ttft| self.start.saturating_add(ttft))
    }
}
