//! Samples of which a request has many: the gaps between its chunks, the times between its tokens. They are not copied and not sorted.

use crate::gaps::is_long;
use crate::ranks::{Keys, at_ranks};
use crate::requests::Requests;
use crate::row::Row;

/// Of which requests.
#[derive(Clone, Debug)]
pub(crate) enum Of {
    /// Of all that count.
    All,
    /// Of these rows.
    These(Vec<u32>),
}

/// The gaps between the chunks of some requests, in seconds.
#[derive(Debug)]
pub(crate) struct GapSet<'a> {
    requests: &'a Requests,
    of: Of,
    /// Gaps of four bytes.
    short: u64,
    /// The others, ascending, in nanoseconds.
    long: Vec<u64>,
}

impl<'a> GapSet<'a> {
    pub(crate) fn new(requests: &'a Requests, of: Of) -> Self {
        let gaps = &requests.gaps;
        let (all, mut long): (u64, Vec<u64>) = match &of {
            Of::All => (gaps.next(), gaps.all_long().collect()),
            Of::These(rows) => {
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

    fn each_short(&self, mut visit: impl FnMut(u32)) {
        let gaps = &self.requests.gaps;
        let mut pass = |short: &[u32]| {
            short
                .iter()
                .copied()
                .filter(|gap| !is_long(*gap))
                .for_each(&mut visit)
        };
        match &self.of {
            Of::All => pass(gaps.all_short()),
            Of::These(rows) => rows
                .iter()
                .for_each(|row| pass(gaps.short(self.requests.rows[*row as usize].gaps))),
        }
    }

    /// The values at these ranks, ascending: every long gap is longer than every short one.
    pub(crate) fn at_ranks(&self, ranks: &[u64]) -> Vec<f64> {
        let within = ranks.partition_point(|rank| *rank < self.short);
        let (low, high) = ranks.split_at(within);
        let short = at_ranks(self, low);
        let long = high
            .iter()
            .filter_map(|rank| self.long.get((rank - self.short) as usize));
        short
            .iter()
            .chain(long)
            .map(|nanos| *nanos as f64 / 1e9)
            .collect()
    }

    /// Sum and sum of squares of the short gaps, exactly: in nanoseconds, so that no order of requests changes them.
    fn moments(&self) -> (u128, u128) {
        let (mut sum, mut squares) = (0u128, 0u128);
        self.each_short(|gap| {
            sum += u128::from(gap);
            squares += u128::from(u64::from(gap) * u64::from(gap));
        });
        (sum, squares)
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        let (sum, _) = self.moments();
        self.mean_of(sum)
    }

    fn mean_of(&self, short: u128) -> Option<f64> {
        let sum = short + self.long.iter().map(|gap| u128::from(*gap)).sum::<u128>();
        (self.count() > 0).then(|| sum as f64 / self.count() as f64 / 1e9)
    }

    pub(crate) fn std(&self) -> Option<f64> {
        let (sum, squares) = self.moments();
        let mean = self.mean_of(sum)? * 1e9;
        let short = if self.long.is_empty() {
            // n Σx² − (Σx)² has no rounding; 32-bit gaps leave room for 2^64 of them.
            let count = u128::from(self.short);
            (count * squares - sum * sum) as f64 / count as f64
        } else {
            squares as f64 - 2.0 * mean * sum as f64 + self.short as f64 * mean * mean
        };
        let long: f64 = self.long.iter().map(|gap| (*gap as f64 - mean).powi(2)).sum();
        Some(((short.max(0.0) + long) / self.count() as f64).sqrt() / 1e9)
    }
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

/// The times between the tokens of some requests, in seconds: a gap divided by the tokens that came after it, once for each of them.
#[derive(Debug)]
pub(crate) struct TokenSet<'a> {
    requests: &'a Requests,
    of: Of,
    tokens: u64,
    /// The time that all of them took.
    nanos: u128,
}

impl<'a> TokenSet<'a> {
    pub(crate) fn new(requests: &'a Requests, of: Of) -> Self {
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
        let mut pass = |row: &Row| {
            self.requests
                .token_gaps(row)
                .for_each(|(gap, tokens)| visit(gap, tokens));
        };
        match &self.of {
            Of::All => self
                .requests
                .rows
                .iter()
                .filter(|row| row.counts())
                .for_each(&mut pass),
            Of::These(rows) => rows
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

    pub(crate) fn mean(&self) -> Option<f64> {
        (self.tokens > 0).then(|| self.nanos as f64 / self.tokens as f64 / 1e9)
    }

    pub(crate) fn std(&self) -> Option<f64> {
        let mean = self.mean()? * 1e9;
        let mut squares = 0.0;
        self.each_gap(|gap, tokens| {
            let tokens = f64::from(tokens);
            squares += tokens * (gap as f64 / tokens - mean).powi(2);
        });
        Some((squares / self.tokens as f64).sqrt() / 1e9)
    }
}

impl Keys for TokenSet<'_> {
    const BITS: u32 = 63;

    fn len(&self) -> u64 {
        self.tokens
    }

    /// The bits of numbers that are not negative are in the order of the numbers.
    fn each(&self, mut visit: impl FnMut(u64, u64)) {
        self.each_gap(|gap, tokens| {
            let after = gap as f64 / f64::from(tokens);
            visit(after.to_bits(), u64::from(tokens));
        });
    }
}
