//! Accounting of cached tokens: the part of each prompt that servers had computed before.

use veeksha_events::Event;
use veeksha_model::{CacheKnowledge, RequestId, RequestRecord, Session, Usage};
use veeksha_pipeline::AnswerSource;
use veeksha_prefix::{ComputedPrefixes, PrefixPiece, PromptPath, PromptQuery};
use veeksha_scenario::Client;
use veeksha_simulator::Profile;

use crate::execution::kept_answers::{KeptAnswer, KeptAnswers};

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
    answers: KeptAnswers,
    /// Answers with a usage, while none had a number of cached tokens.
    silent: Option<u32>,
}

impl CacheAccount {
    /// Creates an account in which nothing was computed.
    pub(crate) fn new(rules: CacheRules) -> Self {
        CacheAccount {
            rules,
            computed: ComputedPrefixes::new(),
            answers: KeptAnswers::default(),
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
    /// came. Its answer is added when another request continues it.
    pub(crate) fn learn(
        &mut self,
        record: &RequestRecord,
        pieces: &[PrefixPiece],
        answer: Option<AnswerSource>,
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
        if let Some(source) = answer.filter(|_| self.rules.keeps_answers) {
            let answer = KeptAnswer {
                source,
                end,
                server: record.server,
                at: record.completed_at,
            };
            self.answers.add(record.id, answer);
        }
    }

    /// Adds the answer that a request continues, if it is not known yet. Most answers are not
    /// continued, and counting the tokens of each would take longer than everything else here.
    pub(crate) fn continue_answer(&mut self, record: &RequestRecord, count: &dyn Fn(&str) -> u32) {
        let parent = record.history_parent.map(|node| RequestId { node, ..record.id });
        let Some(answer) = parent.and_then(|parent| self.answers.take(parent)) else {
            return;
        };
        let mut pieces = answer.source.pieces(count);
        // The last token of an answer was never an input.
        if let Some(last) = pieces.last_mut() {
            last.tokens = last.tokens.saturating_sub(1);
        }
        self.computed.learn(answer.server, answer.end, &pieces, answer.at);
    }

    /// Processes an event: the answers of a session are dropped when all of it has ended.
    pub(crate) fn on(&mut self, event: &Event) {
        if self.rules.keeps_answers {
            self.answers.on(event);
        }
    }
}

/// Returns the client and the pieces of each request of the warm-up.
pub(crate) fn pieces_of_warmup<'a>(
    warmup: &'a [Session],
    count: &'a dyn Fn(&str) -> u32,
) -> impl Iterator<Item = (Option<String>, Vec<PrefixPiece>)> + 'a {
    let requests = warmup.iter().flat_map(|session| &session.requests);
    requests.map(move |request| {
        let tools = request.tools.as_deref();
        let mut pieces = tools.map_or(Vec::new(), |tools| veeksha_prefix::tool_pieces(tools, count));
        pieces.extend(veeksha_prefix::pieces_of(&request.messages, count));
        (request.client.clone(), pieces)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use veeksha_model::{Chunk, ChunkKind, Nanos, NodeId, RequestId, Response, Role, SessionId, Status};
    use veeksha_simulator::text::blocks_of_pieces;
    use veeksha_simulator::{Engine, EngineEvent, EngineRequest};

    use super::*;

    const BLOCK: u32 = 16;

    /// Two replicas with little memory, the same with enough for everything, and one server with
    /// enough that gets the requests of both. What the second pair reuses was computed by the same
    /// server, what the last one reuses was computed by any.
    struct Replicas {
        small: Vec<Engine>,
        ample: Vec<Engine>,
        shared: Engine,
        account: CacheAccount,
        number: u64,
        now: Nanos,
    }

    impl Replicas {
        fn new(kv_capacity_tokens: u64) -> Self {
            let profile = |kv_capacity_tokens| Profile {
                block_size: BLOCK,
                kv_capacity_tokens,
                max_context: 256,
                noise_cv: 0.0,
                ..Profile::default()
            };
            let small = profile(kv_capacity_tokens);
            let engine = |profile: &Profile| Engine::new(profile.clone(), 1);
            let ample = profile(1 << 30);
            Replicas {
                account: CacheAccount::new(CacheRules {
                    is_single: false,
                    ..CacheRules::of_simulator(&small)
                }),
                small: vec![engine(&small); 2],
                ample: vec![engine(&ample); 2],
                shared: engine(&ample),
                number: 0,
                now: 0,
            }
        }

        /// Sends a prompt to a server after the end of the one before. Returns the tokens by class,
        /// and those that the engines state.
        fn send(&mut self, server: u16, pieces: &[PrefixPiece]) -> ([u64; 5], [u64; 3]) {
            self.number += 1;
            self.now += 1_000_000_000;
            let request = EngineRequest {
                id: self.number,
                prompt_tokens: pieces.iter().map(|piece| piece.tokens).sum(),
                blocks: blocks_of_pieces(pieces.iter().map(|piece| (piece.identity, piece.tokens)), BLOCK),
                max_tokens: Some(4),
                exact: true,
            };
            let place = usize::from(server);
            let (cached, first, last) = run(&mut self.small[place], self.now, &request);
            let (same, ..) = run(&mut self.ample[place], self.now, &request);
            let (any, ..) = run(&mut self.shared, self.now, &request);
            let mut record = RequestRecord {
                server,
                dispatched_at: self.now,
                completed_at: last,
                chunks: vec![chunk(first), chunk(last)],
                status: Status::Ok {
                    finish_reason: "length".into(),
                },
                usage: Some(Usage {
                    prompt: request.prompt_tokens,
                    completion: 4,
                    cached: Some(cached),
                    reasoning: None,
                }),
                ..RequestRecord::answered(RequestId {
                    session: SessionId(self.number),
                    node: NodeId(0),
                })
            };
            assert!(self.account.on_usage(record.usage.as_mut()));
            record.cache = self.account.knowledge(&record, pieces);
            self.account.learn(&record, pieces, None);
            self.now = last;
            let tokens = veeksha_metrics::Observation::of(&record).cache_tokens();
            let tokens = tokens.expect("consistent numbers");
            assert_eq!(tokens.total(), u64::from(request.prompt_tokens));
            let classes = veeksha_metrics::CacheClass::ALL.map(|class| tokens.class(class));
            let evicted = same - cached;
            (classes, [cached, evicted, any - same].map(u64::from))
        }
    }

    /// Returns the cached tokens of a request, and the instants of its first and last token.
    fn run(engine: &mut Engine, now: Nanos, request: &EngineRequest) -> (u32, Nanos, Nanos) {
        let mut events = Vec::new();
        engine.submit(now, request.clone(), &mut events);
        while let Some(next) = engine.next_wake() {
            engine.advance(next, &mut events);
        }
        let first = events.iter().find_map(|event| match event {
            EngineEvent::Token { at, .. } => Some(*at),
            _ => None,
        });
        let end = events.iter().find_map(|event| match event {
            EngineEvent::Finished {
                at, cached_tokens, ..
            } => Some((*at, *cached_tokens)),
            _ => None,
        });
        let (last, cached) = end.expect("an answer");
        (cached, first.expect("a token"), last)
    }

    fn chunk(at: Nanos) -> Chunk {
        Chunk {
            at,
            lag: 0,
            bytes: 1,
            kind: ChunkKind::Content,
            merged: false,
        }
    }

    fn piece(identity: u64, tokens: u32) -> PrefixPiece {
        PrefixPiece { identity, tokens }
    }

    /// Eight blocks of memory on each server. A prompt of 64 tokens and its answer of 4 take five
    /// blocks, of which four stay cached.
    #[test]
    fn evictions_worked_out_by_hand() {
        let mut replicas = Replicas::new(128);
        let (system, one, two) = (piece(1, 32), piece(2, 32), piece(3, 32));
        // Both are new on server 0: the second reuses the system prompt, so six blocks are cached.
        assert_eq!(replicas.send(0, &[system, one]).0, [0, 0, 0, 0, 64]);
        assert_eq!(replicas.send(0, &[system, two]).0, [32, 0, 0, 0, 32]);
        // Of another prompt of five blocks, three replace the least recently used: the two of
        // `one`, which was released first, and the last of `two`.
        assert_eq!(replicas.send(0, &[piece(4, 64)]).0, [0, 0, 0, 0, 64]);
        // `two` lost its last block: the one before it and the system prompt are still there. The
        // last token is computed in any case, so a following piece makes the block count.
        let next = [system, two, piece(5, 16)];
        assert_eq!(replicas.send(0, &next).0, [48, 16, 0, 0, 16]);
        // Server 1 computed none of it; server 0 had four blocks of the prompt.
        let elsewhere = [system, two, piece(6, 16)];
        assert_eq!(replicas.send(1, &elsewhere).0, [0, 0, 64, 0, 16]);
        // Another beginning: the text behind it is known.
        assert_eq!(
            replicas.send(1, &[piece(7, 16), two, piece(8, 10)]).0,
            [0, 0, 0, 32, 26]
        );
    }

    /// A server that keeps answers, and one that does not.
    fn text_account(keeps_answers: bool) -> CacheAccount {
        CacheAccount::new(CacheRules {
            block: 1,
            keeps_answers,
            omits_zero: true,
            is_single: true,
        })
    }

    fn answered(node: u32, at: Nanos, prompt: u32, history_parent: Option<NodeId>) -> RequestRecord {
        RequestRecord {
            dispatched_at: at,
            completed_at: at + 1_000_000_000,
            history_parent,
            usage: Some(Usage {
                prompt,
                completion: 50,
                cached: Some(0),
                reasoning: Some(20),
            }),
            ..RequestRecord::answered(RequestId {
                session: SessionId(0),
                node: NodeId(node),
            })
        }
    }

    fn words(text: &str) -> u32 {
        text.split_whitespace().count() as u32
    }

    /// A prompt of 100 tokens with an answer of 20 tokens of reasoning and 30 of text; the next
    /// prompt adds 10.
    #[test]
    fn dropped_reasoning_moves_the_answer() {
        let (reasoning, text) = ("so ".repeat(20), "yes ".repeat(30));
        let (first, role) = (piece(1, 100), veeksha_prefix::role_piece(Role::Assistant));
        let thought = veeksha_prefix::text_piece(&reasoning, 20);
        let said = veeksha_prefix::text_piece(&text, 30);
        let next = piece(2, 10);
        let known = |keeps_answers: bool, pieces: &[PrefixPiece]| {
            let mut account = text_account(keeps_answers);
            let response = Response {
                reasoning: reasoning.clone(),
                text: text.clone(),
                ..Response::default()
            };
            let answer = AnswerSource::Received(Arc::new(response));
            account.learn(&answered(0, 0, 100, None), &[first], Some(answer));
            let prompt = pieces.iter().map(|piece| piece.tokens).sum();
            let second = answered(1, 5_000_000_000, prompt, Some(NodeId(0)));
            account.continue_answer(&second, &words);
            let known = account.knowledge(&second, pieces).expect("a usage");
            (known.same_server, known.moved)
        };
        let (kept, dropped) = ([first, role, thought, said, next], [first, role, said, next]);
        // Without its last token, which was never an input.
        assert_eq!(known(true, &kept), (100 + 20 + 29, 0));
        assert_eq!(known(true, &dropped), (100, 29));
        assert_eq!(known(false, &kept), (100, 0));
        assert_eq!(known(false, &dropped), (100, 0));
    }

    #[test]
    fn silent_servers_are_given_up() {
        let mut usage = Usage {
            prompt: 1,
            completion: 1,
            cached: None,
            reasoning: None,
        };
        let silent = |account: &mut CacheAccount| {
            (0..=SILENT_ANSWERS).all(|_| account.on_usage(Some(&mut usage.clone())))
        };
        let mut rules = text_account(true).rules;
        rules.omits_zero = false;
        assert!(!silent(&mut CacheAccount::new(rules)));
        // One count is enough: a server may report only some.
        let mut account = CacheAccount::new(rules);
        usage.cached = Some(0);
        assert!(account.on_usage(Some(&mut usage.clone())));
        usage.cached = None;
        assert!((0..=SILENT_ANSWERS).all(|_| account.on_usage(Some(&mut usage.clone()))));
        assert!(text_account(true).on_usage(Some(&mut usage)));
        assert_eq!(usage.cached, Some(0), "the server leaves out a 0");
    }

    fn requests() -> impl Strategy<Value = Vec<(u16, Vec<PrefixPiece>)>> {
        let prompt = (0u64..3, prop::collection::vec(0u64..4, 0..4), 1u32..20);
        let prompt = prompt.prop_map(|(system, turns, last)| {
            // Lengths that are not whole blocks.
            let mut pieces = vec![piece(system, 24 + 16 * system as u32)];
            pieces.extend(
                turns
                    .into_iter()
                    .map(|turn| piece(10 + turn, 20 + 5 * turn as u32)),
            );
            pieces.push(piece(20, last));
            pieces
        });
        prop::collection::vec((0u16..2, prompt), 1..40)
    }

    proptest! {
        #[test]
        fn classes_are_those_of_the_engines(requests in requests(), blocks in 17u64..40) {
            let mut replicas = Replicas::new(blocks * u64::from(BLOCK));
            for (server, pieces) in requests {
                let (classes, truth) = replicas.send(server, &pieces);
                prop_assert_eq!(&classes[..3], &truth);
            }
        }
    }
}
