//! The instants and counts of one request, and the formulas over them.

use veeksha_model::{CacheKnowledge, ChunkKind, Nanos, RequestRecord, Status};

use crate::cache_classes::{CacheClass, CacheTokens};
use crate::chunks::tokens_after_first;
use crate::packed::{OptionalInstant, OptionalTokens};

/// Returns `later - earlier` in seconds; negative if the order is reversed.
pub fn seconds_between(earlier: Nanos, later: Nanos) -> f64 {
    (later as i64 - earlier as i64) as f64 / 1e9
}

/// Returns the cached share of a prompt, both numbers by the server's count; `None` without a
/// prompt, and if the server reports more cached tokens than prompt tokens.
pub fn cached_share(cached: u32, prompt: u32) -> Option<f64> {
    (prompt > 0 && cached <= prompt).then(|| f64::from(cached) / f64::from(prompt))
}

/// The instants and counts of one request from which the request-level metrics are computed.
///
/// *Generated* chunks contain reasoning, content or part of a tool call. The role, empty deltas,
/// the finish reason, usage and `[DONE]` are not generated chunks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The scheduled instant.
    pub intended: Nanos,
    /// The instant at which the request was handed to a client.
    pub dispatched: Nanos,
    /// The instant at which the last request byte was handed to the socket.
    pub sent: OptionalInstant,
    /// First generated chunk.
    pub first: OptionalInstant,
    /// Second generated chunk.
    pub second: OptionalInstant,
    /// First chunk of visible text.
    pub content: OptionalInstant,
    /// End of generation: the last arrival of output, or the finish event if the response has tool
    /// calls. Present if there is any output, also without streaming, where `first` is unknown.
    pub last: OptionalInstant,
    /// Tokens of the new messages.
    pub prompt_tokens: u32,
    /// Tokens of history and new messages.
    pub total_prompt_tokens: u32,
    /// Tokens generated.
    pub output_tokens: u32,
    /// Output tokens after the first chunk.
    pub tokens_after_first: f64,
    /// Prompt tokens by the server's count; 0 if it reports none.
    pub usage_prompt_tokens: u32,
    /// Prompt tokens from the server's prefix cache.
    pub cached_tokens: OptionalTokens,
    /// The longest beginning of the prompt that its server had computed before.
    pub known_to_server: OptionalTokens,
    /// The longest that any server had computed; 0 if that is unknown.
    pub known_to_any: u32,
    /// Tokens whose text had been computed behind another beginning; 0 if that is unknown.
    pub moved_tokens: u32,
    /// Generated tokens that were reasoning.
    pub reasoning_tokens: OptionalTokens,
    /// Tokens that arrived by their deadline. Deadlines are settings of a run: an evaluator sets
    /// this and the next two fields, which are 0 until then.
    pub on_time: u32,
    /// Tokens that arrived after their deadline.
    pub late: u32,
    /// Deadlines that passed while late tokens were pending.
    pub missed: u32,
    /// True if the request was answered and did not fail midway.
    pub is_answered: bool,
    /// True if its workload cancelled it: the chunks are those that had arrived.
    pub is_cancelled: bool,
}

impl Observation {
    /// Extracts the instants and counts of a record.
    pub fn of(record: &RequestRecord) -> Self {
        let (mut first, mut second, mut content) = (None, None, None);
        let mut chunks = 0;
        let (mut finished, mut calls_tool) = (None, false);
        for chunk in &record.chunks {
            if chunk.kind == ChunkKind::Finish {
                finished = Some(chunk.at);
            }
            if !chunk.kind.is_generated() {
                continue;
            }
            calls_tool |= chunk.kind == ChunkKind::Tool;
            match chunks {
                0 => first = Some(chunk.at),
                1 => second = Some(chunk.at),
                _ => {}
            }
            if chunk.kind == ChunkKind::Content {
                content = content.or(Some(chunk.at));
            }
            chunks += 1;
        }
        let mut last = record.output_at().last();
        // Servers hold back the arguments of a tool call, often until the call is complete.
        if calls_tool {
            last = finished.max(last);
        }
        let usage = record.usage.as_ref();
        Observation {
            intended: record.intended,
            dispatched: record.dispatched_at,
            sent: OptionalInstant::of(record.sent_at),
            first: OptionalInstant::of(first),
            second: OptionalInstant::of(second),
            content: OptionalInstant::of(content),
            last: OptionalInstant::of(last),
            prompt_tokens: record.prompt_tokens,
            total_prompt_tokens: record.total_prompt_tokens,
            output_tokens: record.output_tokens,
            tokens_after_first: tokens_after_first(record, chunks),
            usage_prompt_tokens: usage.map_or(0, |usage| usage.prompt),
            cached_tokens: OptionalTokens::of(usage.and_then(|usage| usage.cached)),
            known_to_server: OptionalTokens::of(record.cache.map(|cache| cache.same_server)),
            known_to_any: record.cache.map_or(0, |cache| cache.any_server),
            moved_tokens: record.cache.map_or(0, |cache| cache.moved),
            reasoning_tokens: OptionalTokens::of(usage.and_then(|usage| usage.reasoning)),
            on_time: 0,
            late: 0,
            missed: 0,
            is_answered: record.is_ok(),
            is_cancelled: record.status == Status::CancelledByClient,
        }
    }

