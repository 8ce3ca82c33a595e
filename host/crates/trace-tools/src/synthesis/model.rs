//! The statistical model of a trace: fitted to it, stored as JSON.

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};
use veeksha_model::{Nanos, Session};

use super::error::SynthesisError;
use super::quantiles::Quantiles;
use super::tree::{PrefixTree, TreeBuilder};
use crate::blocks::{PromptBlock, blocks};
use crate::conversation::{SessionTurns, length, output_tokens};
use crate::tally::Tally;

/// Maximum number of requests per session.
const MOST_TURNS: f64 = 1e6;

/// Version of the stored form.
const VERSION: u32 = 1;

/// Statistical model of a trace: the distributions of lengths, turns, think times and gaps between
/// arrivals, and the tree of common prefixes. All quantities except the tree are modeled as
/// independent, so a generated trace has the distributions of the original, but neither their
/// correlations nor their order in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceModel {
    pub(crate) version: u32,
    /// Tokens per block.
    pub(crate) block_size: u32,
    /// Number of sessions that it was fitted to.
    pub(crate) sessions: u64,
    /// Requests per session.
    pub(crate) turns: Quantiles,
    /// Common prefixes of prompts that continue no other one.
    pub(crate) tree: PrefixTree,
    /// Tokens of such a prompt beyond its common prefix, plus `block_size`: a prompt may end within
    /// its common prefix.
    pub(crate) rests: Quantiles,
    /// Share of the later turns that continue no prompt of their session.
    pub(crate) restarts: f64,
    /// Growth in tokens from one prompt to the next turn's.
    pub(crate) growth: Quantiles,
    /// Tokens of an answer; empty if their lengths are unknown.
    pub(crate) outputs: Quantiles,
    /// Think times of later turns, in nanoseconds.
    pub(crate) waits: Quantiles,
    /// Gaps between arrivals of sessions, in nanoseconds; empty if arrivals were not recorded.
    pub(crate) gaps: Quantiles,
}

impl TraceModel {
    /// Fits a model to sessions, with blocks of `block_size` tokens; `count` tokenizes a text.
    pub fn fit<S: Borrow<Session>>(
        sessions: impl IntoIterator<Item = S>,
        block_size: u32,
        count: &dyn Fn(&str) -> u32,
    ) -> Result<TraceModel, SynthesisError> {
        let mut fit = TraceModelFit::new(block_size);
        for session in sessions {
            fit.add(session.borrow(), count);
        }
        fit.finish()
    }

    /// Parses a model stored as JSON.
    pub fn from_json(text: &str) -> Result<TraceModel, SynthesisError> {
        let model: TraceModel =
            serde_json::from_str(text).map_err(|error| SynthesisError::Unreadable(error.to_string()))?;
        model.check()?;
        Ok(model)
    }

    /// Returns the number of sessions that it was fitted to.
    pub fn sessions(&self) -> u64 {
        self.sessions
    }

    /// Returns the tokens per block, which the flavor that reads the generated trace needs as well.
    pub fn block_size(&self) -> u32 {
        self.block_size
    }

    /// Validates a model from any source.
    pub(crate) fn check(&self) -> Result<(), SynthesisError> {
        let quantiles = [
            &self.turns,
            &self.rests,
            &self.growth,
            &self.outputs,
            &self.waits,
            &self.gaps,
        ];
        let invalid = |what| Err(SynthesisError::Unsound { what });
        if self.version != VERSION {
            return Err(SynthesisError::Version {
                version: self.version,
                known: VERSION,
            });
        }
        if self.block_size == 0 {
            return invalid("`block_size` is 0");
        }
        if !quantiles.iter().all(|quantiles| quantiles.are_sound()) {
            return invalid("a value is not a finite number of 0 or more");
        }
        if self.turns.is_empty() || self.rests.is_empty() {
            return invalid("`turns` or `rests` is empty");
        }
        if self.turns.at(1.0) > MOST_TURNS {
            return invalid("`turns` has more than a million requests of a session");
        }
        if !(0.0..=1.0).contains(&self.restarts) {
            return invalid("`restarts` is not a share");
        }
        if !self.tree.is_sound() {
            return invalid("`tree` is invalid: a node comes before its parent, or no prompt ends in it");
        }
        Ok(())
    }
}

