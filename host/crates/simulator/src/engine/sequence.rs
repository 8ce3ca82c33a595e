//! A request inside the engine.

use veeksha_model::Nanos;

use super::faults::PlannedFault;
use super::kv::Holding;
use super::messages::FinishReason;

/// A sequence's work in the current step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepWork {
    Nothing,
    /// Computes this number of prompt tokens.
    Prefill(u32),
    /// Computes the next token.
    Decode,
}

/// Between steps, a sequence whose prompt is complete has `computed == prompt + generated - 1`
/// tokens in KV memory: the newest token's entry is written by the step that takes it as input.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    pub(super) id: u64,
    pub(super) prompt: u32,
    pub(super) blocks: Vec<u64>,
    /// Number of tokens that it will generate, with the finish reason.
    pub(super) length: u32,
    pub(super) reason: FinishReason,
    pub(super) generated: u32,
    /// Tokens whose KV entries exist.
    pub(super) computed: u32,
    /// Tokens to compute before the next one is generated: the prompt, and after a preemption also
    /// the generated tokens.
    pub(super) target: u32,
    /// Tokens found in the cache at the first admission; `None` before.
    pub(super) cached: Option<u32>,
    pub(super) holding: Holding,
    /// Number of full prompt blocks that are cached or were offered to the cache.
    pub(super) published: usize,
    pub(super) fault: Option<PlannedFault>,
    /// The sequence is inactive in steps that begin earlier.
    pub(super) stalled_until: Nanos,
    pub(super) work: StepWork,
}

impl Sequence {
    pub(super) fn prefilling(&self) -> bool {
        self.computed < self.target
    }

    pub(super) fn stalled(&self, at: Nanos) -> bool {
        self.stalled_until > at
    }

    /// Returns the number of tokens in memory after its next decode step.
    pub(super) fn next_context(&self) -> u32 {
        self.prompt + self.generated
    }
}
