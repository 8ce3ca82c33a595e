//! Keeps account of every prompt of a replayed run, so that each record says what an ideal prefix cache would have known of it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use veeksha_events::{Event, RequestRecord};
use veeksha_model::RequestId;
use veeksha_pipeline::Entry;
use veeksha_prefix::PrefixLedger;
use veeksha_prompt::Tokenizer;

/// Counts of verbatim texts that are kept; a conversation repeats its texts with each turn.
const COUNTS: usize = 1 << 16;

/// The prompts so far, and what was known of those that are on their way.
pub(crate) struct Prefixes {
    tokenizer: Tokenizer,
    ledger: PrefixLedger,
    ideal: HashMap<RequestId, u32>,
    counts: std::cell::RefCell<HashMap<u64, u32>>,
}

impl Prefixes {
    pub(crate) fn new(tokenizer: Tokenizer) -> Self {
        Prefixes {
            tokenizer,
            ledger: PrefixLedger::new(),
            ideal: HashMap::new(),
            counts: std::cell::RefCell::default(),
        }
    }

    /// Takes in a prompt, in the order of dispatch.
    pub(crate) fn see(&mut self, entry: &Entry) {
        let Event::Dispatched { request, .. } = &entry.event else {
            return;
        };
        if let Some(pieces) = entry.pieces(&|text| self.count(text)) {
            let known = self.ledger.see(&pieces);
            self.ideal
                .insert(*request, u32::try_from(known).unwrap_or(u32::MAX));
        }
    }

    /// Completes a record.
    pub(crate) fn complete(&mut self, record: &mut RequestRecord) {
        record.ideal_cached_tokens = self.ideal.remove(&record.id);
    }

    fn count(&self, text: &str) -> u32 {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let key = hasher.finish();
        if let Some(known) = self.counts.borrow().get(&key) {
            return *known;
        }
        let tokens = self.tokenizer.count(text);
        let mut counts = self.counts.borrow_mut();
        if counts.len() >= COUNTS {
            counts.clear();
        }
        counts.insert(key, tokens);
        tokens
    }
}
