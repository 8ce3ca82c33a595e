//! When a delivered session may start: by its arrival, drawn or recorded, or by a free place.

use std::collections::BTreeMap;

use veeksha_model::{Nanos, SessionId};

use crate::arrivals::Arrivals;
use crate::slots::Slots;
use crate::{SchedulerConfig, Traffic};

/// A session that may start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub(crate) id: SessionId,
    /// The instant at which it was due: its start.
    pub(crate) due: Nanos,
    /// When the source delivered it.
    pub(crate) delivered: Nanos,
}

/// Sessions that were delivered and have not started, and what they wait for.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    gate: Gate,
    /// By arrival, then id (0 where there are no arrivals): when each was delivered.
    held: BTreeMap<(Nanos, SessionId), Nanos>,
}

#[derive(Clone, Debug)]
enum Gate {
    Arrivals(Arrivals),
    /// Arrivals that come with the sessions, in any order.
    Recorded,
    Slots(Slots),
}

impl Admission {
    pub(crate) fn new(config: &SchedulerConfig) -> Self {
        let gate = match config.traffic {
            Traffic::Rate(interval) => Gate::Arrivals(Arrivals::new(interval, config.seed, config.shard)),
            Traffic::Scheduled => Gate::Recorded,
            Traffic::Concurrent { target, ramp } => Gate::Slots(Slots::new(target, ramp, config.shard)),
        };
        Admission {
            gate,
            held: BTreeMap::new(),
        }
    }

    /// Takes a delivered session in. Each session comes once.
    pub(crate) fn hold(&mut self, id: SessionId, delivered: Nanos, recorded: Option<Nanos>) {
        let arrival = match &mut self.gate {
            Gate::Arrivals(arrivals) => arrivals.take(id.0).unwrap_or(delivered),
            Gate::Recorded => recorded.unwrap_or(delivered),
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
        let due = match &mut self.gate {
            Gate::Arrivals(_) | Gate::Recorded => (arrival <= now).then_some(arrival)?,
            Gate::Slots(slots) => slots.take()?,
        };
        let delivered = first.remove();
        Some(Admitted { id, due, delivered })
    }

    /// A started session is over.
    pub(crate) fn release(&mut self, at: Nanos) {
        if let Gate::Slots(slots) = &mut self.gate {
            slots.release(at);
        }
    }

    /// When the next session may start by time alone.
    pub(crate) fn next(&self) -> Option<Nanos> {
        let ((arrival, _), _) = self.held.first_key_value()?;
        match &self.gate {
            Gate::Arrivals(_) | Gate::Recorded => Some(*arrival),
            Gate::Slots(slots) => slots.next_opening(),
        }
    }

    /// Sessions that wait.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Places that stand empty for want of a session.
    pub(crate) fn vacant(&self) -> usize {
        match &self.gate {
            Gate::Arrivals(_) | Gate::Recorded => 0,
            Gate::Slots(slots) => slots.free(),
        }
    }

    /// Gives up every session that has not started.
    pub(crate) fn clear(&mut self) -> impl Iterator<Item = SessionId> + use<> {
        std::mem::take(&mut self.held).into_keys().map(|(_, id)| id)
    }
}
