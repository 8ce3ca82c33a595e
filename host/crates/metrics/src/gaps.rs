//! The gaps between chunks, by far the largest sample of a run.

use std::collections::BTreeMap;

use veeksha_model::Nanos;

/// Placeholder for a gap that does not fit into four bytes.
const LONG: u32 = u32::MAX;
/// Placeholder for a token count that does not fit into one byte.
const MANY: u8 = u8::MAX;

/// Gaps in nanoseconds, request after request. A run of a million answers of a hundred chunks has a
/// hundred million gaps, so gaps below 4.29 s (nearly all) take four bytes, without rounding. The
/// token counts of the chunks that end the gaps take one more byte each, from the first chunk on
/// with a count other than one.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    nanos: Vec<u32>,
    /// By index.
    long: BTreeMap<u64, Nanos>,
    /// Empty while every chunk has one token; otherwise as long as `nanos`.
    tokens: Vec<u8>,
    /// By index.
    many: BTreeMap<u64, u32>,
}

/// The range of a request's gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GapRange {
    pub(crate) at: u64,
    pub(crate) count: u32,
}

impl GapRange {
    fn range(self) -> std::ops::Range<usize> {
        self.at as usize..self.at as usize + self.count as usize
    }

    fn places(self) -> std::ops::Range<u64> {
        self.at..self.at + u64::from(self.count)
    }
}

impl Gaps {
    /// Returns the index of the next gap.
    pub(crate) fn next(&self) -> u64 {
        self.nanos.len() as u64
    }

    /// Adds a gap, and the tokens of the chunk that ends it.
    pub(crate) fn push(&mut self, gap: Nanos, tokens: u32) {
        let place = self.next();
        match u32::try_from(gap) {
            Ok(short) if short != LONG => self.nanos.push(short),
            _ => {
                self.nanos.push(LONG);
                self.long.insert(place, gap);
            }
        }
        if tokens == 1 && self.tokens.is_empty() {
            return;
        }
        self.tokens.resize(place as usize, 1);
        match u8::try_from(tokens) {
            Ok(few) if few != MANY => self.tokens.push(few),
            _ => {
                self.tokens.push(MANY);
                self.many.insert(place, tokens);
            }
        }
    }

    /// Returns true if every chunk that ends a gap has one token.
    pub(crate) fn one_token_each(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Returns all short gaps in nanoseconds, with [`LONG`], which exceeds them all, in place of
    /// long gaps.
    pub(crate) fn all_short(&self) -> &[u32] {
        &self.nanos
    }

    /// Returns the short gaps of a request, with [`LONG`] in place of long gaps.
    pub(crate) fn short(&self, of: GapRange) -> &[u32] {
        &self.nanos[of.range()]
    }

    /// Returns the long gaps of a request.
    pub(crate) fn long(&self, of: GapRange) -> impl Iterator<Item = Nanos> + '_ {
        self.long.range(of.places()).map(|(_, gap)| *gap)
    }

    /// Returns all long gaps.
    pub(crate) fn all_long(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.long.values().copied()
    }

    /// Returns the gaps of a request, in order.
    pub(crate) fn of(&self, stretch: GapRange) -> impl Iterator<Item = Nanos> + '_ {
        self.short(stretch)
            .iter()
            .zip(stretch.places())
            .map(|(short, place)| {
                if *short == LONG {
                    self.long.get(&place).copied().unwrap_or(u64::from(LONG))
                } else {
                    u64::from(*short)
                }
            })
    }

    /// Returns the gaps of a request, each with the tokens of the chunk that ends it.
    pub(crate) fn with_tokens(&self, stretch: GapRange) -> impl Iterator<Item = (Nanos, u32)> + '_ {
        let tokens = move |place: u64| match self.tokens.get(place as usize) {
            None => 1,
            Some(&MANY) => self.many.get(&place).copied().unwrap_or(u32::from(MANY)),
            Some(few) => u32::from(*few),
        };
        self.of(stretch)
            .zip(stretch.places())
            .map(move |(gap, place)| (gap, tokens(place)))
    }
}

/// Returns true if a value of [`Gaps::short`] is the placeholder for a long gap.
pub(crate) fn is_long(short: u32) -> bool {
    short == LONG
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_put_in_comes_out(
            requests in prop::collection::vec(
                prop::collection::vec(
                    (
                        prop_oneof![0u64..1_000, 4_294_967_290u64..4_294_967_300, 0..1u64 << 53],
                        prop_oneof![8 => Just(1u32), 1 => 0u32..400],
                    ),
                    0..8,
                ),
                0..8,
            ),
        ) {
            let mut gaps = Gaps::default();
            let mut stretches = Vec::new();
            for request in &requests {
                let at = gaps.next();
                request.iter().for_each(|(gap, tokens)| gaps.push(*gap, *tokens));
                stretches.push(GapRange { at, count: request.len() as u32 });
            }
            for (request, stretch) in requests.iter().zip(&stretches) {
                prop_assert_eq!(&gaps.with_tokens(*stretch).collect::<Vec<_>>(), request);
                let long: Vec<Nanos> =
                    request.iter().map(|(gap, _)| *gap).filter(|gap| *gap >= u64::from(LONG)).collect();
                prop_assert_eq!(gaps.long(*stretch).collect::<Vec<_>>(), long);
            }
            let ones = requests.iter().flatten().all(|(_, tokens)| *tokens == 1);
            prop_assert_eq!(gaps.one_token_each(), ones);
        }
    }
}
