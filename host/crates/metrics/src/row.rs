//! What is kept of a request: enough to compute every metric of it, in about a hundred and fifty bytes.

use veeksha_events::{RequestRecord, Status};
use veeksha_model::{ChunkKind, ErrorClass, Nanos, RequestId};

use crate::gaps::Stretch;
use crate::label_sets::LabelSet;
use crate::latencies::seconds_between;

/// An instant that may not exist, in eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(Nanos);

impl Instant {
    pub(crate) const NONE: Instant = Instant(Nanos::MAX);

    pub(crate) fn of(at: Option<Nanos>) -> Self {
        at.map_or(Instant::NONE, Instant)
    }

    pub(crate) fn get(self) -> Option<Nanos> {
        (self != Instant::NONE).then_some(self.0)
    }
}

/// A number of tokens that may not be known, in four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tokens(u32);

impl Tokens {
    const NONE: Tokens = Tokens(u32::MAX);

    fn of(tokens: Option<u32>) -> Self {
        tokens.map_or(Tokens::NONE, |tokens| Tokens(tokens.min(u32::MAX - 1)))
    }

    pub(crate) fn get(self) -> Option<u32> {
        (self != Tokens::NONE).then_some(self.0)
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Answered,
    Failed,
    Cancelled,
}

/// The cached part of a prompt, both by the server's count; `None` without a prompt, and where the server contradicts itself.
pub(crate) fn share_cached(cached: u32, prompt: u32) -> Option<f64> {
    (prompt > 0 && cached <= prompt).then(|| f64::from(cached) / f64::from(prompt))
}

/// A request that ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) id: RequestId,
    pub(crate) intended: Nanos,
    pub(crate) dispatched: Nanos,
    pub(crate) sent: Instant,
    /// First generated chunk.
    pub(crate) first: Instant,
    /// First chunk of visible text.
    pub(crate) content: Instant,
    /// Last generated chunk; exists where the first does.
    pub(crate) last: Instant,
    pub(crate) completed: Nanos,
    pub(crate) wait_after_ready: Nanos,
    /// Its gaps; as many as generated chunks less one.
    pub(crate) gaps: Stretch,
    /// Where its parents stand in the list of all parents, and how many they are.
    pub(crate) parents: (u32, u32),
    pub(crate) labels: LabelSet,
    pub(crate) prompt_tokens: u32,
    pub(crate) total_prompt_tokens: u32,
    pub(crate) output_tokens: u32,
    pub(crate) usage_prompt_tokens: u32,
    pub(crate) cached_tokens: Tokens,
    pub(crate) reasoning_tokens: Tokens,
    /// Of the first generated chunk.
    pub(crate) first_tokens: u32,
    /// Tokens that came by their deadline, tokens that came later, deadlines that late ones missed; all 0 where they are not known.
    pub(crate) on_time: u32,
    pub(crate) late: u32,
    pub(crate) missed: u32,
    pub(crate) end: End,
    pub(crate) measured: bool,
    /// Whether the tokens of its chunks are known.
    pub(crate) counted: bool,
    /// Whether its answer had a part of a tool call.
    pub(crate) called_tool: bool,
    /// Whether it was answered with something, kept every condition and was judged good: known at the end.
    pub(crate) good: bool,
}

impl Row {
    /// What the record says by itself: without place for gaps, parents and labels.
    pub(crate) fn of(record: &RequestRecord) -> Self {
        let (mut first, mut content, mut last) = (None, None, None);
        let (mut count, mut called_tool) = (0u32, false);
        for chunk in record.chunks.iter().filter(|chunk| chunk.kind.is_generated()) {
            first = first.or(Some(chunk.at));
            if chunk.kind == ChunkKind::Content {
                content = content.or(Some(chunk.at));
            }
            called_tool |= chunk.kind == ChunkKind::Tool;
            last = Some(chunk.at);
            count += 1;
        }
        let usage = record.usage.as_ref();
        Row {
            id: record.id,
            intended: record.intended,
            dispatched: record.dispatched_at,
            sent: Instant::of(record.sent_at),
            first: Instant::of(first),
            content: Instant::of(content),
            last: Instant::of(last),
            completed: record.completed_at,
            wait_after_ready: record.wait_after_ready,
            gaps: Stretch {
                at: 0,
                count: count.saturating_sub(1),
            },
            parents: (0, 0),
            labels: 0,
            prompt_tokens: record.prompt_tokens,
            total_prompt_tokens: record.total_prompt_tokens,
            output_tokens: record.output_tokens,
            usage_prompt_tokens: usage.map_or(0, |usage| usage.prompt),
            cached_tokens: Tokens::of(usage.and_then(|usage| usage.cached)),
            reasoning_tokens: Tokens::of(usage.and_then(|usage| usage.reasoning)),
            first_tokens: 0,
            on_time: 0,
            late: 0,
            missed: 0,
            end: match &record.status {
                Status::Ok { .. } => End::Answered,
                Status::Failed {
                    class: ErrorClass::Cancelled,
                    ..
                } => End::Cancelled,
                Status::Failed { .. } => End::Failed,
            },
            measured: record.measured,
            counted: false,
            called_tool,
            good: false,
        }
    }

    /// Whether metrics are computed from it: measured and answered.
    pub(crate) fn counts(&self) -> bool {
        self.measured && self.end == End::Answered
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
        // One chunk has no decoding; of several that one read brought it is not known how long they took, only that it was not nothing.
        (last > first).then(|| seconds_between(first, last))
    }

    pub(crate) fn tpot(&self) -> Option<f64> {
        let decoding = self.decode_time()?;
        (self.output_tokens >= 2).then(|| decoding / f64::from(self.output_tokens - 1))
    }

    pub(crate) fn normalized_end_to_end(&self) -> Option<f64> {
        let end_to_end = self.end_to_end()?;
        (self.output_tokens > 0).then(|| end_to_end / f64::from(self.output_tokens))
    }

    pub(crate) fn output_throughput(&self) -> Option<f64> {
        let end_to_end = self.end_to_end()?;
        (self.output_tokens > 0 && end_to_end > 0.0).then(|| f64::from(self.output_tokens) / end_to_end)
    }

    pub(crate) fn cached_token_share(&self) -> Option<f64> {
        share_cached(self.cached_tokens.get()?, self.usage_prompt_tokens)
    }

    /// See [`crate::fluidity`].
    pub(crate) fn fluidity(&self) -> Option<f64> {
        let all = u64::from(self.on_time) + u64::from(self.missed);
        (all > 0).then(|| f64::from(self.on_time) / all as f64)
    }

    /// See [`crate::fluidity`].
    pub(crate) fn fluidity_tokens(&self) -> Option<f64> {
        let all = u64::from(self.on_time) + u64::from(self.late);
        (all > 0).then(|| f64::from(self.on_time) / all as f64)
    }
}
