//! Deduplication of keys by their hashes: a row represents each hash.

use crate::index::row_index::NONE;

/// A table of rows with distinct hashes. It holds 4 bytes per slot; the hashes stay where they are.
pub(crate) struct Interner {
    slots: Vec<u32>,
    taken: usize,
}

impl Interner {
    /// Creates a table with capacity for this number of keys.
    pub(crate) fn with_capacity(keys: usize) -> Self {
        let slots = (keys + keys / 3 + 2).max(16);
        Interner {
            slots: vec![NONE; slots],
            taken: 0,
        }
    }

    /// Returns the row inserted first with this row's hash, which may be the row itself.
    pub(crate) fn insert(&mut self, row: u32, hashes: &[u128]) -> u32 {
        if (self.taken + 1) * 4 > self.slots.len() * 3 {
            self.resize(self.slots.len() * 2, hashes);
        }
        let slot = self.slot(hashes[row as usize], hashes);
        if self.slots[slot] == NONE {
            self.slots[slot] = row;
            self.taken += 1;
        }
        self.slots[slot]
    }

    /// Returns the number of distinct keys.
    pub(crate) fn len(&self) -> usize {
        self.taken
    }

    /// Grows the table to hold this number of keys.
    pub(crate) fn reserve(&mut self, keys: usize, hashes: &[u128]) {
        let slots = keys + keys / 3 + 2;
        if slots > self.slots.len() {
            self.resize(slots, hashes);
        }
    }

    /// Prefetches what these rows will need into the processor's cache. The loads do not wait for
    /// one another, unlike those of insertions one by one; in a table larger than the cache that
    /// halves the time.
    pub(crate) fn touch(&self, rows: std::ops::Range<u32>, hashes: &[u128]) {
        let touched = rows.fold(0, |touched, row| {
            let first = self.slots[self.home(hashes[row as usize])];
            touched ^ hashes.get(first as usize).map_or(0, |hash| *hash as u64)
        });
        std::hint::black_box(touched);
    }

    /// Returns the row that was inserted with this hash.
    pub(crate) fn get(&self, hash: u128, hashes: &[u128]) -> Option<u32> {
        Some(self.slots[self.slot(hash, hashes)]).filter(|row| *row != NONE)
    }

    fn slot(&self, hash: u128, hashes: &[u128]) -> usize {
        let mut slot = self.home(hash);
        loop {
            match self.slots[slot] {
                NONE => return slot,
                row if hashes[row as usize] == hash => return slot,
                _ if slot + 1 == self.slots.len() => slot = 0,
                _ => slot += 1,
            }
        }
    }

    /// Returns the first slot to probe for a hash, for any number of slots: the hash as a fraction
    /// of all hashes, times the slots.
    fn home(&self, hash: u128) -> usize {
        ((u128::from(hash as u64) * self.slots.len() as u128) >> 64) as usize
    }

    fn resize(&mut self, slots: usize, hashes: &[u128]) {
        let rows = std::mem::replace(&mut self.slots, vec![NONE; slots]);
        for row in rows.into_iter().filter(|row| *row != NONE) {
            let slot = self.slot(hashes[row as usize], hashes);
            self.slots[slot] = row;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_hashes_give_the_first_row() {
        let hashes: Vec<u128> = (0..10_000u128).map(|i| (i % 777) << 54).collect();
        let mut interner = Interner::with_capacity(0);
        interner.touch(0..32, &hashes);
        for row in 0..10_000 {
            assert_eq!(interner.insert(row, &hashes), row % 777);
        }
        assert_eq!(interner.len(), 777);
        interner.reserve(5000, &hashes);
        assert_eq!(interner.get(5 << 54, &hashes), Some(5));
        assert_eq!(interner.get(5, &hashes), None);
    }
}
