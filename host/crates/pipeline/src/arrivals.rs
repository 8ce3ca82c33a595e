//! The arrivals of an arrival process, for the sessions of this process's part of the run.

use std::collections::VecDeque;

use veeksha_model::Nanos;
use veeksha_ports::{ArrivalFactory, ArrivalSource, PluginFailure, PluginFailureKind};

use crate::partition::Partition;

/// Arrivals asked for in one call of a process, at most.
const MAX_CALL: u64 = 1024;

/// Sessions that may arrive at one instant in a run without `max_sessions`: a process that never
/// advances would fill the memory. Each takes about 10 KiB while it is live.
const MAX_TOGETHER: u32 = 100_000;

/// An open process. Arrival `i` belongs to session `i` of the whole run: those of other parts are
/// passed over.
pub(crate) struct ArrivalReader {
    source: Box<dyn ArrivalSource>,
    part: Partition,
    /// The session whose arrival is next.
    next: u64,
    has_ended: bool,
    plugin: String,
    /// True if the run has no maximum number of sessions.
    is_endless: bool,
    /// The latest arrival, and the number of sessions that arrive then.
    latest: (Nanos, u32),
}

impl ArrivalReader {
    /// Opens a process for a part of a run with a maximum number of sessions.
    pub(crate) fn open(
        factory: &dyn ArrivalFactory,
        part: Partition,
        max_sessions: Option<u64>,
    ) -> Result<Self, PluginFailure> {
        Ok(ArrivalReader {
            source: factory.open()?,
            part,
            next: 0,
            has_ended: false,
            plugin: factory.info().name.clone(),
            is_endless: max_sessions.is_none(),
            latest: (0, 0),
        })
    }

    /// Returns the arrivals of the sessions at the positions `first .. first + count`, which follow
    /// those of the call before; fewer are the end.
    pub(crate) fn read(&mut self, first: u64, count: u32) -> Result<Vec<Nanos>, PluginFailure> {
        let Some(last) = (first + u64::from(count)).checked_sub(1) else {
            return Ok(Vec::new());
        };
        let end = self.part.session(last).0.saturating_add(1);
        let mut arrivals = Vec::with_capacity(count as usize);
        while self.next < end && !self.has_ended {
            let wanted = (end - self.next).min(MAX_CALL) as u32;
            let some = self.source.next(wanted)?;
            self.has_ended = some.len() < wanted as usize;
            for at in some {
                self.check_progress(at)?;
                if self.part.owns(self.next) {
                    arrivals.push(at);
                }
                self.next += 1;
            }
        }
        Ok(arrivals)
    }

    /// Counts the sessions that arrive at one instant.
    fn check_progress(&mut self, at: Nanos) -> Result<(), PluginFailure> {
        let (latest, together) = self.latest;
        self.latest = (
            at,
            if at == latest {
                together.saturating_add(1)
            } else {
                1
            },
        );
        if !self.is_endless || self.latest.1 <= MAX_TOGETHER {
            return Ok(());
        }
        let message = format!(
            "session {}: more than {MAX_TOGETHER} sessions arrive at {at} ns; let the arrivals advance, or \
             set `runtime.max_sessions` if all of them are to start at once",
            self.next
        );
        let kind = PluginFailureKind::Result;
        Err(PluginFailure::new(&self.plugin, "process.next", kind, message))
    }
}

/// Arrivals that were read ahead of the delivery of their sessions, in order.
#[derive(Default)]
pub(crate) struct ArrivalQueue {
    /// Positions whose arrivals were asked for.
    pub(crate) asked: u64,
    /// Positions whose arrivals came.
    received: u64,
    ready: VecDeque<Nanos>,
}

impl ArrivalQueue {
    /// Takes in arrivals. Returns the position after them.
    pub(crate) fn extend(&mut self, arrivals: Vec<Nanos>) -> u64 {
        self.received += arrivals.len() as u64;
        self.ready.extend(arrivals);
        self.received
    }

    /// Returns the number of arrivals whose sessions were not delivered.
    pub(crate) fn len(&self) -> u64 {
        self.ready.len() as u64
    }

    /// Takes the arrival of the next session.
    pub(crate) fn pop(&mut self) -> Option<Nanos> {
        self.ready.pop_front()
    }

    /// Returns the number of sessions that had arrived before `end` and were not delivered.
    pub(crate) fn arrived_before(&self, end: Nanos) -> u64 {
        self.ready.iter().filter(|at| **at < end).count() as u64
    }
}
