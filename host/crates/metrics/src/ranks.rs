//! Order statistics of samples that are too large to sort.

use std::ops::Range;

/// Samples as integers in the order of the values, each with a multiplicity.
pub(crate) trait Keys {
    /// The number of significant bits of a key; at most 63.
    const BITS: u32;

    /// Returns an upper bound of the number of keys.
    fn len(&self) -> u64;

    /// Visits every key with its multiplicity. Repeated calls visit the same keys.
    fn each(&self, visit: impl FnMut(u64, u64));
}

/// The number of keys below which they are sorted, which is faster than several passes. (Small in
/// tests, to exercise the passes.)
const FEW: u64 = if cfg!(test) { 16 } else { 1 << 16 };

/// The number of bits that one pass decides: the counts of a pass then fit into a processor's L1
/// cache.
const DIGIT: u32 = 11;

/// Ranks whose keys share a prefix.
struct Branch {
    /// The shared prefix.
    prefix: u64,
    /// The number of samples with smaller keys.
    passed: u64,
    /// The number of samples with this prefix.
    samples: u64,
    /// The ranks.
    ranks: Range<usize>,
}

/// Returns the keys at these ranks, counted from 0 in ascending order. The ranks must ascend and be
/// smaller than the number of samples.
///
/// A radix selection: each pass over the samples decides the next bits of the keys at all ranks at
/// once, so no sample is copied or moved. It needs a few kilobytes per rank.
pub(crate) fn at_ranks<K: Keys>(keys: &K, ranks: &[u64]) -> Vec<u64> {
    debug_assert!(ranks.is_sorted());
    if keys.len() <= FEW {
        by_sorting(keys, ranks)
    } else {
        by_search(keys, ranks)
    }
}

fn by_sorting<K: Keys>(keys: &K, ranks: &[u64]) -> Vec<u64> {
    let mut all = Vec::new();
    keys.each(|key, weight| all.push((key, weight)));
    in_order(all, ranks.iter().copied())
}

fn in_order(mut keys: Vec<(u64, u64)>, ranks: impl Iterator<Item = u64>) -> Vec<u64> {
    keys.sort_unstable();
    let mut wanted = ranks.peekable();
    let mut found = Vec::new();
    let mut passed = 0;
    for (key, weight) in keys {
        passed += weight;
        while wanted.next_if(|rank| *rank < passed).is_some() {
            found.push(key);
        }
    }
    found
}

fn by_search<K: Keys>(keys: &K, ranks: &[u64]) -> Vec<u64> {
    let mut branches = vec![Branch {
        prefix: 0,
        passed: 0,
        samples: 0,
        ranks: 0..ranks.len(),
    }];
    let mut left = K::BITS;
    while left > 0 && !ranks.is_empty() {
        let digit = DIGIT.min(left);
        let counts = count::<K>(keys, &branches, left, digit);
        branches = branches
            .iter()
            .zip(counts.chunks_exact(1 << digit))
            .flat_map(|(branch, counts)| split(branch, counts, digit, ranks))
            .collect();
        left -= digit;
        if left > 0 && branches.iter().map(|branch| branch.samples).sum::<u64>() <= FEW {
            return among_few(keys, &branches, left, ranks);
        }
    }
    let mut found = vec![0; ranks.len()];
    for branch in branches {
        found[branch.ranks].fill(branch.prefix);
    }
    found
}

/// Finishes the search: the branches contain few keys, which are sorted.
fn among_few<K: Keys>(keys: &K, branches: &[Branch], left: u32, ranks: &[u64]) -> Vec<u64> {
    let tree = DigitTree::of(branches, (K::BITS - left) / DIGIT);
    let mut on_branch = vec![Vec::new(); branches.len()];
    keys.each(|key, weight| {
        if let Some(branch) = tree.find(key >> left) {
            on_branch[branch].push((key, weight));
        }
    });
    let mut found = Vec::with_capacity(ranks.len());
    for (branch, keys) in branches.iter().zip(on_branch) {
        let wanted = ranks[branch.ranks.clone()]
            .iter()
            .map(|rank| rank - branch.passed);
        found.extend(in_order(keys, wanted));
    }
    found
}

/// Counts, for each branch, the next digits among the keys with its prefix.
fn count<K: Keys>(keys: &K, branches: &[Branch], left: u32, digit: u32) -> Vec<u64> {
    let size = 1usize << digit;
    let mut counts = vec![0u64; branches.len() * size];
    let low = left - digit;
    let next = |key: u64| (key >> low) as usize & (size - 1);
    let settled = K::BITS - left;
    match settled / DIGIT {
        0 => keys.each(|key, weight| counts[next(key)] += weight),
        steps => {
            let tree = DigitTree::of(branches, steps);
            keys.each(|key, weight| {
                if let Some(branch) = tree.find(key >> left) {
                    counts[branch * size + next(key)] += weight;
                }
            });
        }
    }
    counts
}

