//! The distribution of divergences over a run.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use veeksha_model::SessionId;

use super::field::DecisionField;
use super::matching::{Divergence, SessionComparison, divergence};
use crate::error::DecisionsError;
use crate::file::DecisionsFile;

/// Divergences that are described.
const EXAMPLES: usize = 5;
/// Turns and depths that are listed as text.
const LISTED: usize = 8;

/// The places at which the sessions of two runs diverge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DivergenceSummary {
    /// Sessions whose decisions are the same.
    pub identical: u64,
    /// Sessions whose decisions are the same as far as both runs recorded them.
    pub identical_so_far: u64,
    /// Sessions that diverged.
    pub diverged: u64,
    /// Sessions that only the recording has.
    pub only_recorded: u64,
    /// Sessions that only the other run has.
    pub only_other: u64,
    /// Sessions by the number of the step at which they diverged.
    pub by_turn: BTreeMap<u32, u64>,
    /// Sessions by the depth of the node at which they diverged.
    pub by_depth: BTreeMap<u32, u64>,
    /// Sessions by the part that differs.
    pub by_field: BTreeMap<DecisionField, u64>,
    /// The first divergences, in the order of sessions.
    pub examples: Vec<(SessionId, Divergence)>,
}

/// Compares the sessions that two runs have in common: those with the same id, where the sessions
/// of a replay have the ids of the sessions that they send again.
///
/// # Errors
/// If a file cannot be read any more, or has changed.
pub fn compare_files(
    recorded: &DecisionsFile,
    other: &DecisionsFile,
) -> Result<DivergenceSummary, DecisionsError> {
    let (ones, others) = (recorded.by_origin(), other.by_origin());
    let mut summary = DivergenceSummary::default();
    for (origin, one) in &ones {
        let Some(other_id) = others.get(origin) else {
            continue;
        };
        let compared = divergence(&recorded.steps(*one)?, &other.steps(*other_id)?);
        summary.add(*one, compared);
    }
    summary.only_recorded = ones.len() as u64 - summary.compared();
    summary.only_other = others.len() as u64 - summary.compared();
    Ok(summary)
}

impl DivergenceSummary {
    /// Adds a session that both runs have.
    pub fn add(&mut self, session: SessionId, compared: SessionComparison) {
        let divergence = match compared {
            SessionComparison::Identical => {
                self.identical += 1;
                return;
            }
            SessionComparison::IdenticalSoFar => {
                self.identical_so_far += 1;
                return;
            }
            SessionComparison::Diverged(divergence) => divergence,
        };
        self.diverged += 1;
        *self.by_turn.entry(divergence.turn).or_default() += 1;
        *self.by_depth.entry(divergence.depth).or_default() += 1;
        *self.by_field.entry(divergence.field).or_default() += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push((session, divergence));
        }
    }

    /// Adds the sessions of another pair of runs.
    pub fn merge(&mut self, other: DivergenceSummary) {
        fn add<K: Ord>(to: &mut BTreeMap<K, u64>, from: BTreeMap<K, u64>) {
            for (key, count) in from {
                *to.entry(key).or_default() += count;
            }
        }
        self.identical += other.identical;
        self.identical_so_far += other.identical_so_far;
        self.diverged += other.diverged;
        self.only_recorded += other.only_recorded;
        self.only_other += other.only_other;
        add(&mut self.by_turn, other.by_turn);
        add(&mut self.by_depth, other.by_depth);
        add(&mut self.by_field, other.by_field);
        let room = EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.into_iter().take(room));
    }

    /// Returns the number of sessions that both runs have.
    pub fn compared(&self) -> u64 {
        self.identical + self.identical_so_far + self.diverged
    }

    /// Returns the summary as lines of text. Texts of agents are in them, so that the caller must
    /// make them printable.
    pub fn lines(&self) -> Vec<String> {
        let sessions = veeksha_stats::counted(self.compared(), "session");
        let mut first = format!(
            "{sessions} compared: {} identical",
            self.identical + self.identical_so_far
        );
        if self.identical_so_far > 0 {
            first += &format!(" ({} only as far as both runs recorded)", self.identical_so_far);
        }
        first += &format!(", {} diverged", self.diverged);
        for (count, whose) in [(self.only_recorded, "first"), (self.only_other, "second")] {
            if count > 0 {
                first += &format!(", {count} only in the {whose} run");
            }
        }
        let mut lines = vec![first];
        if self.diverged == 0 {
            return lines;
        }
        let mut fields: Vec<_> = self.by_field.iter().collect();
        fields.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let fields = fields.into_iter().map(|(field, count)| (field.name(), *count));
        lines.push(format!("by field: {}", listed(fields)));
        for (what, counts) in [("turn", &self.by_turn), ("depth", &self.by_depth)] {
            let counts = counts.iter().map(|(key, count)| (key, *count));
            lines.push(format!("by {what}: {}", listed(counts)));
        }
        lines.extend(self.examples.iter().map(|(session, divergence)| {
            let Divergence {
                turn,
                depth,
                field,
                values: [one, other],
            } = divergence;
            let field = field.name();
            format!("session {session} at turn {turn}, depth {depth}: {field} was {one}, is {other}")
        }));
        lines
    }

    /// Returns the summary as JSON.
    pub fn json(&self) -> Value {
        let counts = |counts: &BTreeMap<u32, u64>| -> Value {
            let counts = counts.iter().map(|(key, count)| (key.to_string(), json!(count)));
            Value::Object(counts.collect::<Map<String, Value>>())
        };
        let fields = self.by_field.iter();
        let fields = fields.map(|(field, count)| (field.name().to_owned(), json!(count)));
        let examples = self.examples.iter().map(|(session, divergence)| {
            json!({
                "session_id": session.0,
                "turn": divergence.turn,
                "depth": divergence.depth,
                "field": divergence.field.name(),
                "recorded": divergence.values[0],
                "other": divergence.values[1],
            })
        });
        json!({
            "sessions": self.compared(),
            "identical": self.identical,
            "identical_so_far": self.identical_so_far,
            "diverged": self.diverged,
            "only_recorded": self.only_recorded,
            "only_other": self.only_other,
            "by_turn": counts(&self.by_turn),
            "by_depth": counts(&self.by_depth),
            "by_field": fields.collect::<Map<String, Value>>(),
            "examples": examples.collect::<Vec<Value>>(),
        })
    }
}

/// Formats `3: 5 sessions, 4: 1 session, 2 further: 7 sessions`.
fn listed<K: std::fmt::Display>(counts: impl Iterator<Item = (K, u64)>) -> String {
    let sessions = |count: u64| veeksha_stats::counted(count, "session");
    let all: Vec<(K, u64)> = counts.collect();
    let mut texts: Vec<String> = all
        .iter()
        .take(LISTED)
        .map(|(key, count)| format!("{key}: {}", sessions(*count)))
        .collect();
    let further = &all[all.len().min(LISTED)..];
    if !further.is_empty() {
        let count = further.iter().map(|(_, count)| count).sum();
        texts.push(format!("{} further: {}", further.len(), sessions(count)));
    }
    texts.join(", ")
}
