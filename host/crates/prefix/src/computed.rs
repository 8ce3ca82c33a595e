//! The text that servers have computed, and since when.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use veeksha_model::{CacheKnowledge, Nanos};
use veeksha_stats::{mix64, split_mix64};

use crate::path::{Mixed, PromptPath};
use crate::piece::PrefixPiece;
use crate::token_scale::TokenScale;

/// The resolution of instants. Four bytes hold five days.
const TICK: Nanos = 100_000;

/// Maximum number of lengths of one piece at one place that are distinguished by their instants.
const LENGTHS: u64 = 4;

/// Number of successive pieces of one token that are compared together: one token alone, such as an
/// id of a vocabulary, is found in every prompt.
const TOKENS_TOGETHER: usize = 8;

/// A length of a text that a server has computed. Packed: eight bytes next to a key of eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ComputedText {
    tokens: u32,
    /// In ticks, rounded up.
    since: u32,
}

impl ComputedText {
    /// Returns true if the other states nothing beyond this one.
    fn covers(self, other: ComputedText) -> bool {
        self.tokens >= other.tokens && self.since <= other.since
    }
}

/// A prompt whose tokens are to be classified.
#[derive(Clone, Copy, Debug)]
pub struct PromptQuery<'a> {
    /// Its pieces.
    pub pieces: &'a [PrefixPiece],
    /// The server that it was sent to.
    pub server: u16,
    /// The instant at which it was sent: what was computed later is unknown.
    pub at: Nanos,
    /// Its tokens, as the server counts them.
    pub tokens: u32,
    /// Those of them that the server found in its cache.
    pub cached: u32,
    /// The number of tokens that the server's cache keeps together; at least 1.
    pub block: u32,
}

/// The beginnings of prompts that each server has computed, and all text that any of them has
/// computed at any place.
///
/// Memory: as [`crate::PrefixLedger`] for each server that has computed a (beginning, piece), and
/// once more for each different piece. Marks take none.
#[derive(Clone, Debug, Default)]
pub struct ComputedPrefixes {
    known: HashMap<u64, ComputedText, BuildHasherDefault<Mixed>>,
    /// The tokens of whole prompts, as servers count them, where that differs from their pieces.
    counted: HashMap<u64, u32, BuildHasherDefault<Mixed>>,
    /// Servers that have computed something.
    servers: u16,
}

impl ComputedPrefixes {
    /// Nothing was computed yet.
    pub fn new() -> Self {
        ComputedPrefixes::default()
    }

    /// Adds the pieces that follow `from`, which `server` had computed at `at`. Returns the place
    /// behind them.
    pub fn learn(&mut self, server: u16, from: PromptPath, pieces: &[PrefixPiece], at: Nanos) -> PromptPath {
        self.servers = self.servers.max(server.saturating_add(1));
        let since = ticks(at);
        let (mut path, mut texts) = (from, TextKeys::default());
        for piece in pieces {
            let text = texts.next(piece);
            if piece.tokens > 0 {
                let tokens = piece.tokens;
                let computed = ComputedText { tokens, since };
                self.add(place_on(server, path.branch(piece.identity)), computed);
                self.add(text, computed);
            }
            path = path.then(piece);
        }
        path
    }

    /// Adds the number of tokens that a server counted for a prompt which ends at `path`. Prompts
    /// that continue it have their boundary there.
    pub fn count(&mut self, path: PromptPath, tokens: u32) {
        self.counted.insert(path.key(), tokens);
    }

    /// Returns the tokens of a prompt that servers had computed, in the server's tokens.
    pub fn knowledge(&self, prompt: &PromptQuery) -> CacheKnowledge {
        let scale = self.scale(prompt);
        let by = ticks(prompt.at);
        let of = |server| scale.tokens_at(self.beginning(server, prompt.pieces, by));
        let same = of(prompt.server);
        let any = (0..self.servers).map(of).max().unwrap_or(0).max(same);
        // The output of the last token is the first token of the answer: it is always computed.
        let reusable = |tokens: u32| {
            let tokens = tokens.min(prompt.tokens.saturating_sub(1));
            tokens - tokens % prompt.block.max(1)
        };
        CacheKnowledge {
            same_server: reusable(same),
            any_server: reusable(any),
            moved: self.moved(prompt, &scale, any.max(prompt.cached), by),
        }
    }

