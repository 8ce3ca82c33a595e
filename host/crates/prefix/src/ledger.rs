//! Every prompt so far, as a tree of pieces.

use crate::path::LongestByPlace;
use crate::path::PromptPath;
use crate::piece::PrefixPiece;

/// The prompts of a run, in the order in which they were sent, as an unbounded cache would know
/// them.
///
/// Memory: 17 bytes for each place of the map, which is between 44 % and 88 % full, hence 20 to 40
/// bytes for each different (beginning, piece). A conversation of 100 turns adds only what is new
/// in each; a million prompts of ten new pieces each are about 300 MB.
#[derive(Clone, Debug, Default)]
pub struct PrefixLedger {
    known: LongestByPlace,
}

impl PrefixLedger {
    /// No prompt yet.
    pub fn new() -> Self {
        PrefixLedger::default()
    }

    /// Returns the number of tokens that `prompt` shares with the beginning of an earlier prompt
    /// (the longest common prefix with any of them), then adds it.
    pub fn see(&mut self, prompt: &[PrefixPiece]) -> u64 {
        let (mut path, mut hits, mut following) = (PromptPath::START, 0, true);
        for piece in prompt {
            let longest = self.known.entry(path.branch(piece.identity)).or_insert(0);
            if following {
                hits += u64::from(piece.tokens.min(*longest));
                following = piece.tokens <= *longest;
            }
            *longest = piece.tokens.max(*longest);
            path = path.then(piece);
        }
        hits
    }

    /// Adds text that is not a prompt: a prompt with its answer, for a cache that keeps generated
    /// tokens.
    pub fn learn(&mut self, known: &[PrefixPiece]) {
        self.see(known);
    }

    /// Different pieces at different places.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns true if the ledger is empty.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn piece(identity: u64, tokens: u32) -> PrefixPiece {
        PrefixPiece { identity, tokens }
    }

    #[test]
    fn hits_common_prefix_with_earlier_prompt() {
        let mut ledger = PrefixLedger::new();
        let (system, a, b) = (piece(1, 100), piece(2, 30), piece(3, 40));
        assert_eq!(ledger.see(&[system, a]), 0);
        assert_eq!(ledger.see(&[system, b]), 100);
        assert_eq!(ledger.see(&[system, a]), 130);
        // Text that was seen, but at another place, is not a prefix.
        assert_eq!(ledger.see(&[b, a]), 0);
        assert_eq!(ledger.see(&[system, b, a]), 140);
    }

    #[test]
    fn shorter_piece_is_prefix_of_longer() {
        let mut ledger = PrefixLedger::new();
        assert_eq!(ledger.see(&[piece(1, 10)]), 0);
        assert_eq!(ledger.see(&[piece(1, 4), piece(2, 5)]), 4);
        // Ten of twelve tokens were there; what follows them was not.
        assert_eq!(ledger.see(&[piece(1, 12), piece(2, 5)]), 10);
        // After four tokens of 1 came 2, of which five tokens are known.
        assert_eq!(ledger.see(&[piece(1, 4), piece(2, 9)]), 9);
        assert_eq!(ledger.see(&[piece(1, 12)]), 12);
    }

    #[test]
    fn mark_separates_following_pieces() {
        let mut ledger = PrefixLedger::new();
        let (user, tool, text) = (piece(90, 0), piece(91, 0), piece(5, 20));
        assert_eq!(ledger.see(&[user, text]), 0);
        assert_eq!(ledger.see(&[tool, text]), 0);
        assert_eq!(ledger.see(&[user, text]), 20);
    }

    #[test]
    fn generated_text_counts_after_learn() {
        let mut ledger = PrefixLedger::new();
        let (question, answer, next) = (piece(1, 50), piece(2, 20), piece(3, 5));
        ledger.see(&[question]);
        let mut keeps_answers = ledger.clone();
        keeps_answers.learn(&[question, answer]);
        assert_eq!(ledger.see(&[question, answer, next]), 50);
        assert_eq!(keeps_answers.see(&[question, answer, next]), 70);
    }

    #[test]
    fn small_identities_and_lengths_do_not_collide() {
        let mut ledger = PrefixLedger::new();
        for identity in 0..40 {
            for tokens in [1, 2, 65_536, 65_537, 131_072] {
                ledger.see(&[piece(identity, tokens), piece(7, 1)]);
            }
        }
        // Forty beginnings, and behind each of five lengths of each one place.
        assert_eq!(ledger.len(), 40 + 40 * 5);
    }

    /// Expands a prompt into tokens, each identified by its piece and its index in the piece; a
    /// mark is one element without weight.
    fn tokens_of(prompt: &[PrefixPiece]) -> Vec<(u64, Option<u32>)> {
        let expanded = prompt.iter().flat_map(|piece| {
            let mark = (piece.tokens == 0).then_some((piece.identity, None));
            let tokens = (0..piece.tokens).map(|number| (piece.identity, Some(number)));
            mark.into_iter().chain(tokens)
        });
        expanded.collect()
    }

    fn naive_hits(earlier: &[Vec<PrefixPiece>], prompt: &[PrefixPiece]) -> u64 {
        let prompt = tokens_of(prompt);
        let common = |other: &Vec<PrefixPiece>| {
            let other = tokens_of(other);
            let shared = prompt.iter().zip(&other).take_while(|(a, b)| a == b);
            shared.filter(|(token, _)| token.1.is_some()).count() as u64
        };
        earlier.iter().map(common).max().unwrap_or(0)
    }

    fn prompts() -> impl Strategy<Value = Vec<Vec<PrefixPiece>>> {
        // Identities from 10 on are marks; few of each, so that beginnings meet often.
        let text = (0u64..3, 1u32..6).prop_map(|(identity, tokens)| piece(identity, tokens));
        let mark = (10u64..12).prop_map(|identity| piece(identity, 0));
        let any = prop_oneof![4 => text, 1 => mark];
        prop::collection::vec(prop::collection::vec(any, 0..5), 1..25)
    }

    proptest! {
        #[test]
        fn hits_are_the_longest_common_prefix_with_any_earlier_prompt(prompts in prompts()) {
            let mut ledger = PrefixLedger::new();
            for (number, prompt) in prompts.iter().enumerate() {
                prop_assert_eq!(ledger.see(prompt), naive_hits(&prompts[..number], prompt), "prompt {}", number);
            }
        }
    }
}
