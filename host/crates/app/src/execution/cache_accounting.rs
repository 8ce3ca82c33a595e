//! Accounting of cached tokens: the part of each prompt that servers had computed before.

use veeksha_model::{CacheKnowledge, RequestRecord, Session, Usage};
use veeksha_prefix::{ComputedPrefixes, PrefixPiece, PromptPath, PromptQuery};
use veeksha_scenario::Client;
use veeksha_simulator::Profile;

/// Number of answers with a usage after which a server that has not reported any cached tokens is
/// taken for one that never does: nothing is remembered for it any more.
const SILENT_ANSWERS: u32 = 1000;

/// The properties of the servers' caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheRules {
    /// Tokens that a cache keeps together.
    block: u32,
    keeps_answers: bool,
    omits_zero: bool,
    /// True if there is one server, which also had the warm-up.
    is_single: bool,
}

impl CacheRules {
    /// Returns the properties that a scenario states.
    pub(crate) fn of_client(client: &Client) -> Self {
        let keys = client.prefix_cache;
        CacheRules {
            block: keys.block_tokens.unwrap_or(1),
            keeps_answers: keys.keeps_answers,
            omits_zero: keys.omits_zero,
            is_single: client.targets.len() <= 1,
        }
    }

    /// Returns the properties of the built-in simulator, which keeps the blocks of prompts only.
    pub(crate) fn of_simulator(profile: &Profile) -> Self {
        CacheRules {
            block: profile.block_size,
            keeps_answers: false,
            omits_zero: false,
            is_single: true,
        }
    }
}

/// The text that the servers of a run have computed.
pub(crate) struct CacheAccount {
    rules: CacheRules,
    computed: ComputedPrefixes,
    /// Answers with a usage, while none had a number of cached tokens.
    silent: Option<u32>,
}

impl CacheAccount {
    /// Creates an account in which nothing was computed.
    pub(crate) fn new(rules: CacheRules) -> Self {
        CacheAccount {
            rules,
            computed: ComputedPrefixes::new(),
            silent: Some(0),
        }
    }

    /// Adds a prompt of the warm-up. With several servers, the one that had it is not known.
    pub(crate) fn warm_up(&mut self, pieces: &[PrefixPiece]) {
        if self.rules.is_single {
            self.computed.learn(0, PromptPath::START, pieces, 0);
        }
    }

    /// Processes the server's counts of an answer. Returns false if the servers report no cached
    /// tokens: the account is of no use then.
    pub(crate) fn on_usage(&mut self, usage: Option<&mut Usage>) -> bool {
        let Some(usage) = usage else { return true };
        if self.rules.omits_zero {
            usage.cached.get_or_insert(0);
        }
        if usage.cached.is_some() {
            self.silent = None;
        }
        let Some(silent) = &mut self.silent else {
            return true;
        };
        *silent += 1;
        *silent <= SILENT_ANSWERS
    }

    /// Returns the tokens of a prompt that servers had computed when it was dispatched; `None` if
    /// the server did not report its tokens, or more cached ones than there were.
    pub(crate) fn knowledge(&self, record: &RequestRecord, pieces: &[PrefixPiece]) -> Option<CacheKnowledge> {
        let usage = record.usage?;
        let cached = usage.cached?;
        (usage.prompt > 0 && cached <= usage.prompt).then(|| {
            self.computed.knowledge(&PromptQuery {
                pieces,
                server: record.server,
                at: record.dispatched_at,
                tokens: usage.prompt,
                cached,
                block: self.rules.block,
            })
        })
    }

    /// Adds the prompt of a finished request, which its server had computed when the first output
    /// came, and its answer.
    pub(crate) fn learn(
        &mut self,
        record: &RequestRecord,
        pieces: &[PrefixPiece],
        answer: impl FnOnce() -> Option<Vec<PrefixPiece>>,
    ) {
        let whole = record.is_ok().then_some(record.completed_at);
        let Some(first) = record.output_at().next().or(whole) else {
            return;
        };
        let end = self
            .computed
            .learn(record.server, PromptPath::START, pieces, first);
        let tokens: u64 = pieces.iter().map(|piece| u64::from(piece.tokens)).sum();
        if let Some(usage) = record.usage
            && u64::from(usage.prompt) != tokens
        {
            self.computed.count(end, usage.prompt);
        }
        if !self.rules.keeps_answers {
            return;
        }
        let mut answer = answer().unwrap_or_default();
        // The last token of an answer was never an input.
        if let Some(last) = answer.last_mut() {
            last.tokens = last.tokens.saturating_sub(1);
        }
        self.computed
            .learn(record.server, end, &answer, record.completed_at);
    }
}

/// Returns the requests of the warm-up with their pieces.
pub(crate) fn pieces_of_warmup<'a>(
    warmup: &'a [Session],
    count: &'a dyn Fn(&str) -> u32,
) -> impl Iterator<Item = Vec<PrefixPiece>> + 'a {
    let requests = warmup.iter().flat_map(|session| &session.requests);
    requests.map(move |request| {
        let tools = request.tools.as_deref();
        let mut pieces = tools.map_or(Vec::new(), |tools| veeksha_prefix::tool_pieces(tools, count));
        pieces.extend(veeksha_prefix::pieces_of(&request.messages, count));
        pieces
    })
}
