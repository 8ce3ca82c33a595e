//! Admission: the instant at which a delivered session may start, by its arrival (drawn or
//! given) or by a free slot.

use std::collections::BTreeMap;

use veeksha_model::{Nanos, SessionId};

use crate::arrivals::DrawnArrivals;
use crate::config::{SchedulerConfig, TrafficRule};
use crate::slots::Slots;

/// Arrivals that are counted as missed, at most: an interval of 0 would have no end of them.
const MOST_MISSED: usize = 1_000_000;

/// A session that may start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub(crate) id: SessionId,
    /// The instant at which it was due: its start.
    pub(crate) due: Nanos,
    /// Instant at which the source delivered it.
    pub(crate) delivered: Nanos,
    /// Instant since which a slot has been free for it; 0 where sessions are not limited.
    pub(crate) slot_since: Nanos,
}

/// Sessions that were delivered and have not started, and what they wait for.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    gate: Gate,
    /// The slots that limit open-loop sessions, if there is a limit.
    session_slots: Option<Slots>,
    /// Delivery instants, ordered by arrival (0 where there are no arrivals), then id.
    held: BTreeMap<(Nanos, SessionId), Nanos>,
}

#[derive(Clone, Debug)]
enum Gate {
    Arrivals(DrawnArrivals),
    /// Arrivals that come with the sessions, in any order.
    Given,
    Slots(Slots),
}

impl Admission {
    pub(crate) fn new(config: &SchedulerConfig) -> Self {
        let gate = match config.traffic {
            TrafficRule::Rate(interval) => {
                Gate::Arrivals(DrawnArrivals::new(interval, config.seed, config.shard))
            }
            TrafficRule::Scheduled { .. } => Gate::Given,
            TrafficRule::Concurrent { target, ramp } => {
                let target = config.limits.sessions.map_or(target, |most| target.min(most));
                Gate::Slots(Slots::new(target, ramp, config.shard))
            }
        };
        let most = match gate {
            Gate::Arrivals(_) | Gate::Given => config.limits.sessions,
            Gate::Slots(_) => None,
        };
        Admission {
            gate,
            session_slots: most.map(|most| Slots::new(most, 0, config.shard)),
            held: BTreeMap::new(),
        }
    }

    /// Takes a delivered session in. Each session comes once.
    pub(crate) fn hold(&mut self, id: SessionId, delivered: Nanos, given: Option<Nanos>) {
        let arrival = match &mut self.gate {
            Gate::Arrivals(arrivals) => arrivals.take(id.0).unwrap_or(delivered),
            Gate::Given => given.unwrap_or(delivered),
            Gate::Slots(_) => 0,
        };
        self.held.insert((arrival, id), delivered);
    }

    /// The next session that may start, in the order of arrival; without arrivals, lowest id first.
    pub(crate) fn admit(&mut self, now: Nanos) -> Option<Admitted> {
        if let Gate::Slots(slots) = &mut self.gate {
            slots.advance(now);
        }
        let first = self.held.first_entry()?;
        let (arrival, id) = *first.key();
        let (due, slot_since) = match (&mut self.gate, &mut self.session_slots) {
            (Gate::Slots(slots), _) => (slots.take()?, 0),
            _ if arrival > now => return None,
            (_, Some(session_slots)) => (arrival, session_slots.take()?),
            (_, None) => (arrival, 0),
        };
        let delivered = first.remove();
        Some(Admitted {
            id,
            due,
            delivered,
            slot_since,
        })
    }

    /// A started session is over.
    pub(crate) fn release(&mut self, at: Nanos) {
        if let Gate::Slots(slots) = &mut self.gate {
            slots.release(at);
        }
        if let Some(session_slots) = &mut self.session_slots {
            session_slots.release(at);
        }
    }

    /// Returns the instant at which the next session may start by time alone.
    pub(crate) fn next(&self) -> Option<Nanos> {
        let ((arrival, _), _) = self.held.first_key_value()?;
        match &self.gate {
            Gate::Arrivals(_) | Gate::Given => (!self.is_full()).then_some(*arrival),
            Gate::Slots(slots) => slots.next_opening(),
        }
    }

    /// Sessions that wait.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns the number of slots that are empty because no session was delivered.
    pub(crate) fn vacant(&self) -> usize {
        match &self.gate {
            Gate::Arrivals(_) | Gate::Given => 0,
            Gate::Slots(slots) => slots.free(),
        }
    }

    /// Returns true if the limit holds open-loop sessions back.
    pub(crate) fn is_full(&self) -> bool {
        self.session_slots
            .as_ref()
            .is_some_and(|session_slots| session_slots.free() == 0)
    }

    /// Gives up every session that has not started: its id and, of open-loop traffic, its arrival.
    pub(crate) fn clear(&mut self) -> impl Iterator<Item = (SessionId, Option<Nanos>)> + use<> {
        let open = !matches!(self.gate, Gate::Slots(_));
        let held = std::mem::take(&mut self.held).into_keys();
        held.map(move |(arrival, id)| (id, open.then_some(arrival)))
    }

    /// Returns the number of undelivered sessions that had arrived before `end`; `wanted` are their
    /// ids, in order. Only known where arrivals are drawn.
    pub(crate) fn arrived_before(&mut self, end: Nanos, wanted: impl Iterator<Item = u64>) -> u64 {
        let Gate::Arrivals(arrivals) = &mut self.gate else {
            return 0;
        };
        let before = wanted
            .take(MOST_MISSED)
            .take_while(|id| arrivals.take(*id).is_some_and(|arrival| arrival < end));
        before.count() as u64
    }
}
