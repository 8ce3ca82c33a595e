//! Output tokens over time.

use std::collections::BTreeMap;

use veeksha_events::RequestRecord;
use veeksha_model::Nanos;
use veeksha_stats::StepCurve;

use crate::token_times::token_times;

/// Stretches in which tokens are counted: beyond, ones of twice the length.
const BINS: usize = 16_384;
/// A token is counted in parts, so that the sum is the same in any order.
const PARTS: u64 = 1_000_000;

/// Output tokens by when they came, in stretches of equal length: a second, or twice, four times, ... as much in a run of many.
#[derive(Clone, Debug)]
pub(crate) struct TokenBins {
    length: Nanos,
    bins: BTreeMap<u64, Parts>,
}

/// What came in a stretch, in parts of a token.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    measured: u64,
    /// Of requests that the figures of throughput do not count.
    drained: u64,
}

impl Parts {
    fn add(&mut self, other: Parts) {
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
    /// Adds what came of a request.
    pub(crate) fn add(&mut self, record: &RequestRecord) {
        // Successive chunks mostly lie in one stretch: they are put there together.
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
            let mut halved: BTreeMap<u64, Parts> = BTreeMap::new();
            for (number, parts) in std::mem::take(&mut self.bins) {
                halved.entry(number / 2).or_default().add(parts);
            }
            self.bins = halved;
        }
    }

    fn put(&mut self, at: Nanos, measured: bool, parts: u64) {
        if parts > 0 {
            let bin = self.bins.entry(at / self.length).or_default();
            bin.add(match measured {
                true => Parts {
                    measured: parts,
                    drained: 0,
                },
                false => Parts {
                    measured: 0,
                    drained: parts,
                },
            });
        }
    }

    /// Draws them. All that is measured came within the window.
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
            // The record may end within the last stretch; of a moment of it there is no rate.
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

/// The stretches of a window: what it cuts at its ends to less than half a stretch, of which there is no rate, belongs to the next one.
struct Stretches {
    window: (Nanos, Nanos),
    length: Nanos,
    first: u64,
    last: u64,
}

impl Stretches {
    /// The window is not empty.
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
