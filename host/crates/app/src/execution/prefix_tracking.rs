//! Tracking of prompts that may share prefixes, so that each record contains the number of tokens
//! that an ideal prefix cache would have hit, and those that servers had computed before.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use veeksha_events::Event;
use veeksha_model::{RequestId, Session};
use veeksha_pipeline::{EventEntry, PromptSource};
use veeksha_prefix::{PrefixLedger, PrefixPiece};
use veeksha_prompt::Tokenizer;

use crate::execution::cache_accounting::{CacheAccounts, pieces_of_warmup};
use crate::execution::client_cache::ClientCache;

/// Maximum number of cached token counts of verbatim texts; a conversation repeats its texts with
/// each turn.
const COUNTS: usize = 1 << 16;

/// The properties of a workload that make parts of the tracking unnecessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrackedWorkload {
    /// No prompt begins like the prompt of another session.
    pub(crate) distinct_prompts: bool,
    /// The requests of a session are known when it begins.
    pub(crate) is_planned: bool,
}

/// Previous prompts, and the requests in flight.
pub(crate) struct Prefixes {
    /// The prompts of all sessions by the positions of their clients, which have separate servers;
    /// `None` if they are distinct.
    ledgers: Option<Vec<PrefixLedger>>,
    accounts: CacheAccounts,
    is_planned: bool,
    in_flight: HashMap<RequestId, TrackedPrompt>,
    /// Finished requests whose dispatch event has not arrived yet: the dispatcher reports after it
    /// has sent, so a quick answer may overtake its report.
    early: HashMap<RequestId, EventEntry>,
    counts: TextTokenCounts,
}

/// The prompt of a request in flight.
struct TrackedPrompt {
    /// The position of its client.
    client: usize,
    text: TrackedText,
}

enum TrackedText {
    /// Compared with all earlier ones.
    Compared {
        pieces: Box<[PrefixPiece]>,
        /// Its ideal cache hits.
        known: u32,
    },
    /// Distinct from those of all other sessions: its pieces are computed only if its session has
    /// other requests.
    Distinct(Option<PromptSource>),
}

impl Prefixes {
    /// Creates a tracker that knows only the prompts of the warm-up.
    pub(crate) fn new(
        tokenizer: Tokenizer,
        warmup: &[Session],
        workload: TrackedWorkload,
        caches: Vec<ClientCache>,
    ) -> Self {
        let counts = TextTokenCounts::new(tokenizer);
        let mut ledgers = vec![PrefixLedger::new(); caches.len()];
        let mut accounts = CacheAccounts::new(caches);
        for (client, pieces) in pieces_of_warmup(warmup, &|text| counts.count(text)) {
            let client = accounts.position(client);
            if let Some(ledger) = ledgers.get_mut(client) {
                ledger.learn(&pieces);
            }
            accounts.warm_up(client, &pieces);
        }
        Prefixes {
            ledgers: (!workload.distinct_prompts).then_some(ledgers),
            accounts,
            is_planned: workload.is_planned,
            in_flight: HashMap::new(),
            early: HashMap::new(),
            counts,
        }
    }

    /// Processes an entry and returns those that can be passed on now, in order: prompts are added
    /// in the order of their dispatch, and records are completed with the tokens that were known.
    pub(crate) fn take(&mut self, mut entry: EventEntry) -> Vec<EventEntry> {
        match &entry.event {
            Event::Dispatched { request, .. } => {
                let request = *request;
                let prompt = self.on_prompt(&mut entry);
                self.in_flight.insert(request, prompt);
                let mut now = vec![entry];
                if let Some(early) = self.early.remove(&request) {
                    now.extend(self.take(early));
                }
                now
            }
            Event::Finished(record) => match self.in_flight.remove(&record.id) {
                Some(prompt) => {
                    self.complete(&mut entry, prompt);
                    self.observe(&entry);
                    vec![entry]
                }
                None => {
                    self.early.insert(record.id, entry);
                    Vec::new()
                }
            },
            _ => {
                self.observe(&entry);
                vec![entry]
            }
        }
    }

    fn observe(&mut self, entry: &EventEntry) {
        self.accounts.on(&entry.event);
    }

    fn on_prompt(&mut self, entry: &mut EventEntry) -> TrackedPrompt {
        let client = self.accounts.position(entry.client());
        let ledger = self.ledgers.as_mut().and_then(|ledgers| ledgers.get_mut(client));
        let Some(ledger) = ledger else {
            let text = TrackedText::Distinct(entry.take_prompt());
            return TrackedPrompt { client, text };
        };
        let pieces = entry.pieces(&|text| self.counts.count(text)).unwrap_or_default();
        let known = u32::try_from(ledger.see(&pieces)).unwrap_or(u32::MAX);
        let pieces = if self.accounts.is_open(client) {
            pieces.into_boxed_slice()
        } else {
            Box::default()
        };
        let text = TrackedText::Compared { pieces, known };
        TrackedPrompt { client, text }
    }

    /// Adds to a record the tokens of its prompt that were known.
    fn complete(&mut self, entry: &mut EventEntry, prompt: TrackedPrompt) {
        let TrackedPrompt { client, text } = prompt;
        let answer = entry.take_answer();
        let Event::Finished(record) = &mut entry.event else {
            return;
        };
        let count = |text: &str| self.counts.count(text);
        self.accounts.on_usage(client, record.usage.as_mut());
        // The prompt and the answer of the only request of a session are never continued.
        let has_others = !self.is_planned || record.session_requests > 1;
        let (known, pieces) = match text {
            TrackedText::Compared { pieces, known } => (Some(known), Some(pieces)),
            TrackedText::Distinct(source) => {
                let source = source.filter(|_| has_others && self.accounts.is_open(client));
                (
                    None,
                    source.map(|source| source.pieces(&count).into_boxed_slice()),
                )
            }
        };
        self.accounts.continue_answer(record, &count);
        record.ideal_cached_tokens = known;
        record.cache = self
            .accounts
            .knowledge(client, record, pieces.as_deref().unwrap_or_default());
        if let Some(pieces) = pieces {
            let answer = answer.filter(|_| has_others);
            self.accounts.learn(client, record, &pieces, answer);
        }
    }
}

/// The tokens of verbatim texts.
struct TextTokenCounts {
    tokenizer: Tokenizer,
    known: RefCell<HashMap<u64, u32>>,
}

impl TextTokenCounts {
    fn new(tokenizer: Tokenizer) -> Self {
        TextTokenCounts {
            tokenizer,
            known: RefCell::default(),
        }
    }

    fn count(&self, text: &str) -> u32 {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let key = hasher.finish();
        if let Some(known) = self.known.borrow().get(&key) {
            return *known;
        }
        let tokens = self.tokenizer.count(text);
        let mut known = self.known.borrow_mut();
        if known.len() >= COUNTS {
            known.clear();
        }
        known.insert(key, tokens);
        tokens
    }
}
