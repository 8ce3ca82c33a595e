//! Which connection is to write next: those that are due at once, in turn, and those that wait for their instant.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use veeksha_model::Nanos;

/// A connection's place and its generation: a place is used again when a connection has ended.
pub(crate) type Turn = (usize, u64);

/// Turns to come.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    ready: VecDeque<Turn>,
    timed: BinaryHeap<Reverse<(Nanos, u64, Turn)>>,
    /// Orders turns of the same instant as they were added.
    added: u64,
}

impl Schedule {
    /// A turn as soon as those that are ready already have had theirs.
    pub(crate) fn soon(&mut self, turn: Turn) {
        self.ready.push_back(turn);
    }

    /// A turn at an instant.
    pub(crate) fn at(&mut self, due: Nanos, turn: Turn) {
        self.timed.push(Reverse((due, self.added, turn)));
        self.added += 1;
    }

    /// Whether somebody need not wait.
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next instant that somebody waits for.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.timed.peek().map(|Reverse((due, _, _))| *due)
    }

    /// The next turn whose instant has come, with that instant.
    pub(crate) fn due(&mut self, now: Nanos) -> Option<(Nanos, Turn)> {
        if self.next_due()? > now {
            return None;
        }
        self.timed.pop().map(|Reverse((due, _, turn))| (due, turn))
    }

    /// Those that are ready now; who asks for another turn meanwhile is in the next round.
    pub(crate) fn round(&mut self) -> VecDeque<Turn> {
        std::mem::take(&mut self.ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_in_the_order_of_their_instants_and_then_as_added() {
        let mut schedule = Schedule::default();
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
    fn a_round_is_over_before_the_next_begins() {
        let mut schedule = Schedule::default();
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
