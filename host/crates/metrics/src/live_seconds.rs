//! The last minutes of a run by second.

use std::collections::VecDeque;

use veeksha_model::Nanos;

/// The number of seconds that are kept: five minutes.
pub(crate) const SHOWN: usize = 300;
/// The number of seconds over which current rates are computed.
const RECENT: u64 = 10;
pub(crate) const SECOND: Nanos = 1_000_000_000;

/// One second of the run. Facts that are known only when a request ends (tokens, phases) are added
/// to the seconds in which they happened, so the latest seconds still grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveSecond {
    /// The start of the second.
    pub at: Nanos,
    /// Requests dispatched during the second.
    pub dispatched: u64,
    /// Answers completed during the second.
    pub completed: u64,
    /// Failures and withdrawals during the second.
    pub failed: u64,
    /// Requests in flight at the end of the second.
    pub in_flight: u64,
    /// Tokens that arrived during the second, of requests that have ended.
    pub output_tokens: u64,
    /// Requests between sending and first chunk at the end of the second, of requests that have
    /// ended.
    pub in_prefill: u64,
    /// Requests between first and last chunk at the end of the second, of requests that have ended.
    pub in_decode: u64,
}

/// The last seconds, oldest first. A dropped second is not updated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seconds {
    /// The index of the oldest second.
    first: u64,
    seconds: VecDeque<LiveSecond>,
}

impl Seconds {
    /// Returns the second of an instant; later seconds are created on demand.
    pub(crate) fn of(&mut self, at: Nanos) -> Option<&mut LiveSecond> {
        let number = at / SECOND;
        if self.seconds.is_empty() {
            self.first = number;
        }
        if number < self.first {
            self.reach_back(number);
        }
        let end = self.first + self.seconds.len() as u64;
        if number >= end + SHOWN as u64 {
            self.seconds.clear();
            self.first = number;
        }
        while self.first + self.seconds.len() as u64 <= number {
            let at = (self.first + self.seconds.len() as u64) * SECOND;
            self.seconds.push_back(LiveSecond {
                at,
                ..LiveSecond::default()
            });
        }
        while self.seconds.len() > SHOWN {
            self.seconds.pop_front();
            self.first += 1;
        }
        let place = number.checked_sub(self.first)?;
        self.seconds.get_mut(place as usize)
    }

    /// Extends the seconds back to a second before the oldest one, as far as there is room.
    fn reach_back(&mut self, number: u64) {
        while self.first > number && self.seconds.len() < SHOWN {
            self.first -= 1;
            self.seconds.push_front(LiveSecond {
                at: self.first * SECOND,
                ..LiveSecond::default()
            });
        }
    }

    pub(crate) fn add_tokens(&mut self, at: Nanos, tokens: u64) {
        if tokens > 0
            && let Some(second) = self.of(at)
        {
            second.output_tokens += tokens;
        }
    }

    /// Updates the seconds whose ends are within `[from, to)`.
    pub(crate) fn ends_within(&mut self, from: Nanos, to: Nanos, change: impl Fn(&mut LiveSecond)) {
        let first = self.first;
        let oldest = (from / SECOND).max(first);
        let place = (oldest - first) as usize;
        for second in self.seconds.iter_mut().skip(place) {
            let end = second.at + SECOND;
            if end >= to {
                break;
            }
            if end >= from {
                change(second);
            }
        }
    }

    /// Returns the mean per second over the last whole seconds.
    pub(crate) fn rate(&self, at: Nanos, of: fn(&LiveSecond) -> u64) -> Option<f64> {
        let now = at / SECOND;
        let from = now.saturating_sub(RECENT);
        let sum: u64 = self
            .seconds
            .iter()
            .filter(|second| (from..now).contains(&(second.at / SECOND)))
            .map(of)
            .sum();
        (now > from).then(|| sum as f64 / (now - from) as f64)
    }

    pub(crate) fn list(&self, at: Nanos) -> Vec<LiveSecond> {
        self.seconds
            .iter()
            .take_while(|second| second.at <= at)
            .copied()
            .collect()
    }
}
