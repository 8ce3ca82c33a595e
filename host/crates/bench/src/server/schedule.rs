//! Order of writes: connections that are ready take turns, the others wait for their instant.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use veeksha_model::Nanos;

/// A connection's slot and generation: slots are reused.
pub(crate) type Turn = (usize, u64);

/// Pending turns.
#[derive(Debug, Default)]
pub(crate) struct TurnQueue {
    ready: VecDeque<Turn>,
    timed: BinaryHeap<Reverse<(Nanos, u64, Turn)>>,
    /// Keeps turns of the same instant in insertion order.
    added: u64,
}

impl TurnQueue {
    /// Adds a turn after those that are already ready.
    pub(crate) fn soon(&mut self, turn: Turn) {
        self.ready.push_back(turn);
    }

    /// Adds a turn at an instant.
    pub(crate) fn at(&mut self, due: Nanos, turn: Turn) {
        self.timed.push(Reverse((due, self.added, turn)));
        self.added += 1;
    }

    /// Returns true if a turn is ready now.
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the next instant of a timed turn.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.timed.peek().map(|Reverse((due, _, _))| *due)
    }

    /// Takes the next turn whose instant has passed, with that instant.
    pub(crate) fn due(&mut self, now: Nanos) -> Option<(Nanos, Turn)> {
        if self.next_due()? > now {
            return None;
        }
        self.timed.pop().map(|Reverse((due, _, turn))| (due, turn))
    }

    /// Takes the turns that are ready now; turns added meanwhile belong to the next round.
    pub(crate) fn round(&mut self) -> VecDeque<Turn> {
        std::mem::take(&mut self.ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_ordered_by_instant_then_insertion() {
        let mut schedule = TurnQueue::default();
        schedule.at(20, (1, 0));
        schedule.at(10, (2, 0));
        schedule.at(20, (0, 0));
        assert_eq!(schedule.next_due(), Some(10));
        assert_eq!(schedule.due(9), None);
        assert_eq!(schedule.due(25), Some((10, (2, 0))));
        assert_eq!(schedule.due(25), Some((20, (1, 0))));
        assert_eq!(schedule.due(25), Some((20, (0, 0))));
        assert_eq!(schedule.due(25), None);
    }

    #[test]
    fn turns_added_during_a_round_belong_to_the_next() {
        let mut schedule = TurnQueue::default();
        schedule.soon((0, 0));
        schedule.soon((1, 0));
        assert!(schedule.is_ready());
        let round = schedule.round();
        schedule.soon((0, 0));
        assert_eq!(round, [(0, 0), (1, 0)]);
        assert_eq!(schedule.round(), [(0, 0)]);
        assert!(!schedule.is_ready());
    }
}
