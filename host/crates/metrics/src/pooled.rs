//! Pooled samples, of which a request has many: the gaps between its chunks, the times between its
//! tokens. They are neither copied nor sorted.

use crate::gaps::is_long;
use crate::ranks::{Keys, at_ranks};
use crate::requests::RequestTable;
use crate::row::RequestRow;

/// The number of gaps below which they are copied and sorted, which is faster than several passes.
/// (Small in tests, to exercise the passes.)
const FEW: u64 = if cfg!(test) { 8 } else { 1 << 20 };

/// The number of ranks above which sorting the gaps is faster than selecting each rank: a selection
/// reads half of the gaps.
const MANY_RANKS: usize = 16;

/// The requests whose samples are pooled.
#[derive(Clone, Debug)]
pub(crate) enum RowSelection {
    /// All that count.
    All,
    /// These rows.
    These(Vec<u32>),
}

/// The gaps between the chunks of some requests, in seconds.
#[derive(Debug)]
pub(crate) struct GapSet<'a> {
    requests: &'a RequestTable,
    of: RowSelection,
    /// The number of gaps of four bytes.
    short: u64,
    /// The long gaps, ascending, in nanoseconds.
    long: Vec<u64>,
}

impl<'a> GapSet<'a> {
    pub(crate) fn new(requests: &'a RequestTable, of: RowSelection) -> Self {
        let gaps = &requests.gaps;
        let (all, mut long): (u64, Vec<u64>) = match &of {
            RowSelection::All => (gaps.next(), gaps.all_long().collect()),
            RowSelection::These(rows) => {
                let stretches = || rows.iter().map(|row| requests.rows[*row as usize].gaps);
                let all = stretches().map(|stretch| u64::from(stretch.count)).sum();
                (all, stretches().flat_map(|stretch| gaps.long(stretch)).collect())
            }
        };
        long.sort_unstable();
        GapSet {
            short: all - long.len() as u64,
            requests,
            of,
            long,
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.short + self.long.len() as u64
    }

    /// Visits the short gaps in ranges that may contain placeholders; [`is_long`] detects them.
    fn stretches(&self, mut visit: impl FnMut(&[u32])) {
        let gaps = &self.requests.gaps;
        match &self.of {
            RowSelection::All => visit(gaps.all_short()),
            RowSelection::These(rows) => rows
                .iter()
                .for_each(|row| visit(gaps.short(self.requests.rows[*row as usize].gaps))),
        }
    }

    fn each_short(&self, mut visit: impl FnMut(u32)) {
        if self.long.is_empty() {
            self.stretches(|gaps| gaps.iter().for_each(|gap| visit(*gap)));
        } else {
            self.stretches(|gaps| {
                gaps.iter()
                    .filter(|gap| !is_long(**gap))
                    .for_each(|gap| visit(*gap));
            });
        }
    }

    /// Returns the values at these ranks, ascending: every long gap is longer than every short one.
    pub(crate) fn at_ranks(&self, ranks: &[u64]) -> Vec<f64> {
        let within = ranks.partition_point(|rank| *rank < self.short);
        let (low, high) = ranks.split_at(within);
        let short = if self.short <= FEW {
            self.by_selecting(low)
        } else {
            at_ranks(self, low)
        };
        let long = high
            .iter()
            .filter_map(|rank| self.long.get((rank - self.short) as usize));
        short
            .iter()
            .chain(long)
            .map(|nanos| *nanos as f64 / 1e9)
            .collect()
    }

    /// Selects the ranks of a few gaps, such as those of one request.
    fn by_selecting(&self, ranks: &[u64]) -> Vec<u64> {
        let mut gaps = Vec::with_capacity(self.short as usize);
        self.each_short(|gap| gaps.push(gap));
        if ranks.len() >= MANY_RANKS {
            gaps.sort_unstable();
            return ranks.iter().map(|rank| u64::from(gaps[*rank as usize])).collect();
        }
        let mut settled = 0;
        let select = |rank: &u64| {
            let rank = *rank as usize;
            let (_, value, _) = gaps[settled..].select_nth_unstable(rank - settled);
            settled = rank;
            u64::from(*value)
        };
        ranks.iter().map(select).collect()
    }

    /// Returns the exact sum and sum of squares of the short gaps, in nanoseconds, so that the
    /// order of requests does not affect them.
    fn sums(&self) -> (u128, u128) {
        // A number of squares whose sum fits into 64 bits with a margin.
        const TOGETHER: usize = 1 << 16;
        let (mut sum, mut squares) = (0u128, 0u128);
        self.stretches(|gaps| {
            for gaps in gaps.chunks(TOGETHER) {
                let (mut part, mut high, mut low) = (0u64, 0u64, 0u64);
                for gap in gaps {
                    let gap = if is_long(*gap) { 0 } else { u64::from(*gap) };
                    let square = gap * gap;
                    part += gap;
                    high += square >> 32;
                    low += square & u64::from(u32::MAX);
                }
                sum += u128::from(part);
                squares += (u128::from(high) << 32) + u128::from(low);
            }
        });
        (sum, squares)
    }

    /// Returns mean and standard deviation, in seconds.
    pub(crate) fn moments(&self) -> Option<Moments> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let (sum, squares) = self.sums();
        let all = sum + self.long.iter().map(|gap| u128::from(*gap)).sum::<u128>();
        let mean = all as f64 / count as f64;
        let short = if self.long.is_empty() {
            // n Σx² − (Σx)² has no rounding; 32-bit gaps leave room for 2^64 of them.
            (u128::from(count) * squares - sum * sum) as f64 / count as f64
        } else {
            squares as f64 - 2.0 * mean * sum as f64 + self.short as f64 * mean * mean
        };
        let long: f64 = self.long.iter().map(|gap| (*gap as f64 - mean).powi(2)).sum();
        Some(Moments {
            mean: mean / 1e9,
            std: ((short.max(0.0) + long) / count as f64).sqrt() / 1e9,
        })
    }
}

