//! Information that a conversion loses.

use std::collections::BTreeMap;

use serde::Serialize;

/// Information that the format cannot represent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// Description of the information and of its replacement.
    pub what: &'static str,
    /// Number of affected requests (for arrivals and labels: also sessions).
    pub count: u64,
}

/// Counts losses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses(BTreeMap<&'static str, u64>);

impl Losses {
    pub(crate) fn add(&mut self, what: &'static str, lost: bool) {
        if lost {
            *self.0.entry(what).or_default() += 1;
        }
    }

    pub(crate) fn list(&self) -> Vec<Loss> {
        let losses = self.0.iter().map(|(what, count)| Loss { what, count: *count });
        losses.collect()
    }
}

pub(crate) const WORDS: &str = "text of prompts (its length is kept)";
pub(crate) const MESSAGES: &str = "several messages, or roles other than the user's (their length is kept)";
pub(crate) const SHARING: &str = "prompts with the prefix of an earlier one (it becomes unshared text)";
pub(crate) const FINE_SHARING: &str =
    "common prefixes that end within a block (they end with the preceding block)";
pub(crate) const MEDIA: &str = "images, audio and video";
pub(crate) const BODY: &str = "extra body fields";
pub(crate) const LABELS: &str = "labels";
pub(crate) const LATENCY: &str = "recorded latencies";
pub(crate) const ANSWERS: &str = "recorded answers in later prompts (replaced by live answers)";
pub(crate) const ANSWER_WORDS: &str = "text of recorded answers";
pub(crate) const INSTANTS: &str = "recorded instants";
pub(crate) const EDGES: &str = "requests that wait for others (they become separate sessions)";
pub(crate) const EVENTS: &str =
    "requests that wait for another event than an answer's end, or longer (they wait for its end)";
pub(crate) const HEADERS: &str = "headers";
pub(crate) const TOOL_RUNS: &str = "tool runs";
pub(crate) const THINK_TIMES: &str = "think times";
pub(crate) const FIRST_WAIT: &str = "waits before the first request of a session";
pub(crate) const EMPTY_ANSWERS: &str = "answers without tokens (written with one)";
pub(crate) const OUTPUT: &str = "lengths of answers (the recorded text determines them)";
pub(crate) const LAST_ANSWER: &str =
    "last requests without a recorded answer (left out when read, unless `keep_unanswered` is set)";
pub(crate) const FRESH: &str =
    "requests that do not send their history (`history: fresh` of the flavor applies to all)";
pub(crate) const RECORDED_LENGTH: &str = "recorded lengths of whole prompts (the sent length is written)";
pub(crate) const LIVE: &str =
    "requests that send live answers (`history: live` of the flavor applies to all)";
pub(crate) const RECORDED: &str =
    "requests that send recorded answers (`history: recorded` of the flavor applies to all)";
