//! The slots of closed-loop traffic: how many sessions may be active, and since when a slot is
//! free.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use veeksha_model::Nanos;

use crate::config::Shard;

/// The slots of one shard. A slot opens when the ramp reaches it and again when its session is
/// over.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    target: u32,
    ramp: Nanos,
    shard: Shard,
    /// Places of this shard that the ramp has opened.
    opened: u64,
    /// The instants since which each free slot is free.
    free: BinaryHeap<Reverse<Nanos>>,
}

impl Slots {
    pub(crate) fn new(target: u32, ramp: Nanos, shard: Shard) -> Self {
        let mut slots = Slots {
            target,
            ramp,
            shard,
            opened: 0,
            free: BinaryHeap::new(),
        };
        // Without a ramp everything is open from the start, and look-ahead should know it before
        // the first tick.
        slots.advance(0);
        slots
    }

    /// Returns the instant at which the ramp opens this shard's next slot; `None` when all are
    /// open.
    ///
    /// The whole target is `floor(target * t / ramp)`, and this shard's part of `n` slots is
    /// `floor((n + count - 1 - index) / count)`. So the shard's slot `k` (from 0) opens when the
    /// whole reaches `k * count + index + 1`, and the whole reaches `n` at `ceil(n * ramp /
    /// target)`.
    pub(crate) fn next_opening(&self) -> Option<Nanos> {
        let whole =
            u128::from(self.opened) * u128::from(self.shard.parts()) + u128::from(self.shard.index) + 1;
        let target = u128::from(self.target);
        (whole <= target).then(|| (whole * u128::from(self.ramp)).div_ceil(target) as Nanos)
    }

    /// Opens what the ramp has reached by now.
    pub(crate) fn advance(&mut self, now: Nanos) {
        while let Some(at) = self.next_opening().filter(|at| *at <= now) {
            self.opened += 1;
            self.free.push(Reverse(at));
        }
    }

    /// Takes the slot that has been free for longest.
    pub(crate) fn take(&mut self) -> Option<Nanos> {
        self.free.pop().map(|Reverse(at)| at)
    }

    /// A session is over.
    pub(crate) fn release(&mut self, at: Nanos) {
        self.free.push(Reverse(at));
    }

    /// Returns the number of free slots.
    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ramp_opens_slots_one_by_one() {
        let mut slots = Slots::new(4, 10, Shard::WHOLE);
        // floor(4 t / 10) reaches 1, 2, 3, 4 at t = 2.5, 5, 7.5, 10; the first whole nanoseconds
        // are 3, 5, 8, 10.
        let mut openings = Vec::new();
        while let Some(at) = slots.next_opening() {
            slots.advance(at - 1);
            assert_eq!(slots.free(), openings.len());
            slots.advance(at);
            openings.push(at);
        }
        assert_eq!(openings, [3, 5, 8, 10]);
    }

    #[test]
    fn without_ramp_all_slots_open_at_once() {
        let mut slots = Slots::new(3, 0, Shard::WHOLE);
        slots.advance(0);
        assert_eq!((slots.free(), slots.next_opening()), (3, None));
    }

    #[test]
    fn shards_add_up_to_target_at_every_instant() {
        for (target, ramp) in [(7u32, 100u64), (1, 9), (10, 0), (3, 1000)] {
            for count in 1..=5 {
                let mut shards: Vec<Slots> = (0..count)
                    .map(|index| Slots::new(target, ramp, Shard { index, count }))
                    .collect();
                for now in 0..=ramp + 1 {
                    let whole = if now >= ramp {
                        target
                    } else {
                        (u64::from(target) * now / ramp) as u32
                    };
                    let mut sum = 0;
                    for (index, slots) in shards.iter_mut().enumerate() {
                        slots.advance(now);
                        assert_eq!(slots.free() as u32, (whole + count - 1 - index as u32) / count);
                        sum += slots.free() as u32;
                    }
                    assert_eq!(sum, whole, "{count} shards of {target} at {now}");
                }
            }
        }
    }
}
