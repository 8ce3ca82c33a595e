//! The limits on requests: how many are in flight, how many wait for their first chunk, and how
//! long each limit was in the way.

use veeksha_model::Nanos;

use crate::config::{ConcurrencyLimits, Shard};

/// The limit that keeps requests back. Where both are reached, it is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitKind {
    InFlight,
    InPrefill,
}

/// For how long each limit has been in the way since the run began. The difference of two readings
/// is how long a request that waited from the one to the other was kept back by each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Passed {
    pub(crate) in_flight: Nanos,
    pub(crate) in_prefill: Nanos,
}

/// A stretch of time in which the same limit, or none, was in the way. It lasts until the next one
/// begins.
#[derive(Clone, Copy, Debug)]
struct LimitInterval {
    start: Nanos,
    limit_reached: Option<LimitKind>,
    /// Time held when it began.
    before: Passed,
}

impl LimitInterval {
    fn passed(&self, at: Nanos) -> Passed {
        let lasted = at.saturating_sub(self.start);
        let mut passed = self.before;
        match self.limit_reached {
            Some(LimitKind::InFlight) => passed.in_flight += lasted,
            Some(LimitKind::InPrefill) => passed.in_prefill += lasted,
            None => {}
        }
        passed
    }
}

/// One shard's part of the limits on requests.
///
/// Instants are those of the results, not of the calls that report them: a result frees capacity
/// from its instant on. The shell's delay in reporting it is not attributed to the limit, and stays
/// visible as lateness. (A node that became due between a result and a call that did not know of it
/// yet is held for slightly less than it was: never longer than that delay.)
#[derive(Clone, Debug)]
pub(crate) struct RequestLimits {
    most_in_flight: Option<u32>,
    most_in_prefill: Option<u32>,
    in_flight: u32,
    in_prefill: u32,
    /// The stretch in which the last call ended, and what followed it in this call.
    stretches: Vec<LimitInterval>,
}

impl RequestLimits {
    pub(crate) fn new(limits: ConcurrencyLimits, shard: Shard) -> Self {
        let mut requests = RequestLimits {
            most_in_flight: limits.in_flight.map(|most| shard.part_of(most)),
            most_in_prefill: limits.in_prefill.map(|most| shard.part_of(most)),
            in_flight: 0,
            in_prefill: 0,
            stretches: Vec::new(),
        };
        requests.stretches.push(LimitInterval {
            start: 0,
            limit_reached: requests.limit_reached(),
            before: Passed::default(),
        });
        requests
    }

    /// A new call begins: what lies before the present stretch is asked for no more.
    pub(crate) fn begin_call(&mut self) {
        let past = self.stretches.len() - 1;
        self.stretches.drain(..past);
    }

    /// Returns true if the first chunk of each request matters.
    pub(crate) fn limits_prefills(&self) -> bool {
        self.most_in_prefill.is_some()
    }

    /// Returns true if no request may be dispatched.
    pub(crate) fn is_full(&self) -> bool {
        self.limit_reached().is_some()
    }

    /// A request was dispatched that could have been since `since`.
    pub(crate) fn dispatched(&mut self, since: Nanos) {
        self.in_flight += 1;
        self.in_prefill += 1;
        self.changed(since);
    }

    /// A request's first chunk came.
    pub(crate) fn first_chunk(&mut self, at: Nanos) {
        self.in_prefill -= 1;
        self.changed(at);
    }

    /// A request has its result; `prefilling` is true if its first chunk was not reported.
    pub(crate) fn ended(&mut self, at: Nanos, prefilling: bool) {
        self.in_flight -= 1;
        self.in_prefill -= u32::from(prefilling);
        self.changed(at);
    }

    /// Returns the time held at an instant that is not earlier than the end of the last call.
    pub(crate) fn passed(&self, at: Nanos) -> Passed {
        let of = |stretch: &LimitInterval| stretch.passed(at);
        let found = self.stretches.iter().rev().find(|stretch| stretch.start <= at);
        found
            .map(of)
            .or_else(|| self.stretches.first().map(|first| first.before))
            .unwrap_or_default()
    }

    fn limit_reached(&self) -> Option<LimitKind> {
        let reached = |now: u32, most: Option<u32>| most.is_some_and(|most| now >= most);
        if reached(self.in_flight, self.most_in_flight) {
            Some(LimitKind::InFlight)
        } else if reached(self.in_prefill, self.most_in_prefill) {
            Some(LimitKind::InPrefill)
        } else {
            None
        }
    }

    fn changed(&mut self, at: Nanos) {
        let limit_reached = self.limit_reached();
        let Some(present) = self.stretches.last_mut() else {
            return;
        };
        if present.limit_reached == limit_reached {
            return;
        }
        // Results may be reported out of order; stretches are consecutive.
        if at <= present.start {
            present.limit_reached = limit_reached;
            return;
        }
        let before = present.passed(at);
        self.stretches.push(LimitInterval {
            start: at,
            limit_reached,
            before,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(in_flight: Option<u32>, in_prefill: Option<u32>) -> RequestLimits {
        let limits = ConcurrencyLimits {
            sessions: None,
            in_flight,
            in_prefill,
        };
        RequestLimits::new(limits, Shard::WHOLE)
    }

    fn passed(limits: &RequestLimits, at: Nanos) -> (Nanos, Nanos) {
        let passed = limits.passed(at);
        (passed.in_flight, passed.in_prefill)
    }

    #[test]
    fn first_reached_limit_is_charged() {
        let mut limits = limits(Some(2), Some(1));
        limits.dispatched(10);
        assert_eq!(passed(&limits, 15), (0, 5));
        limits.begin_call();
        limits.first_chunk(20);
        assert!(!limits.is_full());
        limits.dispatched(30);
        // Two in flight, one of them in prefill: both limits are reached.
        assert_eq!(
            [10, 19, 25, 30, 37].map(|at| passed(&limits, at)),
            [(0, 0), (0, 9), (0, 10), (0, 10), (7, 10)]
        );
        limits.begin_call();
        limits.ended(40, false);
        assert_eq!(passed(&limits, 44), (10, 14));
        limits.ended(50, true);
        assert_eq!((passed(&limits, 99), limits.is_full()), ((10, 20), false));
    }

    #[test]
    fn late_results_keep_their_instants() {
        let mut limits = limits(Some(1), None);
        limits.dispatched(0);
        limits.begin_call();
        // Capacity is free since 100; the request that takes it was waiting already.
        limits.ended(100, true);
        limits.dispatched(60);
        assert_eq!(passed(&limits, 130), (130, 0));
        limits.begin_call();
        // Before the present stretch began: it is over as soon as it began.
        limits.ended(90, true);
        assert_eq!(passed(&limits, 130), (100, 0));
    }

    #[test]
    fn without_limits_nothing_is_held() {
        let mut limits = limits(None, None);
        for at in 0..100 {
            limits.begin_call();
            limits.dispatched(at);
        }
        assert_eq!((passed(&limits, 1_000), limits.is_full()), ((0, 0), false));
    }
}
