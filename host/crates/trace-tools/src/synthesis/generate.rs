//! Generation of a trace from a model, as rows of the flavor `mooncake`.

use serde::Serialize;
use serde_json::Number;
use veeksha_stats::{Draws, RandomStream};

use super::error::SynthesisError;
use super::model::TraceModel;
use super::random_order::RandomOrder;

/// Parameters of a generated trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synthesis {
    /// Equal seeds give equal traces.
    pub seed: u64,
    /// Number of sessions. The model's own number reproduces its hit rate; more sessions share more
    /// of the same tree, see `root_multiplier`.
    pub sessions: u64,
    /// Factor for the length of common prefixes; above 0.
    pub prefix_multiplier: f64,
    /// Number of independent trees, each with its share of the sessions; at least 1. With `n` times
    /// the sessions, `n` trees keep the hit rate.
    pub root_multiplier: u32,
    /// Factor for the length of the unshared part of prompts; above 0.
    pub prompt_multiplier: f64,
    /// Factor for the length of answers; above 0.
    pub output_multiplier: f64,
    /// Factor by which sessions arrive faster; above 0. Think times are unchanged.
    pub speedup: f64,
}

impl Default for Synthesis {
    fn default() -> Self {
        Synthesis {
            seed: 42,
            sessions: 1000,
            prefix_multiplier: 1.0,
            root_multiplier: 1,
            prompt_multiplier: 1.0,
            output_multiplier: 1.0,
            speedup: 1.0,
        }
    }
}

impl Synthesis {
    fn check(&self) -> Result<(), SynthesisError> {
        let multipliers = [
            ("prefix_multiplier", self.prefix_multiplier),
            ("prompt_multiplier", self.prompt_multiplier),
            ("output_multiplier", self.output_multiplier),
            ("speedup", self.speedup),
        ];
        for (name, value) in multipliers {
            if !(value > 0.0 && value <= 1e6) {
                return Err(SynthesisError::Option {
                    name,
                    value,
                    range: "above 0 and at most 1,000,000",
                });
            }
        }
        if self.root_multiplier == 0 {
            return Err(SynthesisError::Option {
                name: "root_multiplier",
                value: 0.0,
                range: "at least 1",
            });
        }
        if self.sessions > MOST_SESSIONS {
            return Err(SynthesisError::Option {
                name: "sessions",
                value: self.sessions as f64,
                range: "at most 2^28",
            });
        }
        Ok(())
    }
}

/// Keeps hash ids below 2^53.
const MOST_SESSIONS: u64 = 1 << 28;

/// Number of ids reserved for a session's own blocks.
const OWN_IDS: u64 = 1 << 24;

/// Maximum number of ids in all trees together.
const MOST_COMMON_IDS: u64 = 1 << 52;

/// Maximum number of tokens of a prompt.
const MOST_TOKENS: u64 = 1 << 24;

#[derive(Serialize)]
struct SynthesizedRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<Number>,
    input_length: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_length: Option<u64>,
    hash_ids: Vec<u64>,
}

impl TraceModel {
    /// Returns the rows of the generated trace, without line ends, session by session in order of
    /// arrival. The content of a session depends only on model, parameters and its number; its
    /// arrival also on the preceding ones.
    ///
    /// First prompts, first answers, numbers of turns and gaps are stratified, so that each value
    /// appears as often as in the fitted trace; the values of later turns are drawn.
    pub fn generate(&self, synthesis: &Synthesis) -> Result<GeneratedRows<'_>, SynthesisError> {
        self.check()?;
        synthesis.check()?;
        let Synthesis {
            seed,
            sessions,
            root_multiplier,
            ..
        } = *synthesis;
        let random_order = |name| RandomOrder::new(seed, name, sessions);
        let tree = ScaledTree::of(self, synthesis.prefix_multiplier);
        let common = tree.ids.checked_mul(root_multiplier.into());
        if common.is_none_or(|ids| ids > MOST_COMMON_IDS) {
            return Err(SynthesisError::Option {
                name: "root_multiplier",
                value: root_multiplier.into(),
                range: "small enough for at most 2^52 blocks in all trees",
            });
        }
        Ok(GeneratedRows {
            model: self,
            synthesis: *synthesis,
            tree,
            prompts: random_order("prompts"),
            rests: random_order("rests"),
            turns: random_order("turns"),
            outputs: random_order("outputs"),
            gaps: random_order("gaps"),
            index: 0,
            at: 0.0,
            rows: Vec::new().into_iter(),
        })
    }
}

