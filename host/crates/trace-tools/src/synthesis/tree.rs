//! Tree of common prefixes with counts.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::blocks::PromptBlock;

/// Common prefixes of prompts: a node for each run of blocks that at least two prompts begin with,
/// up to where they diverge. Nodes are in depth-first order, the root first, so that neighbours
/// share the most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct PrefixTree(pub(crate) Vec<PrefixNode>);

/// A run of common text: (parent, tokens, prompts).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32, u64)", into = "(u32, u32, u64)")]
pub(crate) struct PrefixNode {
    /// Index of the node that it continues; the root's is its own.
    pub(crate) parent: u32,
    /// Tokens of this node alone.
    pub(crate) tokens: u32,
    /// Prompts whose common prefix ends here.
    pub(crate) prompts: u64,
}

impl From<(u32, u32, u64)> for PrefixNode {
    fn from((parent, tokens, prompts): (u32, u32, u64)) -> Self {
        PrefixNode {
            parent,
            tokens,
            prompts,
        }
    }
}

impl From<PrefixNode> for (u32, u32, u64) {
    fn from(node: PrefixNode) -> Self {
        (node.parent, node.tokens, node.prompts)
    }
}

impl PrefixTree {
    /// Returns the number of prompts in the tree.
    pub(crate) fn prompts(&self) -> u64 {
        self.0.iter().map(|node| node.prompts).sum()
    }

    /// Returns the tokens from the beginning of a prompt to the end of each node.
    pub(crate) fn depths(&self) -> Vec<u64> {
        let mut depths: Vec<u64> = Vec::with_capacity(self.0.len());
        for node in &self.0 {
            let before = depths.get(node.parent as usize).copied().unwrap_or(0);
            depths.push(before + u64::from(node.tokens));
        }
        depths
    }

    /// Returns true if the root comes first and every node comes after its parent.
    pub(crate) fn is_sound(&self) -> bool {
        let behind = |(place, node): (usize, &PrefixNode)| place == 0 || (node.parent as usize) < place;
        let root = self.0.first();
        root.is_some_and(|root| root.tokens == 0 && root.parent == 0)
            && self.0.iter().enumerate().all(behind)
            && self.prompts() > 0
    }
}

