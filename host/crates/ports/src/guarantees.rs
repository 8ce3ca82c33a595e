//! Properties that all sessions of a workload share.

/// Properties that a plugin guarantees for every session of an open workload. The host refuses
/// objectives that such sessions cannot meet and skips work that they do not need. The default
/// guarantees nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guarantees {
    /// No answer is requested with more tokens than this.
    pub max_output_tokens: Option<u32>,
    /// The longest chain of requests in which each waits for the one before it; 1 if no request
    /// waits for another.
    pub max_depth: Option<u32>,
    /// True if no prompt begins like the prompt of another session.
    pub distinct_prompts: bool,
}
