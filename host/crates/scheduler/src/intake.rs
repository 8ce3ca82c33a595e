//! Bookkeeping of delivered and expected sessions.

use std::collections::BTreeSet;

use veeksha_model::SessionId;

use crate::config::Shard;

/// The ids of one shard, in the order in which they are wanted.
#[derive(Clone, Debug)]
pub(crate) struct Intake {
    shard: Shard,
    /// Ids at and above this one do not exist.
    end: u64,
    source_ended: bool,
    /// The lowest id of the shard that was not delivered.
    next: u64,
    /// Delivered ids above `next`.
    ahead: BTreeSet<u64>,
}

impl Intake {
    pub(crate) fn new(shard: Shard, max_sessions: Option<u64>) -> Self {
        Intake {
            shard,
            end: max_sessions.unwrap_or(u64::MAX),
            source_ended: false,
            next: u64::from(shard.index),
            ahead: BTreeSet::new(),
        }
    }

    /// Notes a delivery; false if the session does not belong here or was delivered before.
    pub(crate) fn accept(&mut self, id: SessionId) -> bool {
        let id = id.0;
        if !self.shard.owns(id) || id >= self.end || id < self.next || !self.ahead.insert(id) {
            return false;
        }
        while self.ahead.remove(&self.next) {
            self.next = self.next.saturating_add(self.shard.parts());
        }
        true
    }

    pub(crate) fn source_ended(&mut self) {
        self.source_ended = true;
    }

    /// The lowest id that is still to come.
    pub(crate) fn next_wanted(&self) -> Option<SessionId> {
        (!self.source_ended && self.next < self.end).then_some(SessionId(self.next))
    }

    /// The ids of this shard that may still come, in order.
    pub(crate) fn missing(&self) -> impl Iterator<Item = u64> {
        let first = self.next_wanted().map_or(self.end, |next| next.0);
        let ids = (first..self.end).step_by(self.shard.parts() as usize);
        ids.filter(|id| !self.ahead.contains(id))
    }

    /// Returns the number of sessions of this shard that may still come.
    pub(crate) fn remaining(&self) -> u64 {
        match self.next_wanted() {
            Some(next) => (self.end - next.0).div_ceil(self.shard.parts()) - self.ahead.len() as u64,
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_each_delivery_once_in_any_order() {
        let mut intake = Intake::new(Shard { index: 1, count: 3 }, Some(12));
        // The shard owns 1, 4, 7, 10.
        assert_eq!(
            (intake.next_wanted(), intake.remaining()),
            (Some(SessionId(1)), 4)
        );
        assert!(intake.accept(SessionId(7)));
        assert_eq!(
            (intake.next_wanted(), intake.remaining()),
            (Some(SessionId(1)), 3)
        );
        assert!(intake.accept(SessionId(1)));
        assert!(intake.accept(SessionId(4)));
        assert_eq!(
            (intake.next_wanted(), intake.remaining()),
            (Some(SessionId(10)), 1)
        );
        for refused in [1, 4, 7, 2, 13] {
            assert!(!intake.accept(SessionId(refused)), "{refused}");
        }
        assert!(intake.accept(SessionId(10)));
        assert_eq!((intake.next_wanted(), intake.remaining()), (None, 0));
    }
}
