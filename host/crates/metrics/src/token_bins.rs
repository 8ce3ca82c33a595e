//! Output tokens over time.

use std::collections::BTreeMap;

use veeksha_events::RequestRecord;
use veeksha_model::Nanos;
use veeksha_stats::StepCurve;

use crate::token_times::token_times;

/// The largest number of bins. The bin length is doubled when more are needed.
const BINS: usize = 16_384;
/// The number of parts in a token: sums of integers do not depend on their order.
const PARTS: u64 = 1_000_000;

/// Output tokens by arrival time, in bins of equal length: a second, doubled as often as needed in
/// long runs.
#[derive(Clone, Debug)]
pub(crate) struct TokenBins {
    length: Nanos,
    bins: BTreeMap<u64, BinTokens>,
}

/// The tokens of a bin, in parts of a token.
#[derive(Clone, Copy, Debug, Default)]
struct BinTokens {
    measured: u64,
    /// Tokens of requests that the throughput metrics exclude.
    drained: u64,
}

impl BinTokens {
    fn add(&mut self, other: BinTokens) {
        self.measured += other.measured;
        self.drained += other.drained;
    }
}

impl Default for TokenBins {
    fn default() -> Self {
        TokenBins {
            length: 1_000_000_000,
            bins: BTreeMap::new(),
        }
    }
}

impl TokenBins {
    /// Adds the tokens of a request.
    pub(crate) fn add(&mut self, record: &RequestRecord) {
        // Successive chunks are usually in the same bin: they are added together.
        let (mut stretch, mut sum) = (0..0, 0);
        for (at, parts) in token_times(record, PARTS) {
            if !stretch.contains(&at) {
                self.put(stretch.start, record.measured, sum);
                let from = at - at % self.length;
                (stretch, sum) = (from..from + self.length, 0);
            }
            sum += parts;
        }
        self.put(stretch.start, record.measured, sum);
        while self.bins.len() > BINS {
            self.length *= 2;
            let mut halved: BTreeMap<u64, BinTokens> = BTreeMap::new();
            for (number, parts) in std::mem::take(&mut self.bins) {
                halved.entry(number / 2).or_default().add(parts);
            }
            self.bins = halved;
        }
    }

    fn put(&mut self, at: Nanos, measured: bool, parts: u64) {
        if parts > 0 {
            let bin = self.bins.entry(at / self.length).or_default();
            bin.add(if measured {
                BinTokens {
                    measured: parts,
                    drained: 0,
                }
            } else {
                BinTokens {
                    measured: 0,
                    drained: parts,
                }
            });
        }
    }

    /// Adds the bins to a curve. All measured tokens arrived within the window.
    pub(crate) fn fill(&self, steps: &mut StepCurve, window: Option<(Nanos, Nanos)>, end: Nanos) {
        let mut add = |(from, to): (Nanos, Nanos), parts: u64| {
            if parts > 0 {
                steps.add(from, to, parts as f64 / PARTS as f64 / ((to - from) as f64 / 1e9));
            }
        };
        let stretches = window.map(|window| Stretches::of(window, self.length));
        let mut measured: BTreeMap<u64, u64> = BTreeMap::new();
        for (number, parts) in &self.bins {
            let from = number * self.length;
            // The record may end within the last bin, which may then be too short for a rate.
            let whole = (from, (from + self.length).min(end.max(from + self.length / 10)));
            add(whole, parts.drained);
            match &stretches {
                Some(stretches) => *measured.entry(stretches.number(*number)).or_default() += parts.measured,
                None => add(whole, parts.measured),
            }
        }
        if let Some(stretches) = stretches {
            for (number, parts) in measured {
                add(stretches.span(number), parts);
            }
        }
    }
}

/// The bins of a window. Bins that the window cuts to less than half of their length, too short for
/// a rate, are merged into the adjacent ones.
struct Stretches {
    window: (Nanos, Nanos),
    length: Nanos,
    first: u64,
    last: u64,
}

impl Stretches {
    /// Creates the bins. The window must not be empty.
    fn of(window: (Nanos, Nanos), length: Nanos) -> Self {
        let (begin, end) = window;
        let (mut first, mut last) = (begin / length, (end - 1) / length);
        if first < last && 2 * ((first + 1) * length - begin) < length {
            first += 1;
        }
        if first < last && 2 * (end - last * length) < length {
            last -= 1;
        }
        Stretches {
            window,
            length,
            first,
            last,
        }
    }

    fn number(&self, number: u64) -> u64 {
        number.clamp(self.first, self.last)
    }

    fn span(&self, number: u64) -> (Nanos, Nanos) {
        let (begin, end) = self.window;
        let from = if number == self.first {
            begin
        } else {
            number * self.length
        };
        let to = if number == self.last {
            end
        } else {
            (number + 1) * self.length
        };
        (from, to)
    }
}