    /// Returns the length of the longest beginning that a server had computed, in the tokens of the
    /// pieces.
    fn beginning(&self, server: u16, pieces: &[PrefixPiece], by: u32) -> u64 {
        let (mut path, mut tokens) = (PromptPath::START, 0);
        for piece in pieces {
            if piece.tokens > 0 {
                let computed = self.longest(place_on(server, path.branch(piece.identity)), by);
                tokens += u64::from(piece.tokens.min(computed));
                if computed < piece.tokens {
                    break;
                }
            }
            path = path.then(piece);
        }
        tokens
    }

    /// Returns the tokens behind `from` whose text had been computed at another place.
    fn moved(&self, prompt: &PromptQuery, scale: &TokenScale, from: u32, by: u32) -> u32 {
        let (mut begin, mut texts, mut moved) = (0, TextKeys::default(), 0);
        for piece in prompt.pieces {
            let computed = self.longest(texts.next(piece), by).min(piece.tokens);
            if computed > 0 {
                let end = scale.tokens_at(begin + u64::from(computed));
                moved += end.saturating_sub(scale.tokens_at(begin).max(from));
            }
            begin += u64::from(piece.tokens);
        }
        moved
    }

    /// Returns the relation of the pieces to the server's tokens.
    fn scale(&self, prompt: &PromptQuery) -> TokenScale {
        let total = prompt.pieces.iter().map(|piece| u64::from(piece.tokens)).sum();
        let mut scale = TokenScale::new(total, prompt.tokens);
        if !scale.is_equal() && !self.counted.is_empty() {
            let (mut path, mut tokens) = (PromptPath::START, 0);
            for piece in prompt.pieces {
                path = path.then(piece);
                tokens += u64::from(piece.tokens);
                if let Some(counted) = self.counted.get(&path.key()) {
                    scale.fix(tokens, *counted);
                }
            }
        }
        scale
    }

    /// Returns the longest text that was computed at a place by an instant.
    fn longest(&self, place: u64, by: u32) -> u32 {
        self.lengths(place)
            .find(|computed| computed.since <= by)
            .map_or(0, |computed| computed.tokens)
    }

    /// Returns the lengths at a place, the longest and latest first.
    fn lengths(&self, place: u64) -> impl Iterator<Item = ComputedText> + '_ {
        (0..LENGTHS).map_while(move |rank| self.known.get(&ranked(place, rank)).copied())
    }

    fn add(&mut self, place: u64, new: ComputedText) {
        let Some(longest) = self.known.get(&place).copied() else {
            self.known.insert(place, new);
            return;
        };
        if longest.covers(new) {
            return;
        }
        let before: Vec<ComputedText> = self.lengths(place).collect();
        if before.iter().any(|computed| computed.covers(new)) {
            return;
        }
        let mut lengths = before.clone();
        lengths.retain(|computed| !new.covers(*computed));
        lengths.push(new);
        lengths.sort_unstable_by_key(|computed| std::cmp::Reverse(computed.tokens));
        if lengths.len() as u64 > LENGTHS {
            // The longest counts for all later prompts, the earliest for those still in flight.
            lengths.remove(1);
        }
        for rank in lengths.len()..before.len() {
            self.known.remove(&ranked(place, rank as u64));
        }
        for (rank, computed) in (0..).zip(lengths) {
            self.known.insert(ranked(place, rank), computed);
        }
    }
}

fn ticks(at: Nanos) -> u32 {
    u32::try_from(at.div_ceil(TICK)).unwrap_or(u32::MAX)
}

