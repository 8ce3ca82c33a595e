//! What does not survive a conversion.

use std::collections::BTreeMap;

use serde::Serialize;

/// Something that the format has no place for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// What, and what becomes of it.
    pub what: &'static str,
    /// How many requests (of arrivals and labels: sessions too) lost it.
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

pub(crate) const WORDS: &str = "words of prompts (their length is kept)";
pub(crate) const MESSAGES: &str = "several messages or other roles than the user's (their length is kept)";
pub(crate) const SHARING: &str = "prompts that begin like an earlier one (their text becomes their own)";
pub(crate) const FINE_SHARING: &str =
    "common beginnings that end within a block (they end with the block before)";
pub(crate) const MEDIA: &str = "images, audio and video";
pub(crate) const BODY: &str = "fields for the body of a request";
pub(crate) const LABELS: &str = "labels";
pub(crate) const LATENCY: &str = "recorded latencies";
pub(crate) const ANSWERS: &str = "recorded answers that later requests send (the real ones take their place)";
pub(crate) const ANSWER_WORDS: &str = "words of recorded answers";
pub(crate) const INSTANTS: &str = "recorded instants";
pub(crate) const EDGES: &str = "requests that wait for others (they become sessions of their own)";
pub(crate) const THINK_TIMES: &str = "think times";
pub(crate) const FIRST_WAIT: &str = "waits before the first request of a session";
pub(crate) const EMPTY_ANSWERS: &str = "answers without tokens (they are written with one)";
pub(crate) const OUTPUT: &str = "lengths of answers (the recorded words give them)";
pub(crate) const LAST_ANSWER: &str =
    "last requests without a recorded answer (left out when read, unless `keep_unanswered` is set)";
pub(crate) const FRESH: &str = "requests that send nothing of the conversation before them (`history: fresh` of the flavor says so for all)";
pub(crate) const RECORDED_LENGTH: &str = "recorded lengths of whole prompts (what is sent is written)";
pub(crate) const LIVE: &str =
    "requests that send real answers (`history: live` of the flavor says so for all)";
pub(crate) const RECORDED: &str =
    "requests that send the recorded answers before them (`history: recorded` of the flavor says so for all)";
