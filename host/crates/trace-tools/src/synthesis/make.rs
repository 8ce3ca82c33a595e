//! A trace in the likeness of another, as rows of the flavor `mooncake`.

use serde::Serialize;
use serde_json::Number;
use veeksha_stats::{Draws, RandomStream};

use super::deal::Deal;
use super::error::CannotSynthesize;
use super::likeness::Likeness;

/// What kind of trace is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synthesis {
    /// Equal seeds give equal traces.
    pub seed: u64,
    /// Sessions to make. As many as the likeness was fitted to give its hit rate; more of them find more in common in the same
    /// tree, see `root_multiplier`.
    pub sessions: u64,
    /// Length of what prompts have in common, of what it was; above 0.
    pub prefix_multiplier: f64,
    /// How many trees there are, each with its share of the sessions; at least 1. With `n` times the sessions, `n` trees keep the
    /// hit rate.
    pub root_multiplier: u32,
    /// Length of what prompts have for themselves, of what it was; above 0.
    pub prompt_multiplier: f64,
    /// Length of answers, of what it was; above 0.
    pub output_multiplier: f64,
    /// How much faster sessions arrive; above 0. Think times stay as they are.
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
    fn check(&self) -> Result<(), CannotSynthesize> {
        let multipliers = [
            ("prefix_multiplier", self.prefix_multiplier),
            ("prompt_multiplier", self.prompt_multiplier),
            ("output_multiplier", self.output_multiplier),
            ("speedup", self.speedup),
        ];
        for (name, value) in multipliers {
            if !(value > 0.0 && value <= 1e6) {
                return Err(CannotSynthesize::Option {
                    name,
                    value,
                    range: "above 0 and at most 1,000,000",
                });
            }
        }
        if self.root_multiplier == 0 {
            return Err(CannotSynthesize::Option {
                name: "root_multiplier",
                value: 0.0,
                range: "at least 1",
            });
        }
        if self.sessions > MOST_SESSIONS {
            return Err(CannotSynthesize::Option {
                name: "sessions",
                value: self.sessions as f64,
                range: "at most 2^28",
            });
        }
        Ok(())
    }
}

/// Hash ids stay below 2^53 with this many sessions.
const MOST_SESSIONS: u64 = 1 << 28;

/// Ids that a session has for its own blocks.
const OWN_IDS: u64 = 1 << 24;

/// All trees together have no more ids than this.
const MOST_COMMON_IDS: u64 = 1 << 52;

/// A prompt has no more tokens than this.
const MOST_TOKENS: u64 = 1 << 24;

#[derive(Serialize)]
struct Row {
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

impl Likeness {
    /// The rows of a made trace, without line ends, session by session in the order of their arrival. All that a session is depends on
    /// (likeness, synthesis, its number) and on nothing else; when it arrives, on those before it too.
    ///
    /// First prompts, first answers, numbers of turns and gaps are dealt like cards, so that of `sessions` sessions each value comes
    /// as often as in the trace that the likeness was fitted to; what later turns have is drawn.
    pub fn make(&self, synthesis: &Synthesis) -> Result<Made<'_>, CannotSynthesize> {
        self.check()?;
        synthesis.check()?;
        let Synthesis {
            seed,
            sessions,
            root_multiplier,
            ..
        } = *synthesis;
        let deal = |name| Deal::new(seed, name, sessions);
        let trunk = Trunk::of(self, synthesis.prefix_multiplier);
        let common = trunk.ids.checked_mul(root_multiplier.into());
        if common.is_none_or(|ids| ids > MOST_COMMON_IDS) {
            return Err(CannotSynthesize::Option {
                name: "root_multiplier",
                value: root_multiplier.into(),
                range: "so small that all trees together have at most 2^52 blocks",
            });
        }
        Ok(Made {
            likeness: self,
            synthesis: *synthesis,
            trunk,
            prompts: deal("prompts"),
            rests: deal("rests"),
            turns: deal("turns"),
            outputs: deal("outputs"),
            gaps: deal("gaps"),
            index: 0,
            at: 0.0,
            rows: Vec::new().into_iter(),
        })
    }
}

/// The rows of a made trace.
#[derive(Clone, Debug)]
pub struct Made<'a> {
    likeness: &'a Likeness,
    synthesis: Synthesis,
    trunk: Trunk,
    prompts: Deal,
    rests: Deal,
    turns: Deal,
    outputs: Deal,
    gaps: Deal,
    index: u64,
    /// Nanoseconds.
    at: f64,
    rows: std::vec::IntoIter<String>,
}

impl Iterator for Made<'_> {
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
                let gap = self.likeness.gaps.at(self.gaps.position(self.index));
                self.at += gap / self.synthesis.speedup;
            }
            self.rows = self.session(self.index).into_iter();
            self.index += 1;
        }
    }
}