/// Mean and standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moments {
    pub(crate) mean: f64,
    pub(crate) std: f64,
}

impl Keys for GapSet<'_> {
    const BITS: u32 = 32;

    fn len(&self) -> u64 {
        self.short
    }

    fn each(&self, mut visit: impl FnMut(u64, u64)) {
        self.each_short(|gap| visit(u64::from(gap), 1));
    }
}

/// The times between the tokens of some requests, in seconds: a gap divided by the number of tokens
/// in the chunk that ends it, once for each of these tokens.
#[derive(Debug)]
pub(crate) struct TokenSet<'a> {
    requests: &'a RequestTable,
    of: RowSelection,
    tokens: u64,
    /// The total time.
    nanos: u128,
}

impl<'a> TokenSet<'a> {
    pub(crate) fn new(requests: &'a RequestTable, of: RowSelection) -> Self {
        let mut set = TokenSet {
            requests,
            of,
            tokens: 0,
            nanos: 0,
        };
        let (mut tokens, mut nanos) = (0, 0);
        set.each_gap(|gap, count| {
            tokens += u64::from(count);
            nanos += u128::from(gap);
        });
        (set.tokens, set.nanos) = (tokens, nanos);
        set
    }

    pub(crate) fn count(&self) -> u64 {
        self.tokens
    }

    fn each_gap(&self, mut visit: impl FnMut(u64, u32)) {
        let mut pass = |row: &RequestRow| {
            self.requests
                .token_gaps(row)
                .for_each(|(gap, tokens)| visit(gap, tokens));
        };
        match &self.of {
            RowSelection::All => self
                .requests
                .rows
                .iter()
                .filter(|row| row.has_samples())
                .for_each(&mut pass),
            RowSelection::These(rows) => rows
                .iter()
                .for_each(|row| pass(&self.requests.rows[*row as usize])),
        }
    }

    pub(crate) fn at_ranks(&self, ranks: &[u64]) -> Vec<f64> {
        at_ranks(self, ranks)
            .into_iter()
            .map(|bits| f64::from_bits(bits) / 1e9)
            .collect()
    }

    /// Returns mean and standard deviation, in seconds.
    pub(crate) fn moments(&self) -> Option<Moments> {
        if self.tokens == 0 {
            return None;
        }
        let mean = self.nanos as f64 / self.tokens as f64;
        let mut squares = 0.0;
        self.each_gap(|gap, tokens| {
            let tokens = f64::from(tokens);
            squares += tokens * (gap as f64 / tokens - mean).powi(2);
        });
        Some(Moments {
            mean: mean / 1e9,
            std: (squares / self.tokens as f64).sqrt() / 1e9,
        })
    }
}

