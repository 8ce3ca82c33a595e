//! Blocks that always come together are one piece of text.
//!
//! The prompts of a conversation are thousands of blocks long and differ from one another at their
//! ends. Where no prompt of the conversation begins, ends or forks between two blocks, they cannot
//! be told from one block of twice the size; so a prompt becomes as many segments as there are
//! places where prompts differ, not as many as it has blocks.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// No block: an id of 0 means nothing about its content.
pub(crate) const UNKNOWN: u64 = 0;

/// The prompts of one conversation or subagent: first all are added, then all are cut, in the same
/// order.
#[derive(Debug, Default)]
pub(crate) struct Runs<'a> {
    blocks: HashMap<u64, Block>,
    last: &'a [u64],
    starts: Vec<usize>,
}

/// The neighbors of a block, wherever it was named.
#[derive(Debug)]
struct Block {
    before: u64,
    after: u64,
    /// True if another block, or none, precedes it elsewhere.
    begins: bool,
    /// True if another block, or none, follows it elsewhere.
    ends: bool,
}

impl<'a> Runs<'a> {
    /// Adds a prompt.
    pub(crate) fn add(&mut self, ids: &'a [u64]) {
        // What it has in common with the prompt before it was added then, but for what follows
        // the last common block.
        let known = common(self.last, ids);
        for at in known.saturating_sub(1)..ids.len() {
            if ids[at] == UNKNOWN {
                continue;
            }
            let before = at.checked_sub(1).map_or(UNKNOWN, |at| ids[at]);
            let after = ids.get(at + 1).copied().unwrap_or(UNKNOWN);
            match self.blocks.entry(ids[at]) {
                Entry::Vacant(entry) => {
                    entry.insert(Block {
                        before,
                        after,
                        begins: before == UNKNOWN,
                        ends: after == UNKNOWN,
                    });
                }
                Entry::Occupied(entry) => {
                    let block = entry.into_mut();
                    block.begins |= before != block.before;
                    block.ends |= after != block.after;
                }
            }
        }
        self.last = ids;
    }

    /// Begins to cut, now that all prompts were added.
    pub(crate) fn rewind(&mut self) {
        self.last = &[];
        self.starts.clear();
    }

    /// Where the runs of a prompt begin, by the numbers of their first blocks.
    pub(crate) fn cut(&mut self, ids: &'a [u64]) -> &[usize] {
        let known = common(self.last, ids);
        self.starts
            .truncate(self.starts.partition_point(|start| *start < known));
        for at in known..ids.len() {
            if at == 0 || self.parts(ids[at - 1], ids[at]) {
                self.starts.push(at);
            }
        }
        self.last = ids;
        &self.starts
    }

    /// True if something separates two consecutive blocks.
    fn parts(&self, before: u64, after: u64) -> bool {
        let ends = self.blocks.get(&before).is_none_or(|block| block.ends);
        let begins = self.blocks.get(&after).is_none_or(|block| block.begins);
        ends || begins
    }
}

fn common(one: &[u64], two: &[u64]) -> usize {
    one.iter().zip(two).take_while(|(one, two)| one == two).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::draws;

    fn cut(prompts: &[&[u64]]) -> Vec<Vec<usize>> {
        let mut runs = Runs::default();
        for prompt in prompts {
            runs.add(prompt);
        }
        runs.rewind();
        prompts.iter().map(|prompt| runs.cut(prompt).to_vec()).collect()
    }

    #[test]
    fn a_conversation_that_grows_is_cut_where_it_grew() {
        let grown: [&[u64]; 3] = [&[1, 2, 3], &[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5, 6]];
        assert_eq!(cut(&grown), [vec![0], vec![0, 3], vec![0, 3, 5]]);
    }

    #[test]
    fn a_fork_parts_what_was_together() {
        let fork: [&[u64]; 2] = [&[1, 2, 3, 4], &[1, 2, 7, 8]];
        assert_eq!(cut(&fork), [[0, 2], [0, 2]]);
        let shorter: [&[u64]; 2] = [&[1, 2, 3, 4], &[1, 2]];
        assert_eq!(cut(&shorter), [vec![0, 2], vec![0]]);
        let behind: [&[u64]; 2] = [&[1, 2, 3], &[9, 2, 3]];
        assert_eq!(cut(&behind), [[0, 1], [0, 1]]);
    }

    #[test]
    fn unknown_blocks_are_alone() {
        let unknown: [&[u64]; 2] = [&[1, 2, 0, 0, 3, 4], &[5, 0, 3, 4]];
        assert_eq!(cut(&unknown), [vec![0, 2, 3, 4], vec![0, 1, 2]]);
    }

    /// Ids that are not chained, as some captures have them: what repeats is cut so that equal runs
    /// are equal ids.
    #[test]
    fn ids_that_repeat_are_cut_too() {
        let repeats: [&[u64]; 2] = [&[5, 5, 5], &[1, 2, 1, 2]];
        assert_eq!(cut(&repeats), [vec![0, 1, 2], vec![0, 2]]);
    }

    /// Over many small conversations: two runs with the same first block have the same blocks, up
    /// to the end of a prompt, and runs of other prompts never lie inside of one another.
    #[test]
    fn a_run_is_known_by_its_first_block() {
        let draw = draws();
        for _ in 0..500 {
            let prompts: Vec<Vec<u64>> = (0..6)
                .map(|_| (0..draw(8)).map(|_| draw(5) as u64).collect())
                .collect();
            let views: Vec<&[u64]> = prompts.iter().map(Vec::as_slice).collect();
            let mut runs: HashMap<u64, &[u64]> = HashMap::new();
            let mut inside: HashMap<u64, u64> = HashMap::new();
            for (ids, starts) in views.iter().zip(cut(&views)) {
                assert_eq!(starts.first(), (!ids.is_empty()).then_some(&0));
                let ends = starts.iter().skip(1).copied().chain([ids.len()]);
                for (start, end) in starts.iter().copied().zip(ends) {
                    let run = &ids[start..end];
                    assert!(run[0] != UNKNOWN || run.len() == 1);
                    if run[0] != UNKNOWN {
                        assert_eq!(*runs.entry(run[0]).or_insert(run), run, "{prompts:?}");
                        for id in run {
                            assert_eq!(*inside.entry(*id).or_insert(run[0]), run[0], "{prompts:?}");
                        }
                    }
                }
            }
        }
    }
}
