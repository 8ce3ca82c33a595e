//! Tokens that span a space, and words between which none of them can occur.
//!
//! Some vocabularies have entries of several words (`▁of▁the`). Such an entry occurs between the
//! words `v` and `w` only if `v` ends with its part before the space and `w` begins with its part
//! after it. So each of its spaces is made impossible by excluding either the words of one side or
//! those of the other, whichever are fewer.

use std::collections::{HashMap, HashSet};

/// The letters of a token on the two sides of one of its spaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Crossing {
    left: CrossingSide,
    right: CrossingSide,
}

/// Letters next to a space.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CrossingSide {
    letters: String,
    /// True if they are a whole word (next to another space); false if they are the end or
    /// beginning of one.
    whole: bool,
}

/// The crossings of a vocabulary.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crossings(Vec<Crossing>);

impl Crossings {
    /// Records a token whose spaces are written as one of `markers`.
    pub(crate) fn note(&mut self, token: &str, markers: &[char]) {
        for (at, marker) in token.match_indices(markers) {
            let (before, after) = (&token[..at], &token[at + marker.len()..]);
            let left = before.trim_end_matches(|char: char| char.is_ascii_lowercase());
            let right = after.trim_start_matches(|char: char| char.is_ascii_lowercase());
            // After the letters: the end of the token, another space, or something that does not
            // occur in synthetic text.
            let possible = |rest: &str, next: bool| rest.is_empty() || next;
            let left_whole = left.ends_with(markers);
            let right_whole = right.starts_with(markers);
            if left.len() < at && possible(left, left_whole) && possible(right, right_whole) {
                self.0.push(Crossing {
                    left: CrossingSide {
                        letters: before[left.len()..].to_string(),
                        whole: left_whole,
                    },
                    right: CrossingSide {
                        letters: after[..after.len() - right.len()].to_string(),
                        whole: right_whole,
                    },
                });
            }
        }
    }

    /// Returns words such that no token spans the space between any two of them.
    pub(crate) fn avoid<T: Clone>(&self, words: &[T], text: impl Fn(&T) -> &str) -> Vec<T> {
        let mut ends: HashMap<&str, usize> = HashMap::new();
        let mut beginnings: HashMap<&str, usize> = HashMap::new();
        let whole: HashSet<&str> = words.iter().map(&text).collect();
        for word in words.iter().map(&text) {
            for cut in 0..=word.len() {
                *ends.entry(&word[cut..]).or_default() += 1;
                *beginnings.entry(&word[..cut]).or_default() += 1;
            }
        }
        let count = |side: &CrossingSide, parts: &HashMap<&str, usize>| {
            if side.whole {
                usize::from(whole.contains(side.letters.as_str()))
            } else {
                parts.get(side.letters.as_str()).copied().unwrap_or(0)
            }
        };
        let mut out_left = HashSet::new();
        let mut out_right = HashSet::new();
        for crossing in &self.0 {
            match (count(&crossing.left, &ends), count(&crossing.right, &beginnings)) {
                (0, _) | (_, 0) => {}
                (left, right) if left <= right => _ = out_left.insert(&crossing.left),
                _ => _ = out_right.insert(&crossing.right),
            }
        }
        let side = |letters: &str, whole| CrossingSide {
            letters: letters.to_string(),
            whole,
        };
        let stays = |word: &str| {
            let whole = side(word, true);
            let out = out_left.contains(&whole)
                || out_right.contains(&whole)
                || (0..=word.len()).any(|cut| {
                    out_left.contains(&side(&word[cut..], false))
                        || out_right.contains(&side(&word[..cut], false))
                });
            !out
        };
        words.iter().filter(|word| stays(text(word))).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_over(tokens: &[&str], words: &[&'static str]) -> Vec<&'static str> {
        let mut crossings = Crossings::default();
        for token in tokens {
            crossings.note(token, &['▁']);
        }
        crossings.avoid(words, |word| word)
    }

    #[test]
    fn ignores_tokens_without_inner_space() {
        let words = ["one", "two"];
        assert_eq!(
            left_over(&["▁one", "▁▁", "▁", ".▁", "É▁one", "two!"], &words),
            words
        );
    }

    #[test]
    fn excludes_the_smaller_side() {
        // `e▁t` occurs in `one two` and `one ten`; one word ends with e, two begin with t.
        assert_eq!(left_over(&["e▁t"], &["one", "two", "ten"]), ["two", "ten"]);
        // Two words end with e, one begins with t.
        assert_eq!(left_over(&["e▁t"], &["one", "five", "ten"]), ["one", "five"]);
        // A token that ends with the space: the left side must go.
        assert_eq!(left_over(&["ive▁"], &["one", "five", "ten"]), ["one", "ten"]);
    }

    #[test]
    fn distinguishes_whole_words_from_parts() {
        // Only the word `of` itself is possible before `the...`.
        assert_eq!(
            left_over(&["▁of▁th"], &["of", "roof", "there", "three"]),
            ["roof", "there", "three"]
        );
        // Every space of a token counts, regardless of its neighbors.
        assert_eq!(
            left_over(&["A▁of▁the▁e"], &["of", "the", "end", "east"]),
            ["end", "east"]
        );
        // After `the` comes a character that no word has: the token cannot occur between words.
        assert_eq!(left_over(&["of▁the!"], &["of", "the"]), ["of", "the"]);
    }
}