/// A tree under construction: a node for each distinct (prefix, block).
#[derive(Clone, Debug)]
pub(crate) struct TreeBuilder {
    children: HashMap<(u32, u64), u32>,
    nodes: Vec<BuilderNode>,
    /// For each prompt: the node of its last block, and its tokens.
    prompts: Vec<(u32, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct BuilderNode {
    parent: u32,
    tokens: u32,
    visits: u32,
}

impl TreeBuilder {
    pub(crate) fn new() -> Self {
        let root = BuilderNode {
            parent: 0,
            tokens: 0,
            visits: 0,
        };
        TreeBuilder {
            children: HashMap::new(),
            nodes: vec![root],
            prompts: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, prompt: &[PromptBlock]) {
        let mut node = 0u32;
        for block in prompt {
            let next = self.nodes.len() as u32;
            node = *self.children.entry((node, block.key)).or_insert_with(|| {
                self.nodes.push(BuilderNode {
                    parent: node,
                    tokens: 0,
                    visits: 0,
                });
                next
            });
            let seen = &mut self.nodes[node as usize];
            seen.visits += 1;
            seen.tokens = seen.tokens.max(block.tokens);
        }
        let tokens = prompt.iter().map(|block| u64::from(block.tokens)).sum();
        self.prompts.push((node, tokens));
    }

    /// Returns the common prefixes of all prompts, and for each prompt its tokens beyond its common
    /// prefix (negative if it ends within).
    pub(crate) fn finish(self) -> (PrefixTree, Vec<i64>) {
        let nodes = &self.nodes;
        let shared = |node: u32| node == 0 || nodes[node as usize].visits > 1;
        let mut ends: HashMap<u32, u64> = HashMap::new();
        let mut depths = vec![0u64; nodes.len()];
        for place in 1..nodes.len() {
            depths[place] = depths[nodes[place].parent as usize] + u64::from(nodes[place].tokens);
        }
        let mut rests = Vec::with_capacity(self.prompts.len());
        for (last, tokens) in &self.prompts {
            let mut node = *last;
            while !shared(node) {
                node = nodes[node as usize].parent;
            }
            *ends.entry(node).or_default() += 1;
            rests.push(*tokens as i64 - depths[node as usize] as i64);
        }
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for place in 1..nodes.len() as u32 {
            if shared(place) {
                children
                    .entry(nodes[place as usize].parent)
                    .or_default()
                    .push(place);
            }
        }
        // Depth first; a node that neither forks nor ends a prompt is merged with its successor.
        let mut tree: Vec<PrefixNode> = Vec::new();
        let mut open = vec![(0u32, 0u32)];
        while let Some((first, parent)) = open.pop() {
            let (mut node, mut tokens) = (first, nodes[first as usize].tokens);
            let only = |node: u32| match children.get(&node).map(Vec::as_slice) {
                Some([only]) if node != 0 && !ends.contains_key(&node) => Some(*only),
                _ => None,
            };
            while let Some(next) = only(node) {
                node = next;
                tokens += nodes[node as usize].tokens;
            }
            let place = tree.len() as u32;
            tree.push(PrefixNode {
                parent,
                tokens,
                prompts: ends.get(&node).copied().unwrap_or(0),
            });
            let behind = children.get(&node).into_iter().flatten().rev();
            open.extend(behind.map(|child| (*child, place)));
        }
        (PrefixTree(tree), rests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grow(prompts: &[(&[u64], u32)]) -> (Vec<(u32, u32, u64)>, Vec<i64>) {
        let mut growing = TreeBuilder::new();
        for (keys, last) in prompts {
            let block = |(place, key): (usize, &u64)| PromptBlock {
                key: *key,
                tokens: if place + 1 == keys.len() { *last } else { 64 },
            };
            growing.add(&keys.iter().enumerate().map(block).collect::<Vec<_>>());
        }
        let (tree, rests) = growing.finish();
        assert!(tree.is_sound());
        (tree.0.into_iter().map(Into::into).collect(), rests)
    }

    #[test]
    fn common_prefixes_become_nodes() {
        // 1 2 is common to three, 1 2 3 to two; 9 occurs once.
        let (tree, rests) = grow(&[
            (&[1, 2, 3, 4], 64),
            (&[1, 2, 3], 64),
            (&[1, 2, 8, 7], 10),
            (&[9], 30),
        ]);
        assert_eq!(tree, [(0, 0, 1), (0, 128, 1), (1, 64, 2)]);
        assert_eq!(rests, [64, 0, 74, 30]);
    }

    #[test]
    fn tree_neighbours_share_the_most() {
        let (tree, _) = grow(&[
            (&[1, 2], 64),
            (&[5], 64),
            (&[1, 3], 64),
            (&[5], 64),
            (&[1, 2], 64),
            (&[1, 3], 64),
        ]);
        assert_eq!(tree, [(0, 0, 0), (0, 64, 0), (1, 64, 2), (1, 64, 2), (0, 64, 2)]);
    }

    #[test]
    fn partial_block_is_shared_for_its_length() {
        let (tree, rests) = grow(&[(&[1, 2], 20), (&[1, 2], 50)]);
        assert_eq!(tree, [(0, 0, 0), (0, 114, 2)]);
        assert_eq!(rests, [-30, 0]);
    }

    #[test]
    fn detects_tampered_tree() {
        let node = |parent, tokens, prompts| PrefixNode {
            parent,
            tokens,
            prompts,
        };
        assert!(PrefixTree(vec![node(0, 0, 1), node(0, 5, 1)]).is_sound());
        for invalid in [
            vec![],
            vec![node(0, 5, 1)],
            vec![node(0, 0, 0)],
            vec![node(0, 0, 1), node(1, 5, 1)],
            vec![node(0, 0, 1), node(2, 5, 1), node(0, 5, 1)],
        ] {
            assert!(!PrefixTree(invalid).is_sound());
        }
    }
}