/// Fits a model session by session. Memory: about 50 bytes for each distinct (prefix, block) of
/// prompts, and 16 for each prompt.
#[derive(Clone, Debug)]
pub struct TraceModelFit {
    block_size: u32,
    sessions: u64,
    turns: Tally,
    tree: TreeBuilder,
    later: u64,
    restarts: u64,
    growth: Tally,
    outputs: Tally,
    waits: Tally,
    arrivals: Vec<Nanos>,
    answers: u64,
}

impl TraceModelFit {
    /// Creates an empty fit. A block has at least one token.
    pub fn new(block_size: u32) -> Self {
        TraceModelFit {
            block_size: block_size.max(1),
            sessions: 0,
            turns: Tally::default(),
            tree: TreeBuilder::new(),
            later: 0,
            restarts: 0,
            growth: Tally::default(),
            outputs: Tally::default(),
            waits: Tally::default(),
            arrivals: Vec::new(),
            answers: 0,
        }
    }

    /// Adds a session.
    pub fn add(&mut self, session: &Session, count: &dyn Fn(&str) -> u32) {
        if session.requests.is_empty() {
            return;
        }
        self.sessions += 1;
        self.turns.add(session.requests.len() as u64);
        self.arrivals.extend(session.arrives_at);
        let conversation = SessionTurns::of(session, &mut self.answers, count);
        let mut prompts: Vec<(Vec<PromptBlock>, u64)> = Vec::with_capacity(conversation.turns.len());
        for (place, turn) in conversation.turns.iter().enumerate() {
            let prompt = conversation.prompt(place);
            let (cut, tokens) = (blocks(&prompt, self.block_size), length(&prompt));
            if let Some(tokens) = output_tokens(turn.request, count) {
                self.outputs.add(u64::from(tokens));
            }
            if place > 0 {
                self.later += 1;
                self.waits.add(turn.request.wait_after_ready);
            }
            // The latest prompt of the session that is a prefix of this one, or else the one that
            // it continues.
            let goes_on = |(before, _): &&(Vec<PromptBlock>, u64)| begins_with(&cut, before, self.block_size);
            let before = prompts.iter().rev().find(goes_on);
            let before = before.or(turn.continues.and_then(|place| prompts.get(place)));
            match before {
                Some((_, before)) => self.growth.add(tokens.saturating_sub(*before)),
                None => {
                    self.restarts += u64::from(place > 0);
                    self.tree.add(&cut);
                }
            }
            prompts.push((cut, tokens));
        }
    }

    /// Returns the model of the added sessions.
    pub fn finish(mut self) -> Result<TraceModel, SynthesisError> {
        if self.sessions == 0 {
            return Err(SynthesisError::Nothing);
        }
        self.arrivals.sort_unstable();
        let mut gaps = Tally::default();
        self.arrivals
            .windows(2)
            .for_each(|pair| gaps.add(pair[1] - pair[0]));
        let (tree, rests) = self.tree.finish();
        let mut beyond = Tally::default();
        for rest in rests {
            beyond.add(rest.saturating_add(i64::from(self.block_size)).max(0) as u64);
        }
        Ok(TraceModel {
            version: VERSION,
            block_size: self.block_size,
            sessions: self.sessions,
            turns: Quantiles::of(&self.turns),
            tree,
            rests: Quantiles::of(&beyond),
            restarts: self.restarts as f64 / self.later.max(1) as f64,
            growth: Quantiles::of(&self.growth),
            outputs: Quantiles::of(&self.outputs),
            waits: Quantiles::of(&self.waits),
            gaps: Quantiles::of(&gaps),
        })
    }
}

/// Returns true if a prompt is no shorter than an earlier one and begins with all its full blocks,
/// of which there must be at least one.
fn begins_with(prompt: &[PromptBlock], before: &[PromptBlock], size: u32) -> bool {
    let full = before.iter().filter(|block| block.tokens == size).count();
    full > 0
        && prompt.len() >= before.len()
        && prompt
            .iter()
            .zip(&before[..full])
            .all(|(one, other)| one.key == other.key && one.tokens == size)
}