    /// Returns true if any output arrived ([`RequestRecord::has_output`]).
    pub fn has_output(&self) -> bool {
        self.last.get().is_some()
    }

    /// Returns the divisor of TPOT: the tokens after the first chunk; `None` if there is less than
    /// one.
    pub fn decoded_tokens(&self) -> Option<f64> {
        (self.tokens_after_first >= 1.0).then_some(self.tokens_after_first)
    }

    pub(crate) fn prompt_tokens(&self) -> Option<f64> {
        Some(f64::from(self.prompt_tokens))
    }

    pub(crate) fn output_tokens(&self) -> Option<f64> {
        Some(f64::from(self.output_tokens))
    }

    pub(crate) fn total_tokens(&self) -> Option<f64> {
        Some(f64::from(self.total_prompt_tokens) + f64::from(self.output_tokens))
    }

    pub(crate) fn reasoning_tokens(&self) -> Option<f64> {
        self.reasoning_tokens.get().map(f64::from)
    }

    pub(crate) fn cached_token_share(&self) -> Option<f64> {
        cached_share(self.cached_tokens.get()?, self.usage_prompt_tokens)
    }

    /// Returns the prompt tokens by class; `None` if they are not known.
    pub fn cache_tokens(&self) -> Option<CacheTokens> {
        let known = CacheKnowledge {
            same_server: self.known_to_server.get()?,
            any_server: self.known_to_any,
            moved: self.moved_tokens,
        };
        CacheTokens::of(self.usage_prompt_tokens, self.cached_tokens.get()?, known)
    }

    fn tokens_of_class(&self, class: CacheClass) -> Option<f64> {
        Some(self.cache_tokens()?.class(class) as f64)
    }

    pub(crate) fn cache_reused(&self) -> Option<f64> {
        self.tokens_of_class(CacheClass::Reused)
    }

    pub(crate) fn cache_evicted(&self) -> Option<f64> {
        self.tokens_of_class(CacheClass::Evicted)
    }

    pub(crate) fn cache_rerouted(&self) -> Option<f64> {
        self.tokens_of_class(CacheClass::Rerouted)
    }

    pub(crate) fn cache_changed(&self) -> Option<f64> {
        self.tokens_of_class(CacheClass::Changed)
    }

    pub(crate) fn cache_new(&self) -> Option<f64> {
        self.tokens_of_class(CacheClass::New)
    }

    pub(crate) fn ttfc(&self) -> Option<f64> {
        Some(seconds_between(self.dispatched, self.first.get()?))
    }

    pub(crate) fn ttfc_from_intended(&self) -> Option<f64> {
        Some(seconds_between(self.intended, self.first.get()?))
    }

    pub(crate) fn ttfc_content(&self) -> Option<f64> {
        Some(seconds_between(self.dispatched, self.content.get()?))
    }

    pub(crate) fn time_to_second_chunk(&self) -> Option<f64> {
        let (first, second) = (self.first.get()?, self.second.get()?);
        // Saturates, as for every gap: timestamps that run backwards must not produce a negative
        // time.
        Some(second.saturating_sub(first) as f64 / 1e9)
    }

    pub(crate) fn end_to_end(&self) -> Option<f64> {
        Some(seconds_between(self.dispatched, self.last.get()?))
    }

    pub(crate) fn end_to_end_from_intended(&self) -> Option<f64> {
        Some(seconds_between(self.intended, self.last.get()?))
    }

    pub(crate) fn prefill_time(&self) -> Option<f64> {
        Some(seconds_between(self.sent.get()?, self.first.get()?))
    }

    pub(crate) fn decode_time(&self) -> Option<f64> {
        let (first, last) = (self.first.get()?, self.last.get()?);
        // One chunk has no decode time. The decode time of chunks from one read is unknown.
        (last > first).then(|| seconds_between(first, last))
    }

    pub(crate) fn tpot(&self) -> Option<f64> {
        Some(self.decode_time()? / self.decoded_tokens()?)
    }

    pub(crate) fn normalized_end_to_end(&self) -> Option<f64> {
        let end_to_end = self.end_to_end()?;
        (self.output_tokens > 0).then(|| end_to_end / f64::from(self.output_tokens))
    }

    pub(crate) fn output_throughput(&self) -> Option<f64> {
        let end_to_end = self.end_to_end()?;
        (self.output_tokens > 0 && end_to_end > 0.0).then(|| f64::from(self.output_tokens) / end_to_end)
    }

    pub(crate) fn fluidity(&self) -> Option<f64> {
        let all = u64::from(self.on_time) + u64::from(self.missed);
        (all > 0).then(|| f64::from(self.on_time) / all as f64)
    }

    pub(crate) fn fluidity_tokens(&self) -> Option<f64> {
        let all = u64::from(self.on_time) + u64::from(self.late);
        (all > 0).then(|| f64::from(self.on_time) / all as f64)
    }
}