/// Iterator over the rows of a generated trace.
#[derive(Clone, Debug)]
pub struct GeneratedRows<'a> {
    model: &'a TraceModel,
    synthesis: Synthesis,
    tree: ScaledTree,
    prompts: RandomOrder,
    rests: RandomOrder,
    turns: RandomOrder,
    outputs: RandomOrder,
    gaps: RandomOrder,
    index: u64,
    /// Arrival in nanoseconds.
    at: f64,
    rows: std::vec::IntoIter<String>,
}

impl Iterator for GeneratedRows<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            if let Some(row) = self.rows.next() {
                return Some(row);
            }
            if self.index == self.synthesis.sessions {
                return None;
            }
            if self.index > 0 {
                let gap = self.model.gaps.at(self.gaps.position(self.index));
                self.at += gap / self.synthesis.speedup;
            }
            self.rows = self.session(self.index).into_iter();
            self.index += 1;
        }
    }
}

impl GeneratedRows<'_> {
    fn session(&self, index: u64) -> Vec<String> {
        let model = self.model;
        let mut draws = RandomStream::new(self.synthesis.seed, index, "later turns").draws();
        let turns = (model.turns.at(self.turns.position(index)).round() as u64).max(1);
        let recorded = !model.gaps.is_empty();
        let mut own = OwnIds {
            next: self.tree.ids * u64::from(self.synthesis.root_multiplier) + index * OWN_IDS,
        };
        let mut prompt = SynthesizedPrompt::default();
        let mut rows = Vec::new();
        for turn in 0..turns {
            if turn == 0 {
                let rest = model.rests.at(self.rests.position(index));
                let rank = self.prompts.rank(index);
                prompt = self.begin(self.prompts.position(index), rank, rest, &mut own);
            } else if draws.unit() < model.restarts {
                let (position, rank) = (draws.unit(), u64::from(draws.next_u32()));
                let rest = model.rests.at(draws.unit());
                prompt = self.begin(position, rank, rest, &mut own);
            } else {
                let growth = model.growth.at(draws.unit()) * self.synthesis.prompt_multiplier;
                let tokens = prompt.tokens.saturating_add(growth.round() as u64);
                prompt.grow(tokens, model.block_size, &mut own);
            }
            let output = self.output(turn, index, &mut draws);
            let wait = (turn > 0).then(|| model.waits.at(draws.unit()));
            let row = SynthesizedRow {
                timestamp: (turn == 0 && recorded).then(|| milliseconds(self.at)),
                session_id: (turns > 1).then(|| index.to_string()),
                delay: wait.map(milliseconds),
                input_length: prompt.tokens,
                output_length: output,
                hash_ids: prompt.ids.clone(),
            };
            // A row of numbers always has a JSON form.
            rows.push(serde_json::to_string(&row).unwrap_or_default());
        }
        rows
    }

    /// Starts a prompt that continues no other one. `position` selects its common prefix, `rank`
    /// its tree.
    fn begin(&self, position: f64, rank: u64, rest: f64, own: &mut OwnIds) -> SynthesizedPrompt {
        let size = u64::from(self.model.block_size);
        let node = self.tree.node(position);
        let common = self.tree.ends[node];
        // The rest is stored with a block's length added to it, because it may be negative.
        let rest = rest - size as f64;
        let rest = if rest > 0.0 {
            rest * self.synthesis.prompt_multiplier
        } else {
            rest
        };
        let tokens = (common as f64 + rest).round().max(1.0) as u64;
        let tree = rank % u64::from(self.synthesis.root_multiplier);
        let mut prompt = SynthesizedPrompt::default();
        self.tree
            .ids_of(node, tokens.min(common), size, tree * self.tree.ids, &mut prompt);
        prompt.grow(tokens, self.model.block_size, own);
        prompt
    }

    fn output(&self, turn: u64, index: u64, draws: &mut Draws) -> Option<u64> {
        let position = if turn == 0 {
            self.outputs.position(index)
        } else {
            draws.unit()
        };
        let outputs = &self.model.outputs;
        let tokens = outputs.at(position) * self.synthesis.output_multiplier;
        (!outputs.is_empty()).then_some(tokens.round() as u64)
    }
}