impl Keys for TokenSet<'_> {
    const BITS: u32 = 63;

    fn len(&self) -> u64 {
        self.tokens
    }

    /// Visits the values as keys: the bit patterns of non-negative floats have the order of the
    /// floats.
    fn each(&self, mut visit: impl FnMut(u64, u64)) {
        self.each_gap(|gap, tokens| {
            let after = gap as f64 / f64::from(tokens);
            visit(after.to_bits(), u64::from(tokens));
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use veeksha_events::RequestRecord;
    use veeksha_model::{Chunk, ChunkKind, RequestId, SessionId};
    use veeksha_stats::Summary;

    use super::*;
    use crate::Deadlines;
    use crate::sample_set::SampleSet;

    /// An answer with these gaps between its chunks, and the tokens of the chunks that end them.
    fn record(session: u64, gaps: &[(u64, u32)]) -> RequestRecord {
        let chunk = |at| Chunk {
            at,
            lag: 0,
            bytes: 1,
            kind: ChunkKind::Content,
            merged: false,
        };
        let mut at = 1000;
        let mut record = crate::blank::record();
        record.id = RequestId {
            session: SessionId(session),
            ..record.id
        };
        record.chunks.push(chunk(at));
        record.chunk_tokens.push(1);
        for (gap, tokens) in gaps {
            at += gap;
            record.chunks.push(chunk(at));
            record.chunk_tokens.push(*tokens);
        }
        record
    }

    fn near(one: &Summary, other: &Summary) -> bool {
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (a.abs() + b.abs()) + 1e-15;
        // Rounding affects mean and deviation only.
        close(one.mean, other.mean)
            && (one.std - other.std).abs() <= 1e-7 * (one.max + 1e-9)
            && Summary {
                mean: other.mean,
                std: other.std,
                ..*one
            } == *other
    }

    proptest! {
        /// Copied, selected or shared samples have the same statistics as plain values.
        #[test]
        fn many_gaps_have_the_statistics_of_plain_ones(
            answers in prop::collection::vec(
                prop::collection::vec(
                    (
                        prop_oneof![0u64..50, 1_000_000u64..1_000_300, 4_294_967_290u64..4_294_967_300, 0..1u64 << 50],
                        prop_oneof![3 => Just(1u32), 1 => 0u32..4],
                    ),
                    0..20,
                ),
                1..6,
            ),
            some in prop::collection::vec(any::<bool>(), 6),
        ) {
            let mut requests = RequestTable::new(Deadlines::default());
            for (session, gaps) in (0..).zip(&answers) {
                requests.add(&record(session, gaps));
            }
            requests.sort();
            let chosen: Vec<u32> = (0..answers.len() as u32).filter(|place| some[*place as usize]).collect();
            let all: Vec<u32> = (0..answers.len() as u32).collect();
            for (of, rows) in [(RowSelection::All, &all), (RowSelection::These(chosen.clone()), &chosen)] {
                let mut gaps = Vec::new();
                let mut tokens = Vec::new();
                for row in rows {
                    let mut waited = 0;
                    for (gap, count) in &answers[*row as usize] {
                        gaps.push(*gap as f64 / 1e9);
                        waited += gap;
                        if *count > 0 {
                            let each = waited as f64 / f64::from(*count) / 1e9;
                            tokens.extend(std::iter::repeat_n(each, *count as usize));
                            waited = 0;
                        }
                    }
                }
                for (set, mut plain) in [
                    (SampleSet::Gaps(GapSet::new(&requests, of.clone())), gaps),
                    (SampleSet::Tokens(TokenSet::new(&requests, of.clone())), tokens),
                ] {
                    match (set.summary(), Summary::of(&mut plain)) {
                        (None, None) => {}
                        (Some(seen), Some(expected)) => prop_assert!(near(&seen, &expected), "{seen:?} {expected:?}"),
                        (seen, expected) => prop_assert!(false, "{seen:?} {expected:?}"),
                    }
                }
            }
        }
    }
}
