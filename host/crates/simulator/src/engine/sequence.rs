//! A request inside the engine.

use veeksha_model::Nanos;

use super::faults::PlannedFault;
use super::kv::Holding;
use super::messages::FinishReason;

/// What a sequence does in the current step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Nothing,
    /// So many tokens of its prompt are computed.
    Prefill(u32),
    /// Its next token is computed.
    Decode,
}

/// Between steps, a sequence whose prompt is complete has `computed == prompt + generated - 1` tokens in KV memory: the newest
/// token's entry is written by the step that it is the input of.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    pub(super) id: u64,
    pub(super) prompt: u32,
    pub(super) blocks: Vec<u64>,
    /// Tokens that it will generate, and why it will end there.
    pub(super) length: u32,
    pub(super) reason: FinishReason,
    pub(super) generated: u32,
    /// Tokens whose KV entries exist.
    pub(super) computed: u32,
    /// Tokens to compute before the next one comes out: the prompt, and after a preemption also what was generated.
    pub(super) target: u32,
    /// Tokens found in the cache at the first admission; `None` before it.
    pub(super) cached: Option<u32>,
    pub(super) holding: Holding,
    /// Full blocks of the prompt that the cache knows or was offered.
    pub(super) published: usize,
    pub(super) fault: Option<PlannedFault>,
    /// It does nothing in steps that begin before.
    pub(super) stalled_until: Nanos,
    pub(super) work: Work,
}

impl Sequence {
    pub(super) fn prefilling(&self) -> bool {
        self.computed < self.target
    }

    pub(super) fn stalled(&self, at: Nanos) -> bool {
        self.stalled_until > at
    }

    /// Tokens whose entries its next decode step needs room for.
    pub(super) fn next_context(&self) -> u32 {
        self.prompt + self.generated
    }
}
