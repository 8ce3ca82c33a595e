//! Accounting of cached tokens: the part of each prompt that servers had computed before.

use veeksha_events::Event;
use veeksha_model::{CacheKnowledge, RequestId, RequestRecord, Session, Usage};
use veeksha_pipeline::AnswerSource;
use veeksha_prefix::{ComputedPrefixes, PrefixPiece, PromptPath, PromptQuery};

use crate::execution::client_cache::{CacheRules, ClientCache};
use crate::execution::kept_answers::{KeptAnswer, KeptAnswers};

/// Number of answers with a usage after which a server that has not reported any cached tokens is
/// taken for one that never does: nothing is remembered for it any more.
const SILENT_ANSWERS: u32 = 1000;

/// The text that the servers of each client have computed. The servers of one client have nothing
/// of those of another.
pub(crate) struct CacheAccounts {
    clients: Vec<ClientCache>,
    /// By the positions of the clients; `None` if a client's servers report no cached tokens.
    accounts: Vec<Option<CacheAccount>>,
    /// Of all clients: a conversation may change its client.
    answers: KeptAnswers,
}

impl CacheAccounts {
    /// Creates accounts in which nothing was computed.
    pub(crate) fn new(clients: Vec<ClientCache>) -> Self {
        let account = |client: &ClientCache| Some(CacheAccount::new(client.rules));
        CacheAccounts {
            accounts: clients.iter().map(account).collect(),
            clients,
            answers: KeptAnswers::default(),
        }
    }

    /// Returns the position of the client that a request names.
    pub(crate) fn position(&self, client: Option<&str>) -> usize {
        ClientCache::position(&self.clients, client)
    }

    /// Returns true if the prompts of a client are of use.
    pub(crate) fn is_open(&self, client: usize) -> bool {
        self.accounts.get(client).is_some_and(Option::is_some)
    }

    /// Adds a prompt of the warm-up. With several servers, the one that had it is not known.
    pub(crate) fn warm_up(&mut self, client: usize, pieces: &[PrefixPiece]) {
        let is_single = self.clients.get(client).is_some_and(|client| client.is_single);
        if let Some(Some(account)) = self.accounts.get_mut(client).filter(|_| is_single) {
            account.computed.learn(0, PromptPath::START, pieces, 0);
        }
    }

    /// Processes the server's counts of an answer. The account of a client whose servers report no
    /// cached tokens is closed.
    pub(crate) fn on_usage(&mut self, client: usize, usage: Option<&mut Usage>) {
        if let Some(open) = self.accounts.get_mut(client)
            && let Some(account) = open
            && !account.on_usage(usage)
        {
            *open = None;
        }
    }

    /// Returns the tokens of a prompt that servers had computed when it was dispatched; `None` if
    /// the server did not report its tokens, or more cached ones than there were.
    pub(crate) fn knowledge(
        &self,
        client: usize,
        record: &RequestRecord,
        pieces: &[PrefixPiece],
    ) -> Option<CacheKnowledge> {
        let account = self.accounts.get(client)?.as_ref()?;
        account.knowledge(self.server(client, record), record, pieces)
    }

    /// Adds the prompt of a finished request, which its server had computed when the first output
    /// came. Its answer is added when another request continues it.
    pub(crate) fn learn(
        &mut self,
        client: usize,
        record: &RequestRecord,
        pieces: &[PrefixPiece],
        answer: Option<AnswerSource>,
    ) {
        let server = self.server(client, record);
        let Some(Some(account)) = self.accounts.get_mut(client) else {
            return;
        };
        let Some(end) = account.learn(server, record, pieces) else {
            return;
        };
        if let Some(source) = answer.filter(|_| account.rules.keeps_answers) {
            let answer = KeptAnswer {
                source,
                end,
                client,
                server,
                at: record.completed_at,
            };
            self.answers.add(record.id, answer);
        }
    }

