//! Tracking of prompts that may share prefixes, so that each record contains the number of tokens
//! that an ideal prefix cache would have hit.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use veeksha_events::Event;
use veeksha_model::{RequestId, Session};
use veeksha_pipeline::EventEntry;
use veeksha_prefix::PrefixLedger;
use veeksha_prompt::Tokenizer;

/// Maximum number of cached token counts of verbatim texts; a conversation repeats its texts with
/// each turn.
const COUNTS: usize = 1 << 16;

/// Previous prompts, and the ideal cache hits of the requests in flight.
pub(crate) struct Prefixes {
    tokenizer: Tokenizer,
    ledger: PrefixLedger,
    ideal: HashMap<RequestId, u32>,
    /// Finished requests whose dispatch event has not arrived yet: the dispatcher reports after it
    /// has sent, so a quick answer may overtake its report.
    early: HashMap<RequestId, EventEntry>,
    counts: std::cell::RefCell<HashMap<u64, u32>>,
}

impl Prefixes {
    /// Creates a cache that contains only the prompts of the warm-up.
    pub(crate) fn new(tokenizer: Tokenizer, warmup: &[Session]) -> Self {
        let mut prefixes = Prefixes {
            tokenizer,
            ledger: PrefixLedger::new(),
            ideal: HashMap::new(),
            early: HashMap::new(),
            counts: std::cell::RefCell::default(),
        };
        for request in warmup.iter().flat_map(|session| &session.requests) {
            let count = |text: &str| prefixes.count(text);
            let tools = request.tools.as_deref();
            let mut pieces = tools.map_or(Vec::new(), |tools| veeksha_prefix::tool_pieces(tools, &count));
            pieces.extend(veeksha_prefix::pieces_of(&request.messages, &count));
            prefixes.ledger.learn(&pieces);
        }
        prefixes
    }

    /// Processes an entry and returns those that can be passed on now, in order: prompts are added
    /// in the order of their dispatch, and records are completed with their ideal cache hits.
    pub(crate) fn take(&mut self, mut entry: EventEntry) -> Vec<EventEntry> {
        match &mut entry.event {
            Event::Dispatched { request, .. } => {
                let request = *request;
                let pieces = entry.pieces(&|text| self.count(text));
                let known = pieces.map_or(0, |pieces| self.ledger.see(&pieces));
                self.ideal
                    .insert(request, u32::try_from(known).unwrap_or(u32::MAX));
                let mut now = vec![entry];
                if let Some(early) = self.early.remove(&request) {
                    now.extend(self.take(early));
                }
                now
            }
            Event::Finished(record) => match self.ideal.remove(&record.id) {
                Some(known) => {
                    record.ideal_cached_tokens = Some(known);
                    vec![entry]
                }
                None => {
                    self.early.insert(record.id, entry);
                    Vec::new()
                }
            },
            _ => vec![entry],
        }
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
