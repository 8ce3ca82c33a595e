//! Tracking of prompts that may share prefixes, so that each record contains the number of tokens
//! that an ideal prefix cache would have hit, and those that servers had computed before.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use veeksha_events::Event;
use veeksha_model::{CacheKnowledge, RequestId, RequestRecord, Session};
use veeksha_pipeline::{AnswerSource, EventEntry, PromptSource};
use veeksha_prefix::{PrefixLedger, PrefixPiece};
use veeksha_prompt::Tokenizer;

use crate::execution::cache_accounting::{CacheAccount, CacheRules, pieces_of_warmup};

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

/// The prompts of each client.
type Ledgers = HashMap<Option<String>, PrefixLedger>;

/// Previous prompts, and the requests in flight.
pub(crate) struct Prefixes {
    tokenizer: Tokenizer,
    /// The prompts of all sessions by client, as clients have separate servers; `None` if they are
    /// distinct. Requests that name no client are those of `None`.
    ledgers: Option<Ledgers>,
    /// `None` if the servers report no cached tokens.
    account: Option<CacheAccount>,
    is_planned: bool,
    in_flight: HashMap<RequestId, TrackedPrompt>,
    /// Finished requests whose dispatch event has not arrived yet: the dispatcher reports after it
    /// has sent, so a quick answer may overtake its report.
    early: HashMap<RequestId, EventEntry>,
    counts: std::cell::RefCell<HashMap<u64, u32>>,
}

/// The prompt of a request in flight.
enum TrackedPrompt {
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
        rules: CacheRules,
    ) -> Self {
        let mut prefixes = Prefixes {
            tokenizer,
            ledgers: None,
            account: None,
            is_planned: workload.is_planned,
            in_flight: HashMap::new(),
            early: HashMap::new(),
            counts: std::cell::RefCell::default(),
        };
        let mut ledgers = Ledgers::new();
        let mut account = CacheAccount::new(rules);
        for (client, pieces) in pieces_of_warmup(warmup, &|text| prefixes.count(text)) {
            ledgers.entry(client).or_default().learn(&pieces);
            account.warm_up(&pieces);
        }
        prefixes.ledgers = (!workload.distinct_prompts).then_some(ledgers);
        prefixes.account = Some(account);
        prefixes
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
        if let Some(account) = &mut self.account {
            account.on(&entry.event);
        }
    }

    fn on_prompt(&mut self, entry: &mut EventEntry) -> TrackedPrompt {
        if self.ledgers.is_none() {
            return TrackedPrompt::Distinct(entry.take_prompt());
        }
        let pieces = entry.pieces(&|text| self.count(text)).unwrap_or_default();
        let client = entry.client().map(str::to_owned);
        let see = |ledgers: &mut Ledgers| ledgers.entry(client).or_default().see(&pieces);
        let known = self.ledgers.as_mut().map_or(0, see);
        TrackedPrompt::Compared {
            known: u32::try_from(known).unwrap_or(u32::MAX),
            pieces: if self.account.is_some() {
                pieces.into_boxed_slice()
            } else {
                Box::default()
            },
        }
    }

    /// Adds to a record the tokens of its prompt that were known.
    fn complete(&mut self, entry: &mut EventEntry, prompt: TrackedPrompt) {
        let mut account = self.account.take();
        let answer = entry.take_answer();
        if let Event::Finished(record) = &mut entry.event
            && let Some(open) = &mut account
            && !open.on_usage(record.usage.as_mut())
        {
            account = None;
        }
        let Event::Finished(record) = &entry.event else {
            return;
        };
        let (ideal, cache) = match prompt {
            TrackedPrompt::Compared { pieces, known } => {
                let cache = account
                    .as_mut()
                    .and_then(|account| self.account_for(account, record, &pieces, answer));
                (Some(known), cache)
            }
            TrackedPrompt::Distinct(source) => {
                let cache = account.as_mut().and_then(|account| {
                    let pieces = source
                        .filter(|_| !self.is_planned || record.session_requests > 1)
                        .map(|source| source.pieces(&|text| self.count(text)));
                    match pieces {
                        Some(pieces) => self.account_for(account, record, &pieces, answer),
                        None => account.knowledge(record, &[]),
                    }
                });
                (None, cache)
            }
        };
        self.account = account;
        if let Event::Finished(record) = &mut entry.event {
            record.ideal_cached_tokens = ideal;
            record.cache = cache;
        }
    }

    fn account_for(
        &self,
        account: &mut CacheAccount,
        record: &RequestRecord,
        pieces: &[PrefixPiece],
        answer: Option<AnswerSource>,
    ) -> Option<CacheKnowledge> {
        account.continue_answer(record, &|text| self.count(text));
        let knowledge = account.knowledge(record, pieces);
        // The answer to the only request of a session is never continued.
        let has_others = !self.is_planned || record.session_requests > 1;
        account.learn(record, pieces, answer.filter(|_| has_others));
        knowledge
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
