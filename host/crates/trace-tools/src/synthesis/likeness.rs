//! What a trace is made like: fitted to one, kept as JSON.

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};
use veeksha_model::{Nanos, Session};

use super::error::CannotSynthesize;
use super::tree::{Growing, PrefixTree};
use super::values::Values;
use crate::blocks::{Block, blocks};
use crate::conversation::{Conversation, length, output_tokens};
use crate::tally::Tally;

/// A session has no more requests than this.
const MOST_TURNS: f64 = 1e6;

/// The form in which a likeness is kept.
const VERSION: u32 = 1;

/// What is known of a trace once its sessions are forgotten: how lengths, turns, think times and gaps between arrivals are
/// distributed, and how prompts begin alike. Everything is independent of everything else but for the tree: a trace made of it has
/// the distributions, and neither the correlations between them nor the order in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Likeness {
    pub(crate) version: u32,
    /// Tokens of a block.
    pub(crate) block_size: u32,
    /// Sessions that it was fitted to.
    pub(crate) sessions: u64,
    /// Requests of a session.
    pub(crate) turns: Values,
    /// How prompts that continue no other one begin.
    pub(crate) tree: PrefixTree,
    /// Tokens of such a prompt beyond what it has in common with others, plus `block_size`: a prompt may end within its common
    /// part.
    pub(crate) rests: Values,
    /// Share of the later turns that continue no prompt of their session.
    pub(crate) restarts: f64,
    /// Tokens by which the prompt of a later turn is longer than the one before it.
    pub(crate) growth: Values,
    /// Tokens of an answer; none where nothing says how long answers are.
    pub(crate) outputs: Values,
    /// Think times of later turns, in nanoseconds.
    pub(crate) waits: Values,
    /// Gaps between arrivals of sessions, in nanoseconds; none where arrivals were not recorded.
    pub(crate) gaps: Values,
}

impl Likeness {
    /// Fits a likeness to sessions, with blocks of `block_size` tokens; `count` gives the tokens of a verbatim text.
    pub fn fit<S: Borrow<Session>>(
        sessions: impl IntoIterator<Item = S>,
        block_size: u32,
        count: &dyn Fn(&str) -> u32,
    ) -> Result<Likeness, CannotSynthesize> {
        let mut fit = LikenessFit::new(block_size);
        for session in sessions {
            fit.add(session.borrow(), count);
        }
        fit.finish()
    }

    /// Reads a likeness that was kept as JSON.
    pub fn from_json(text: &str) -> Result<Likeness, CannotSynthesize> {
        let likeness: Likeness =
            serde_json::from_str(text).map_err(|error| CannotSynthesize::Unreadable(error.to_string()))?;
        likeness.check()?;
        Ok(likeness)
    }

    /// Sessions that it was fitted to.
    pub fn sessions(&self) -> u64 {
        self.sessions
    }

    /// Tokens of a block: what the flavor that reads the made trace must be told.
    pub fn block_size(&self) -> u32 {
        self.block_size
    }

    /// That it can be made something of, wherever it comes from.
    pub(crate) fn check(&self) -> Result<(), CannotSynthesize> {
        let values = [
            &self.turns,
            &self.rests,
            &self.growth,
            &self.outputs,
            &self.waits,
            &self.gaps,
        ];
        let wrong = |what| Err(CannotSynthesize::Unsound { what });
        if self.version != VERSION {
            return Err(CannotSynthesize::Version {
                version: self.version,
                known: VERSION,
            });
        }
        if self.block_size == 0 {
            return wrong("`block_size` is 0");
        }
        if !values.iter().all(|values| values.are_sound()) {
            return wrong("a value is not a finite number of 0 or more");
        }
        if self.turns.is_empty() || self.rests.is_empty() {
            return wrong("`turns` or `rests` is empty");
        }
        if self.turns.at(1.0) > MOST_TURNS {
            return wrong("`turns` has more than a million requests of a session");
        }
        if !(0.0..=1.0).contains(&self.restarts) {
            return wrong("`restarts` is no share");
        }
        if !self.tree.is_sound() {
            return wrong("`tree` is no tree: a node stands before its parent, or no prompt ends in it");
        }
        Ok(())
    }
}

/// Takes the sessions of a trace one by one. Memory: some 50 bytes for each different (beginning, block) of prompts, and 16 for each
/// prompt.
#[derive(Clone, Debug)]
pub struct LikenessFit {
    block_size: u32,
    sessions: u64,
    turns: Tally,
    tree: Growing,
    later: u64,
    restarts: u64,
    growth: Tally,
    outputs: Tally,
    waits: Tally,
    arrivals: Vec<Nanos>,
    answers: u64,
}

impl LikenessFit {
    /// Nothing yet. A block has at least one token.
    pub fn new(block_size: u32) -> Self {
        LikenessFit {
            block_size: block_size.max(1),
            sessions: 0,
            turns: Tally::default(),
            tree: Growing::new(),
            later: 0,
            restarts: 0,
            growth: Tally::default(),
            outputs: Tally::default(),
            waits: Tally::default(),
            arrivals: Vec::new(),
            answers: 0,
        }
    }

    /// Takes a session.
    pub fn add(&mut self, session: &Session, count: &dyn Fn(&str) -> u32) {
        if session.requests.is_empty() {
            return;
        }
        self.sessions += 1;
        self.turns.add(session.requests.len() as u64);
        self.arrivals.extend(session.arrives_at);
        let conversation = Conversation::of(session, &mut self.answers, count);
        let mut prompts: Vec<(Vec<Block>, u64)> = Vec::with_capacity(conversation.turns.len());
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
            // The latest prompt of the session that this one begins with, or else the one that it continues.
            let goes_on = |(before, _): &&(Vec<Block>, u64)| begins_with(&cut, before, self.block_size);
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

    /// The likeness of what was taken in.
    pub fn finish(mut self) -> Result<Likeness, CannotSynthesize> {
        if self.sessions == 0 {
            return Err(CannotSynthesize::Nothing);
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
        Ok(Likeness {
            version: VERSION,
            block_size: self.block_size,
            sessions: self.sessions,
            turns: Values::of(&self.turns),
            tree,
            rests: Values::of(&beyond),
            restarts: self.restarts as f64 / self.later.max(1) as f64,
            growth: Values::of(&self.growth),
            outputs: Values::of(&self.outputs),
            waits: Values::of(&self.waits),
            gaps: Values::of(&gaps),
        })
    }
}

/// Whether a prompt begins with all full blocks of an earlier one, of which there is at least one, and is no shorter.
fn begins_with(prompt: &[Block], before: &[Block], size: u32) -> bool {
    let full = before.iter().filter(|block| block.tokens == size).count();
    full > 0
        && prompt.len() >= before.len()
        && prompt
            .iter()
            .zip(&before[..full])
            .all(|(one, other)| one.key == other.key && one.tokens == size)
}
