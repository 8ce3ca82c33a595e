//! Equal keys without the keys: rows stand for the hash of their key.

use crate::index::NONE;

/// A table of rows with different hashes. It holds 4 bytes for a slot; the hashes stay where they are.
pub(crate) struct Interner {
    slots: Vec<u32>,
    taken: usize,
}

impl Interner {
    /// Room for so many before it grows.
    pub(crate) fn with_capacity(keys: usize) -> Self {
        let slots = (keys + keys / 3 + 2).max(16);
        Interner {
            slots: vec![NONE; slots],
            taken: 0,
        }
    }

    /// The row that was inserted with this row's hash; the row itself if it is the first.
    pub(crate) fn insert(&mut self, row: u32, hashes: &[u128]) -> u32 {
        if (self.taken + 1) * 4 > self.slots.len() * 3 {
            self.grow(hashes);
        }
        let slot = self.slot(hashes[row as usize], hashes);
        if self.slots[slot] == NONE {
            self.slots[slot] = row;
            self.taken += 1;
        }
        self.slots[slot]
    }

    /// The row that was inserted with this hash.
    pub(crate) fn get(&self, hash: u128, hashes: &[u128]) -> Option<u32> {
        Some(self.slots[self.slot(hash, hashes)]).filter(|row| *row != NONE)
    }

    fn slot(&self, hash: u128, hashes: &[u128]) -> usize {
        // Any number of slots: the hash as a fraction of all hashes, times the slots.
        let mut slot = ((u128::from(hash as u64) * self.slots.len() as u128) >> 64) as usize;
        loop {
            match self.slots[slot] {
                NONE => return slot,
                row if hashes[row as usize] == hash => return slot,
                _ if slot + 1 == self.slots.len() => slot = 0,
                _ => slot += 1,
            }
        }
    }

    fn grow(&mut self, hashes: &[u128]) {
        let larger = vec![NONE; self.slots.len() + self.slots.len() / 2];
        let rows = std::mem::replace(&mut self.slots, larger);
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
        for row in 0..10_000 {
            assert_eq!(interner.insert(row, &hashes), row % 777);
        }
        assert_eq!(interner.get(5 << 54, &hashes), Some(5));
        assert_eq!(interner.get(5, &hashes), None);
    }
}