    /// Adds the answer that a request continues, to the server that generated it, if it is not
    /// known yet. Most answers are not continued, and counting the tokens of each would take longer
    /// than everything else here.
    pub(crate) fn continue_answer(&mut self, record: &RequestRecord, count: &dyn Fn(&str) -> u32) {
        let parent = record.history_parent.map(|node| RequestId { node, ..record.id });
        let Some(answer) = parent.and_then(|parent| self.answers.take(parent)) else {
            return;
        };
        let Some(Some(account)) = self.accounts.get_mut(answer.client) else {
            return;
        };
        let mut pieces = answer.source.pieces(count);
        // The last token of an answer was never an input.
        if let Some(last) = pieces.last_mut() {
            last.tokens = last.tokens.saturating_sub(1);
        }
        account
            .computed
            .learn(answer.server, answer.end, &pieces, answer.at);
    }

    /// Processes an event: the answers of a session are dropped when all of it has ended.
    pub(crate) fn on(&mut self, event: &Event) {
        if self
            .accounts
            .iter()
            .flatten()
            .any(|account| account.rules.keeps_answers)
        {
            self.answers.on(event);
        }
    }

    /// Returns the index of a request's server among those of its client.
    fn server(&self, client: usize, record: &RequestRecord) -> u16 {
        let first = self.clients.get(client).map_or(0, |client| client.first_server);
        record.server.saturating_sub(first)
    }
}

/// The text that the servers of one client have computed.
struct CacheAccount {
    rules: CacheRules,
    /// By the index of the server among those of the client.
    computed: ComputedPrefixes,
    /// Answers with a usage, while none had a number of cached tokens.
    silent: Option<u32>,
}

impl CacheAccount {
    fn new(rules: CacheRules) -> Self {
        CacheAccount {
            rules,
            computed: ComputedPrefixes::new(),
            silent: Some(0),
        }
    }

