//! KV memory in blocks: private blocks of running sequences, and shared blocks of the prefix cache.

use std::collections::{HashMap, VecDeque};

/// A block identified by its chained hash.
#[derive(Clone, Copy, Debug)]
struct Cached {
    /// Number of running sequences that hold it.
    holders: u32,
    /// The time of its last release; distinguishes its entry in `idle` from older ones.
    stamp: u64,
}

/// The blocks held by a sequence.
#[derive(Clone, Debug, Default)]
pub(super) struct Holding {
    /// Cached blocks, in prompt order.
    pub(super) shared: Vec<u64>,
    /// Number of private blocks.
    pub(super) private: u64,
}

impl Holding {
    pub(super) fn blocks(&self) -> u64 {
        self.shared.len() as u64 + self.private
    }
}

/// The KV memory. Cached blocks without holders stay until their memory is needed, least recently
/// used first.
#[derive(Clone, Debug)]
pub(super) struct Kv {
    capacity: u64,
    private: u64,
    held: u64,
    cached: HashMap<u64, Cached>,
    idle: VecDeque<(u64, u64)>,
    next_stamp: u64,
}

impl Kv {
    pub(super) fn new(capacity: u64) -> Self {
        Kv {
            capacity,
            private: 0,
            held: 0,
            cached: HashMap::new(),
            idle: VecDeque::new(),
            next_stamp: 0,
        }
    }

    /// Returns the number of blocks held by running sequences; a shared one counts once.
    pub(super) fn used(&self) -> u64 {
        self.private + self.held
    }

    /// Returns the number of leading blocks that are cached.
    pub(super) fn leading_hits(&self, blocks: &[u64]) -> usize {
        blocks
            .iter()
            .take_while(|hash| self.cached.contains_key(hash))
            .count()
    }

    /// Takes the cached blocks `hits` and `fresh` new ones, or none at all.
    pub(super) fn acquire(&mut self, hits: &[u64], fresh: u64) -> Option<Holding> {
        let waking = hits
            .iter()
            .filter(|hash| self.cached.get(hash).is_some_and(|block| block.holders == 0));
        if self.used() + waking.count() as u64 + fresh > self.capacity {
            return None;
        }
        for hash in hits {
            self.hold(*hash);
        }
        self.private += fresh;
        self.make_room();
        Some(Holding {
            shared: hits.to_vec(),
            private: fresh,
        })
    }

    /// Adds a private block to a sequence; false if all memory is held.
    pub(super) fn grow(&mut self, holding: &mut Holding) -> bool {
        if self.used() >= self.capacity {
            return false;
        }
        self.private += 1;
        holding.private += 1;
        self.make_room();
        true
    }

    /// Adds a computed private block to the cache. If the cache already has a block with this
    /// content, the copy stays private.
    pub(super) fn publish(&mut self, hash: u64, holding: &mut Holding) {
        if holding.private == 0 || self.cached.contains_key(&hash) {
            return;
        }
        holding.private -= 1;
        self.private -= 1;
        self.cached.insert(hash, Cached { holders: 0, stamp: 0 });
        self.hold(hash);
        holding.shared.push(hash);
    }

    /// Releases all blocks. The end of a prompt is released first, so that it is evicted before its
    /// beginning, without which it could not be found.
    pub(super) fn release(&mut self, holding: Holding) {
        self.private -= holding.private;
        for hash in holding.shared.into_iter().rev() {
            let Some(block) = self.cached.get_mut(&hash) else {
                continue;
            };
            block.holders -= 1;
            if block.holders == 0 {
                self.held -= 1;
                self.next_stamp += 1;
                block.stamp = self.next_stamp;
                self.idle.push_back((block.stamp, hash));
            }
        }
        // Outdated entries are skipped when encountered; too many of them are removed at once.
        let idle = self.cached.len() - self.held as usize;
        if self.idle.len() > 2 * idle + 64 {
            let cached = &self.cached;
            self.idle
                .retain(|(stamp, hash)| is_idle_at(cached, *stamp, *hash));
        }
    }

    fn hold(&mut self, hash: u64) {
        if let Some(block) = self.cached.get_mut(&hash) {
            if block.holders == 0 {
                self.held += 1;
            }
            block.holders += 1;
        }
    }

    fn make_room(&mut self) {
        while self.private + self.cached.len() as u64 > self.capacity {
            let Some((stamp, hash)) = self.idle.pop_front() else {
                return;
            };
            if is_idle_at(&self.cached, stamp, hash) {
                self.cached.remove(&hash);
            }
        }
    }
}

fn is_idle_at(cached: &HashMap<u64, Cached>, stamp: u64, hash: u64) -> bool {
    cached
        .get(&hash)
        .is_some_and(|block| block.holders == 0 && block.stamp == stamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes `blocks` as one sequence and releases them.
    fn run(kv: &mut Kv, blocks: &[u64]) -> usize {
        let hits = kv.leading_hits(blocks);
        let mut holding = kv.acquire(&blocks[..hits], (blocks.len() - hits) as u64).unwrap();
        for &hash in &blocks[hits..] {
            kv.publish(hash, &mut holding);
        }
        kv.release(holding);
        hits
    }

    #[test]
    fn evicts_the_least_recently_used_end_first() {
        let mut kv = Kv::new(4);
        assert_eq!(run(&mut kv, &[1, 2]), 0);
        assert_eq!(run(&mut kv, &[3, 4]), 0);
        assert_eq!(run(&mut kv, &[1, 2]), 2, "used again, so 3 and 4 are older now");
        assert_eq!(run(&mut kv, &[5]), 0);
        assert_eq!(kv.leading_hits(&[3, 4]), 1, "4 was evicted before 3");
        assert_eq!(kv.leading_hits(&[1, 2]), 2);
        assert_eq!(kv.used(), 0);
    }

    #[test]
    fn held_blocks_are_never_evicted() {
        let mut kv = Kv::new(3);
        let mut first = kv.acquire(&[], 2).unwrap();
        kv.publish(1, &mut first);
        kv.publish(2, &mut first);
        assert!(kv.acquire(&[], 2).is_none());
        let second = kv.acquire(&[1, 2], 1).unwrap();
        assert_eq!(kv.used(), 3, "shared blocks count once");
        assert!(!kv.grow(&mut first));
        kv.release(second);
        assert!(kv.grow(&mut first));
        kv.release(first);
        assert_eq!(kv.used(), 0);
        assert_eq!(kv.leading_hits(&[1, 2]), 2);
    }

    #[test]
    fn reacquired_blocks_count_as_used() {
        let mut kv = Kv::new(3);
        run(&mut kv, &[1, 2]);
        assert!(
            kv.acquire(&[1, 2], 2).is_none(),
            "two wake and two are new: four do not fit"
        );
        let holding = kv.acquire(&[1, 2], 1).unwrap();
        assert_eq!(holding.blocks(), 3);
    }

    #[test]
    fn stale_entries_do_not_accumulate() {
        let mut kv = Kv::new(8);
        for _ in 0..10_000 {
            run(&mut kv, &[1, 2, 3]);
        }
        assert!(kv.idle.len() <= 2 * 3 + 64 + 3);
    }
}