/// The tree of common prefixes with scaled lengths.
#[derive(Clone, Debug)]
struct ScaledTree {
    parents: Vec<u32>,
    /// Tokens from the beginning of a prompt to the end of each node.
    ends: Vec<u64>,
    /// Id of each node's first block, and the number of that block in the prompt.
    first: Vec<(u64, u64)>,
    /// Number of ids.
    ids: u64,
    /// Prompts up to and including each node.
    up_to: Vec<u64>,
}

impl ScaledTree {
    fn of(model: &TraceModel, multiplier: f64) -> Self {
        let size = u64::from(model.block_size);
        let tree = &model.tree;
        let mut scaled_tree = ScaledTree {
            parents: Vec::new(),
            ends: Vec::new(),
            first: Vec::new(),
            ids: 0,
            up_to: Vec::new(),
        };
        let mut prompts = 0;
        for (node, depth) in tree.0.iter().zip(tree.depths()) {
            let parent = scaled_tree.ends.get(node.parent as usize).copied().unwrap_or(0);
            // Whole blocks stay whole blocks, so that prefixes stay common to the last token.
            let scaled = depth as f64 * multiplier;
            let end = if depth % size == 0 {
                (scaled / size as f64).round() as u64 * size
            } else {
                scaled.round() as u64
            };
            let end = end.min(MOST_TOKENS).max(parent);
            // A block belongs to the node that it ends in.
            let first = parent / size;
            scaled_tree.first.push((scaled_tree.ids, first));
            scaled_tree.ids += end.div_ceil(size) - first;
            scaled_tree.parents.push(node.parent);
            scaled_tree.ends.push(end);
            prompts += node.prompts;
            scaled_tree.up_to.push(prompts);
        }
        scaled_tree
    }

    /// Returns the node at which the common prefix of the prompt at a position (`0.0..1.0`) of all
    /// prompts ends.
    fn node(&self, position: f64) -> usize {
        let all = self.up_to.last().copied().unwrap_or(0);
        let number = (position * all as f64) as u64;
        let node = self.up_to.partition_point(|up_to| *up_to <= number);
        node.min(self.up_to.len().saturating_sub(1))
    }

    /// Returns the blocks of the first `tokens` tokens on the path to a node.
    fn ids_of(&self, node: usize, tokens: u64, size: u64, from: u64, prompt: &mut SynthesizedPrompt) {
        let mut line = vec![node];
        while let Some(&last) = line.last()
            && last != 0
        {
            line.push(self.parents[last] as usize);
        }
        let mut line = line.into_iter().rev().peekable();
        let mut at = 0;
        while at < tokens {
            let end = tokens.min(at + size);
            // The node that contains the block's last token.
            while line.peek().is_some_and(|node| self.ends[*node] < end) {
                line.next();
            }
            let Some(node) = line.peek() else { break };
            let (id, first) = self.first[*node];
            prompt.ids.push(from + id + (at / size - first));
            at = end;
        }
        prompt.tokens = at;
    }
}

#[derive(Clone, Debug, Default)]
struct SynthesizedPrompt {
    tokens: u64,
    ids: Vec<u64>,
}

impl SynthesizedPrompt {
    /// Extends the prompt with the session's own blocks. A partial block becomes another one when
    /// it is extended.
    fn grow(&mut self, tokens: u64, size: u32, own: &mut OwnIds) {
        let size = u64::from(size);
        let tokens = tokens.min(MOST_TOKENS);
        if tokens <= self.tokens {
            return;
        }
        self.ids.truncate((self.tokens / size) as usize);
        while (self.ids.len() as u64) < tokens.div_ceil(size) {
            self.ids.push(own.take());
        }
        self.tokens = tokens;
    }
}

/// Ids that no other session has.
struct OwnIds {
    next: u64,
}

impl OwnIds {
    fn take(&mut self) -> u64 {
        let id = self.next;
        self.next += 1;
        id
    }
}

/// Converts nanoseconds to milliseconds, rounded to a microsecond; an integer if exact.
fn milliseconds(nanos: f64) -> Number {
    let micros = (nanos / 1000.0).round().max(0.0) as u64;
    match micros % 1000 {
        0 => (micros / 1000).into(),
        _ => Number::from_f64(micros as f64 / 1000.0).unwrap_or_else(|| 0.into()),
    }
}