impl Made<'_> {
    fn session(&self, index: u64) -> Vec<String> {
        let likeness = self.likeness;
        let mut draws = RandomStream::new(self.synthesis.seed, index, "later turns").draws();
        let turns = (likeness.turns.at(self.turns.position(index)).round() as u64).max(1);
        let recorded = !likeness.gaps.is_empty();
        let mut own = OwnIds {
            next: self.trunk.ids * u64::from(self.synthesis.root_multiplier) + index * OWN_IDS,
        };
        let mut prompt = Prompt::default();
        let mut rows = Vec::new();
        for turn in 0..turns {
            if turn == 0 {
                let rest = likeness.rests.at(self.rests.position(index));
                let rank = self.prompts.rank(index);
                prompt = self.begin(self.prompts.position(index), rank, rest, &mut own);
            } else if draws.unit() < likeness.restarts {
                let (position, rank) = (draws.unit(), u64::from(draws.next_u32()));
                let rest = likeness.rests.at(draws.unit());
                prompt = self.begin(position, rank, rest, &mut own);
            } else {
                let growth = likeness.growth.at(draws.unit()) * self.synthesis.prompt_multiplier;
                let tokens = prompt.tokens.saturating_add(growth.round() as u64);
                prompt.grow(tokens, likeness.block_size, &mut own);
            }
            let output = self.output(turn, index, &mut draws);
            let wait = (turn > 0).then(|| likeness.waits.at(draws.unit()));
            let row = Row {
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

    /// A prompt that continues no other one. `position` says how it begins, `rank` in which of the trees.
    fn begin(&self, position: f64, rank: u64, rest: f64, own: &mut OwnIds) -> Prompt {
        let size = u64::from(self.likeness.block_size);
        let node = self.trunk.node(position);
        let common = self.trunk.ends[node];
        // The rest is kept with a block's length added to it, because it may be less than nothing.
        let rest = rest - size as f64;
        let rest = if rest > 0.0 {
            rest * self.synthesis.prompt_multiplier
        } else {
            rest
        };
        let tokens = (common as f64 + rest).round().max(1.0) as u64;
        let tree = rank % u64::from(self.synthesis.root_multiplier);
        let mut prompt = Prompt::default();
        self.trunk
            .ids_of(node, tokens.min(common), size, tree * self.trunk.ids, &mut prompt);
        prompt.grow(tokens, self.likeness.block_size, own);
        prompt
    }

    fn output(&self, turn: u64, index: u64, draws: &mut Draws) -> Option<u64> {
        let position = if turn == 0 {
            self.outputs.position(index)
        } else {
            draws.unit()
        };
        let outputs = &self.likeness.outputs;
        let tokens = outputs.at(position) * self.synthesis.output_multiplier;
        (!outputs.is_empty()).then_some(tokens.round() as u64)
    }
}

/// The tree of common beginnings with its lengths multiplied.
#[derive(Clone, Debug)]
struct Trunk {
    parents: Vec<u32>,
    /// Tokens from the beginning of a prompt to the end of each node.
    ends: Vec<u64>,
    /// The id of each node's first block, and the number of that block in the prompt.
    first: Vec<(u64, u64)>,
    /// Ids in all.
    ids: u64,
    /// Prompts up to and with each node.
    up_to: Vec<u64>,
}

impl Trunk {
    fn of(likeness: &Likeness, multiplier: f64) -> Self {
        let size = u64::from(likeness.block_size);
        let tree = &likeness.tree;
        let mut trunk = Trunk {
            parents: Vec::new(),
            ends: Vec::new(),
            first: Vec::new(),
            ids: 0,
            up_to: Vec::new(),
        };
        let mut prompts = 0;
        for (node, depth) in tree.0.iter().zip(tree.depths()) {
            let parent = trunk.ends.get(node.parent as usize).copied().unwrap_or(0);
            // Whole blocks stay whole blocks, so that what was common stays common to the last token.
            let scaled = depth as f64 * multiplier;
            let end = if depth % size == 0 {
                (scaled / size as f64).round() as u64 * size
            } else {
                scaled.round() as u64
            };
            let end = end.min(MOST_TOKENS).max(parent);
            // A block belongs to the node that it ends in.
            let first = parent / size;
            trunk.first.push((trunk.ids, first));
            trunk.ids += end.div_ceil(size) - first;
            trunk.parents.push(node.parent);
            trunk.ends.push(end);
            prompts += node.prompts;
            trunk.up_to.push(prompts);
        }
        trunk
    }

    /// The node in which the common part of the prompt at a position (`0.0..1.0`) of all prompts ends.
    fn node(&self, position: f64) -> usize {
        let all = self.up_to.last().copied().unwrap_or(0);
        let number = (position * all as f64) as u64;
        let node = self.up_to.partition_point(|up_to| *up_to <= number);
        node.min(self.up_to.len().saturating_sub(1))
    }

    /// The blocks of the first `tokens` tokens on the way to a node.
    fn ids_of(&self, node: usize, tokens: u64, size: u64, from: u64, prompt: &mut Prompt) {
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
            // The node in which the block's last token lies.
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
struct Prompt {
    tokens: u64,
    ids: Vec<u64>,
}

impl Prompt {
    /// Makes it longer, with blocks of its own. A block that was partial is another one once it is longer.
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

/// Nanoseconds as milliseconds, to a microsecond; a whole number where it is one.
fn milliseconds(nanos: f64) -> Number {
    let micros = (nanos / 1000.0).round().max(0.0) as u64;
    match micros % 1000 {
        0 => (micros / 1000).into(),
        _ => Number::from_f64(micros as f64 / 1000.0).unwrap_or_else(|| 0.into()),
    }
}