/// Names a place in the memory of one server.
fn place_on(server: u16, place: u64) -> u64 {
    mix64(place ^ split_mix64(u64::from(server) + 1))
}

/// Names the lengths of one place; the first has the name of the place.
fn ranked(place: u64, rank: u64) -> u64 {
    if rank == 0 {
        place
    } else {
        mix64(place ^ split_mix64(rank << 32))
    }
}

/// Names the texts of a prompt independently of their places.
#[derive(Default)]
struct TextKeys {
    /// The preceding pieces of one token each.
    single: Vec<u64>,
}

impl TextKeys {
    fn next(&mut self, piece: &PrefixPiece) -> u64 {
        if piece.tokens != 1 {
            self.single.clear();
            return mix64(piece.identity ^ TEXT);
        }
        if self.single.len() == TOKENS_TOGETHER {
            self.single.remove(0);
        }
        self.single.push(piece.identity);
        let fold = |key, identity: &u64| mix64(split_mix64(key) ^ identity);
        self.single.iter().fold(TEXT, fold)
    }
}

/// Separates the names of texts from those of places.
const TEXT: u64 = 0x7465_7874;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    fn piece(identity: u64, tokens: u32) -> PrefixPiece {
        PrefixPiece { identity, tokens }
    }

    fn query(pieces: &[PrefixPiece], server: u16, seconds: u64) -> PromptQuery<'_> {
        PromptQuery {
            pieces,
            server,
            at: seconds * SECOND,
            tokens: pieces.iter().map(|piece| piece.tokens).sum(),
            cached: 0,
            block: 1,
        }
    }

    fn learn(computed: &mut ComputedPrefixes, server: u16, pieces: &[PrefixPiece], seconds: u64) {
        computed.learn(server, PromptPath::START, pieces, seconds * SECOND);
    }

    fn known(same_server: u32, any_server: u32, moved: u32) -> CacheKnowledge {
        CacheKnowledge {
            same_server,
            any_server,
            moved,
        }
    }

    #[test]
    fn beginnings_belong_to_the_server_that_computed_them() {
        let mut computed = ComputedPrefixes::new();
        let (system, one, two) = (piece(1, 100), piece(2, 30), piece(3, 40));
        learn(&mut computed, 0, &[system, one], 1);
        learn(&mut computed, 1, &[system], 1);
        // Server 1 computed the system prompt, server 0 also the next piece; the third is new.
        let prompt = [system, one, two];
        assert_eq!(computed.knowledge(&query(&prompt, 1, 2)), known(100, 130, 0));
        assert_eq!(computed.knowledge(&query(&prompt, 0, 2)), known(130, 130, 0));
        assert_eq!(computed.knowledge(&query(&prompt, 2, 2)), known(0, 130, 0));
    }

    #[test]
    fn text_computed_after_the_dispatch_is_unknown() {
        let mut computed = ComputedPrefixes::new();
        let prompt = [piece(1, 10), piece(2, 20)];
        learn(&mut computed, 0, &prompt, 5);
        assert_eq!(computed.knowledge(&query(&prompt, 0, 4)), known(0, 0, 0));
        // The last token is computed in any case.
        assert_eq!(computed.knowledge(&query(&prompt, 0, 5)), known(29, 29, 0));
    }

    /// An answer of 20 tokens is known at 3 s but for its last token, which the next prompt
    /// contains: known at 9 s. A prompt that was sent at 5 s knows the first form.
    #[test]
    fn lengths_of_a_piece_have_their_instants() {
        let mut computed = ComputedPrefixes::new();
        let prompt = [piece(1, 10), piece(2, 20), piece(3, 5)];
        learn(&mut computed, 0, &[piece(1, 10), piece(2, 19)], 3);
        learn(&mut computed, 0, &prompt, 9);
        assert_eq!(computed.knowledge(&query(&prompt, 0, 2)), known(0, 0, 0));
        assert_eq!(computed.knowledge(&query(&prompt, 0, 5)), known(29, 29, 0));
        assert_eq!(computed.knowledge(&query(&prompt, 0, 9)), known(34, 34, 0));
        // In the other order.
        let mut computed = ComputedPrefixes::new();
        learn(&mut computed, 0, &prompt, 9);
        learn(&mut computed, 0, &[piece(1, 10), piece(2, 19)], 3);
        assert_eq!(computed.knowledge(&query(&prompt, 0, 5)), known(29, 29, 0));
    }

    #[test]
    fn text_behind_another_beginning_has_moved() {
        let mut computed = ComputedPrefixes::new();
        let (system, thought, answer, more) = (piece(1, 100), piece(2, 50), piece(3, 30), piece(4, 8));
        learn(&mut computed, 0, &[system, thought, answer], 1);
        // The reasoning is dropped: the answer behind it was computed, elsewhere.
        let dropped = [system, answer, more];
        assert_eq!(computed.knowledge(&query(&dropped, 0, 2)), known(100, 100, 30));
        // A salt in front changes everything.
        let salted = [piece(9, 4), system, thought, answer];
        assert_eq!(computed.knowledge(&query(&salted, 0, 2)), known(0, 0, 180));
        // The cache knows more than this run explains: only what follows counts.
        let surplus = PromptQuery {
            cached: 120,
            ..query(&dropped, 0, 2)
        };
        assert_eq!(computed.knowledge(&surplus), known(100, 100, 10));
    }

    #[test]
    fn single_tokens_are_compared_together() {
        let mut computed = ComputedPrefixes::new();
        let ids: Vec<PrefixPiece> = (0..40).map(|id| piece(id, 1)).collect();
        learn(&mut computed, 0, &ids, 1);
        // The same ids in another order are other text.
        let mixed: Vec<PrefixPiece> = (0..40).map(|id| piece(39 - id, 1)).collect();
        assert_eq!(computed.knowledge(&query(&mixed, 0, 2)), known(0, 0, 0));
        // Behind a salt, all but the seven that are compared together with it.
        let mut salted = vec![piece(99, 1)];
        salted.extend(&ids);
        assert_eq!(computed.knowledge(&query(&salted, 0, 2)), known(0, 0, 33));
    }

    #[test]
    fn whole_blocks_are_reusable() {
        let mut computed = ComputedPrefixes::new();
        learn(&mut computed, 0, &[piece(1, 40)], 1);
        learn(&mut computed, 1, &[piece(1, 40), piece(2, 10)], 1);
        let blocks = |pieces| PromptQuery {
            block: 16,
            ..query(pieces, 0, 2)
        };
        // Two blocks of 40 tokens, three of 50; the rest of the blocks is not known elsewhere.
        let prompt = [piece(1, 40), piece(2, 10), piece(3, 30)];
        assert_eq!(computed.knowledge(&blocks(&prompt)), known(32, 48, 0));
        // Of a known prompt of exactly three blocks, the last is computed for its last token.
        let whole = [piece(1, 40), piece(2, 8)];
        assert_eq!(computed.knowledge(&blocks(&whole)), known(32, 32, 0));
    }

    /// The server counts ten tokens more for each of two turns of 50 and 70 tokens.
    #[test]
    fn prompts_that_continue_a_counted_one_have_its_boundary() {
        let mut computed = ComputedPrefixes::new();
        let turn = [piece(1, 50)];
        let path = computed.learn(0, PromptPath::START, &turn, SECOND);
        computed.count(path, 60);
        let next = [piece(1, 50), piece(2, 70)];
        let counted = PromptQuery {
            tokens: 140,
            ..query(&next, 0, 2)
        };
        assert_eq!(computed.knowledge(&counted), known(60, 60, 0));
    }

    type Earlier = (u16, Vec<PrefixPiece>, u64);

    /// Each token with the piece that it belongs to and its number there.
    fn tokens_of(prompt: &[PrefixPiece]) -> Vec<(u64, u32)> {
        let tokens = |piece: &PrefixPiece| {
            (0..piece.tokens)
                .map(|number| (piece.identity, number))
                .collect::<Vec<_>>()
        };
        prompt.iter().flat_map(tokens).collect()
    }

    /// The longest common beginning with any prompt that was computed in time. Pieces end where
    /// they end: a piece that follows a shorter form of another one is at another place.
    fn naive(earlier: &[Earlier], prompt: &PromptQuery, server: Option<u16>) -> u32 {
        let wanted = tokens_of(prompt.pieces);
        let known = earlier
            .iter()
            .filter(|(of, _, at)| server.is_none_or(|server| server == *of) && at * SECOND <= prompt.at);
        let common = known.map(|(_, other, _)| {
            let other = tokens_of(other);
            wanted.iter().zip(&other).take_while(|(a, b)| a == b).count() as u32
        });
        common.max().unwrap_or(0).min(prompt.tokens.saturating_sub(1))
    }

    fn prompts() -> impl Strategy<Value = Vec<Earlier>> {
        // Every length of a piece has its identity, so that equal tokens are equal pieces.
        let piece = (0u64..3, 2u32..6)
            .prop_map(|(identity, tokens)| piece(identity * 10 + u64::from(tokens), tokens));
        prop::collection::vec((0u16..3, prop::collection::vec(piece, 1..5), 0u64..6), 1..20)
    }

    proptest! {
        #[test]
        fn knowledge_is_the_longest_beginning_computed_in_time(earlier in prompts(), asked in prompts()) {
            let mut computed = ComputedPrefixes::new();
            for (server, pieces, at) in &earlier {
                learn(&mut computed, *server, pieces, *at);
            }
            for (server, pieces, at) in &asked {
                let asked = query(pieces, *server, *at);
                let knowledge = computed.knowledge(&asked);
                prop_assert_eq!(knowledge.same_server, naive(&earlier, &asked, Some(*server)));
                prop_assert_eq!(knowledge.any_server, naive(&earlier, &asked, None));
                prop_assert!(knowledge.any_server + knowledge.moved <= asked.tokens);
            }
        }

        /// The same with lengths that grow and shrink, on one server: at most four lengths of a
        /// piece are distinguished, and here are no more.
        #[test]
        fn lengths_do_not_depend_on_the_order(lengths in prop::collection::vec((1u32..9, 0u64..4), 1..9), at in 0u64..5) {
            let mut computed = ComputedPrefixes::new();
            for (tokens, seconds) in &lengths {
                learn(&mut computed, 0, &[piece(1, *tokens)], *seconds);
            }
            let in_time = lengths.iter().filter(|(_, seconds)| *seconds <= at);
            let longest = in_time.map(|(tokens, _)| *tokens).max().unwrap_or(0);
            let prompt = [piece(1, 9), piece(2, 1)];
            prop_assert_eq!(computed.knowledge(&query(&prompt, 0, at)).same_server, longest);
        }

        #[test]
        fn classes_add_up_for_any_counts(
            earlier in prompts(), asked in prompts(), tokens in 1u32..40, cached in 0u32..40, block in 1u32..6,
        ) {
            let mut computed = ComputedPrefixes::new();
            for (server, pieces, at) in &earlier {
                let path = computed.learn(*server, PromptPath::START, pieces, at * SECOND);
                computed.count(path, tokens / 2);
            }
            for (server, pieces, at) in &asked {
                let cached = cached.min(tokens);
                let knowledge = computed.knowledge(&PromptQuery { tokens, cached, block, ..query(pieces, *server, *at) });
                prop_assert!(knowledge.same_server <= knowledge.any_server);
                prop_assert!(knowledge.any_server.max(cached) + knowledge.moved <= tokens);
            }
        }
    }
}