/// A digit tree that maps a key to its branch.
struct DigitTree {
    /// By node and digit: the next node, from 1, or, at the last digit, the branch, from 1; 0 for
    /// digits that are not requested.
    next: Vec<u32>,
    /// The number of digits in a prefix.
    steps: u32,
}

impl DigitTree {
    fn of(branches: &[Branch], steps: u32) -> Self {
        let mut tree = DigitTree {
            next: vec![0; 1 << DIGIT],
            steps,
        };
        for (number, branch) in (1u32..).zip(branches) {
            let mut node = 0;
            for step in (1..steps).rev() {
                let place = node << DIGIT | digit_at(branch.prefix, step);
                if tree.next[place] == 0 {
                    tree.next[place] = (tree.next.len() >> DIGIT) as u32;
                    tree.next.resize(tree.next.len() + (1 << DIGIT), 0);
                }
                node = tree.next[place] as usize;
            }
            tree.next[node << DIGIT | digit_at(branch.prefix, 0)] = number;
        }
        tree
    }

    fn find(&self, prefix: u64) -> Option<usize> {
        let mut node = 0;
        for step in (0..self.steps).rev() {
            node = self.next[node << DIGIT | digit_at(prefix, step)] as usize;
            if node == 0 {
                return None;
            }
        }
        Some(node - 1)
    }
}

fn digit_at(prefix: u64, step: u32) -> usize {
    (prefix >> (step * DIGIT)) as usize & ((1 << DIGIT) - 1)
}

/// Splits a branch by the next digits of its ranks.
fn split(branch: &Branch, counts: &[u64], digit: u32, ranks: &[u64]) -> Vec<Branch> {
    let mut branches = Vec::new();
    let mut passed = branch.passed;
    let mut rank = branch.ranks.start;
    for (value, count) in counts.iter().enumerate() {
        let end = passed + count;
        let beyond = ranks[rank..branch.ranks.end].partition_point(|wanted| *wanted < end) + rank;
        if beyond > rank {
            branches.push(Branch {
                prefix: branch.prefix << digit | value as u64,
                passed,
                samples: *count,
                ranks: rank..beyond,
            });
            rank = beyond;
        }
        if rank == branch.ranks.end {
            break;
        }
        passed = end;
    }
    branches
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Plain<const BITS: u32>(Vec<(u64, u64)>);

    impl<const BITS: u32> Keys for Plain<BITS> {
        const BITS: u32 = BITS;

        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn each(&self, mut visit: impl FnMut(u64, u64)) {
            self.0.iter().for_each(|(key, weight)| visit(*key, *weight));
        }
    }

    fn sorted(samples: &[(u64, u64)]) -> Vec<u64> {
        let mut all: Vec<u64> = samples
            .iter()
            .flat_map(|(key, weight)| std::iter::repeat_n(*key, *weight as usize))
            .collect();
        all.sort_unstable();
        all
    }

    fn key(bits: u32) -> impl Strategy<Value = u64> {
        // Many equal keys, many with the same prefix, and some from the whole range.
        prop_oneof![0u64..5, (1u64 << 20)..(1 << 20) + 3000, 0u64..1 << bits]
    }

    proptest! {
        #[test]
        fn every_rank_of_32_bits(samples in prop::collection::vec((key(32), 1u64..4), 1..60)) {
            let all = sorted(&samples);
            let ranks: Vec<u64> = (0..all.len() as u64).collect();
            let keys = Plain::<32>(samples);
            prop_assert_eq!(&by_search(&keys, &ranks), &all);
            prop_assert_eq!(by_sorting(&keys, &ranks), all);
        }

        #[test]
        fn some_ranks_of_63_bits(samples in prop::collection::vec((key(63), 1u64..4), 1..60), step in 1usize..7) {
            let all = sorted(&samples);
            let ranks: Vec<u64> = (0..all.len() as u64).step_by(step).collect();
            let expected: Vec<u64> = ranks.iter().map(|rank| all[*rank as usize]).collect();
            let keys = Plain::<63>(samples);
            prop_assert_eq!(&by_search(&keys, &ranks), &expected);
            prop_assert_eq!(by_sorting(&keys, &ranks), expected);
        }
    }

    #[test]
    fn a_rank_may_be_asked_for_twice_or_not_at_all() {
        let keys = Plain::<32>(vec![(7, 1), (3, 2)]);
        for of in [by_search, by_sorting] {
            assert_eq!(of(&keys, &[1, 1, 2]), [3, 3, 7]);
            assert!(of(&keys, &[]).is_empty());
        }
    }
}