    /// Returns false if the servers report no cached tokens: the account is of no use then.
    fn on_usage(&mut self, usage: Option<&mut Usage>) -> bool {
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

    fn knowledge(
        &self,
        server: u16,
        record: &RequestRecord,
        pieces: &[PrefixPiece],
    ) -> Option<CacheKnowledge> {
        let usage = record.usage?;
        let cached = usage.cached?;
        (usage.prompt > 0 && cached <= usage.prompt).then(|| {
            self.computed.knowledge(&PromptQuery {
                pieces,
                server,
                at: record.dispatched_at,
                tokens: usage.prompt,
                cached,
                block: self.rules.block,
            })
        })
    }

    /// Adds a prompt, and returns its end; `None` if the server may not have computed it.
    fn learn(&mut self, server: u16, record: &RequestRecord, pieces: &[PrefixPiece]) -> Option<PromptPath> {
        let whole = record.is_ok().then_some(record.completed_at);
        let first = record.output_at().next().or(whole)?;
        let end = self.computed.learn(server, PromptPath::START, pieces, first);
        let tokens: u64 = pieces.iter().map(|piece| u64::from(piece.tokens)).sum();
        if let Some(usage) = record.usage
            && u64::from(usage.prompt) != tokens
        {
            self.computed.count(end, usage.prompt);
        }
        Some(end)
    }
}

/// Returns the client and the pieces of each request of the warm-up.
pub(crate) fn pieces_of_warmup<'a>(
    warmup: &'a [Session],
    count: &'a dyn Fn(&str) -> u32,
) -> impl Iterator<Item = (Option<&'a str>, Vec<PrefixPiece>)> + 'a {
    let requests = warmup.iter().flat_map(|session| &session.requests);
    requests.map(move |request| {
        let tools = request.tools.as_deref();
        let mut pieces = tools.map_or(Vec::new(), |tools| veeksha_prefix::tool_pieces(tools, count));
        pieces.extend(veeksha_prefix::pieces_of(&request.messages, count));
        (request.client.as_deref(), pieces)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use veeksha_model::{Chunk, ChunkKind, Nanos, NodeId, RequestId, Response, Role, SessionId, Status};
    use veeksha_simulator::text::blocks_of_pieces;
    use veeksha_simulator::{Engine, EngineEvent, EngineRequest, Profile};

    use super::*;

    const BLOCK: u32 = 16;

    /// Two replicas with little memory, the same with enough for everything, and one server with
    /// enough that gets the requests of both. What the second pair reuses was computed by the same
    /// server, what the last one reuses was computed by any.
    struct Replicas {
        small: Vec<Engine>,
        ample: Vec<Engine>,
        shared: Engine,
        account: CacheAccounts,
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
                account: accounts(&[2], CacheRules::of_simulator(&small)),
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
            self.account.on_usage(0, record.usage.as_mut());
            record.cache = self.account.knowledge(0, &record, pieces);
            self.account.learn(0, &record, pieces, None);
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

    /// Accounts of clients with these numbers of servers.
    fn accounts(servers: &[usize], rules: CacheRules) -> CacheAccounts {
        let names = ["default", "a", "b"].into_iter().zip(servers);
        let clients = names.map(|(name, servers)| (name, *servers, rules));
        CacheAccounts::new(ClientCache::of_clients(clients))
    }

    /// The rules of a server that keeps answers, and of one that does not.
    fn text_rules(keeps_answers: bool) -> CacheRules {
        CacheRules {
            block: 1,
            keeps_answers,
            omits_zero: true,
        }
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
            let mut account = accounts(&[1], text_rules(keeps_answers));
            let response = Response {
                reasoning: reasoning.clone(),
                text: text.clone(),
                ..Response::default()
            };
            let answer = AnswerSource::Received(Arc::new(response));
            account.learn(0, &answered(0, 0, 100, None), &[first], Some(answer));
            let prompt = pieces.iter().map(|piece| piece.tokens).sum();
            let second = answered(1, 5_000_000_000, prompt, Some(NodeId(0)));
            account.continue_answer(&second, &words);
            let known = account.knowledge(0, &second, pieces).expect("a usage");
            (known.same_server, known.moved)
        };
        let (kept, dropped) = ([first, role, thought, said, next], [first, role, said, next]);
        // Without its last token, which was never an input.
        assert_eq!(known(true, &kept), (100 + 20 + 29, 0));
        assert_eq!(known(true, &dropped), (100, 29));
        assert_eq!(known(false, &kept), (100, 0));
        assert_eq!(known(false, &dropped), (100, 0));
    }

    /// A prompt of this client, sent at this second to the server with this index among those of
    /// all clients. Returns the tokens that the same and that any server had computed, and those
    /// computed behind another beginning.
    fn send(
        account: &mut CacheAccounts,
        (client, server, seconds): (usize, u16, u64),
        pieces: &[PrefixPiece],
    ) -> (u32, u32, u32) {
        let prompt = pieces.iter().map(|piece| piece.tokens).sum();
        let record = RequestRecord {
            server,
            ..answered(0, seconds * 1_000_000_000, prompt, None)
        };
        let known = account.knowledge(client, &record, pieces).expect("a usage");
        account.learn(client, &record, pieces, None);
        (known.same_server, known.any_server, known.moved)
    }

    /// The first client has server 0, the second one 1 and 2.
    #[test]
    fn servers_of_other_clients_have_computed_nothing() {
        let mut account = accounts(&[1, 2], text_rules(false));
        let prompt = [piece(1, 100), piece(2, 20)];
        assert_eq!(send(&mut account, (0, 0, 0), &prompt), (0, 0, 0));
        assert_eq!(send(&mut account, (1, 1, 10), &prompt), (0, 0, 0));
        // The last token is computed in any case.
        assert_eq!(send(&mut account, (1, 2, 20), &prompt), (0, 119, 0));
        assert_eq!(send(&mut account, (0, 0, 30), &prompt), (119, 119, 0));
        // Behind another beginning, too, only text of the same client is known.
        let moved = [piece(9, 5), piece(3, 50)];
        assert_eq!(send(&mut account, (0, 0, 40), &[piece(3, 50)]), (0, 0, 0));
        assert_eq!(send(&mut account, (1, 1, 50), &moved), (0, 0, 0));
        assert_eq!(send(&mut account, (0, 0, 60), &moved), (0, 0, 50));
    }

    #[test]
    fn each_client_has_its_own_rules() {
        let blocks = CacheRules {
            block: 16,
            ..text_rules(false)
        };
        let clients = [("default", 1, text_rules(false)), ("a", 1, blocks)];
        let mut account = CacheAccounts::new(ClientCache::of_clients(clients.into_iter()));
        let (first, longer) = ([piece(1, 100)], [piece(1, 100), piece(2, 7)]);
        for client in [0, 1] {
            send(&mut account, (usize::from(client), client, 0), &first);
        }
        assert_eq!(send(&mut account, (0, 0, 10), &longer), (100, 100, 0));
        // Six blocks of 16.
        assert_eq!(send(&mut account, (1, 1, 10), &longer), (96, 96, 0));
    }

    /// The first client has two servers, so the one that had its warm-up is not known.
    #[test]
    fn warm_up_prompts_are_those_of_their_client() {
        let mut account = accounts(&[2, 1, 1], text_rules(false));
        let prompt = [piece(1, 10), piece(2, 20)];
        account.warm_up(account.position(None), &prompt);
        account.warm_up(account.position(Some("a")), &prompt);
        assert_eq!(send(&mut account, (0, 0, 1), &prompt), (0, 0, 0));
        assert_eq!(send(&mut account, (1, 2, 1), &prompt), (29, 29, 0));
        assert_eq!(send(&mut account, (2, 3, 1), &prompt), (0, 0, 0));
    }

    /// An answer of the first client that the second one continues was computed by the first one
    /// alone: a later prompt of the first client finds it.
    #[test]
    fn answers_belong_to_the_client_that_received_them() {
        let mut account = accounts(&[1, 1], text_rules(true));
        let prompt = [piece(1, 100)];
        let response = Response {
            text: "yes ".repeat(30),
            ..Response::default()
        };
        let said = veeksha_prefix::text_piece(&response.text, 30);
        let role = veeksha_prefix::role_piece(Role::Assistant);
        let answer = AnswerSource::Received(Arc::new(response));
        account.learn(0, &answered(0, 0, 100, None), &prompt, Some(answer));
        let next = [prompt[0], role, said, piece(2, 10)];
        let judged = RequestRecord {
            server: 1,
            ..answered(1, 5_000_000_000, 140, Some(NodeId(0)))
        };
        account.continue_answer(&judged, &words);
        let known = account.knowledge(1, &judged, &next).expect("a usage");
        assert_eq!((known.same_server, known.any_server, known.moved), (0, 0, 0));
        // All but the last token of the answer, which was never an input.
        let back = answered(2, 10_000_000_000, 140, Some(NodeId(1)));
        let known = account.knowledge(0, &back, &next).expect("a usage");
        assert_eq!((known.same_server, known.any_server, known.moved), (129, 129, 0));
    }

    #[test]
    fn a_silent_client_leaves_the_others() {
        let mut account = accounts(
            &[1, 1],
            CacheRules {
                omits_zero: false,
                ..text_rules(true)
            },
        );
        let mut usage = answered(0, 0, 10, None).usage;
        if let Some(usage) = &mut usage {
            usage.cached = None;
        }
        for _ in 0..=SILENT_ANSWERS {
            account.on_usage(1, usage.clone().as_mut());
        }
        assert_eq!([0, 1].map(|client| account.is_open(client)), [true, false]);
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
        let mut rules = text_rules(true);
        rules.omits_zero = false;
        assert!(!silent(&mut CacheAccount::new(rules)));
        // One count is enough: a server may report only some.
        let mut account = CacheAccount::new(rules);
        usage.cached = Some(0);
        assert!(account.on_usage(Some(&mut usage.clone())));
        usage.cached = None;
        assert!((0..=SILENT_ANSWERS).all(|_| account.on_usage(Some(&mut usage.clone()))));
        assert!(CacheAccount::new(text_rules(true)).on_usage(Some(&mut usage)));
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
