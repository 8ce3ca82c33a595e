//! Constant times: every answer has separate deadlines and does not affect the others.
//!
//! The first token is due a fixed time after the request's arrival, each further one a fixed time
//! after the one before it. At most `max_batch` answers run concurrently; a further request begins
//! when one of them ends, first come first served, and its first token is due relative to that. A
//! stall ends at its deadline, and the token that it replaced comes a gap later.

use std::cmp::Reverse;

use veeksha_model::Nanos;

use super::Engine;
use super::messages::EngineEvent;
use super::sequence::Sequence;

impl Engine {
    /// Starts an accepted request whose times are relative to `arrival`.
    pub(super) fn pace_begin(
        &mut self,
        now: Nanos,
        arrival: Nanos,
        mut sequence: Sequence,
        events: &mut Vec<EngineEvent>,
    ) {
        let most = self.profile.max_batch as usize;
        let Some(pace) = &mut self.pace else { return };
        sequence.cached = Some(0);
        self.stats.prompt_tokens_total += u64::from(sequence.prompt);
        if pace.running.len() < most {
            let due = arrival.saturating_add(pace.first_token).max(now);
            pace.start(now, due, sequence, events);
        } else {
            pace.waiting.push_back(sequence);
        }
    }

    /// Processes the earliest deadline, which is at `at`.
    pub(super) fn pace_step(&mut self, at: Nanos, events: &mut Vec<EngineEvent>) {
        let Some(pace) = &mut self.pace else { return };
        let Some(Reverse((_, number))) = pace.due.pop() else {
            return;
        };
        events.append(&mut pace.pending_events);
        let gap = pace.gap;
        let Some(mut sequence) = pace.running.remove(&number) else {
            pace.tidy();
            return;
        };
        self.stats.steps_total += 1;
        let goes_on = self.emit_next(at, &mut sequence, events);
        let Some(pace) = &mut self.pace else { return };
        if goes_on {
            let next = at.max(sequence.stalled_until).saturating_add(gap);
            pace.due.push(Reverse((next, number)));
            pace.running.insert(number, sequence);
        } else if let Some(next) = pace.waiting.pop_front() {
            let due = at.saturating_add(pace.first_token);
            pace.start(at, due, next, events);
        }
        pace.tidy();
    }

    /// Cancels a request and starts the first waiting one in its place. Returns true if the request
    /// was known.
    pub(super) fn pace_cancel(&mut self, id: u64) -> bool {
        let at = self.now;
        let Some(pace) = &mut self.pace else { return false };
        let held = pace.running.iter().find(|(_, sequence)| sequence.id == id);
        if let Some(number) = held.map(|(number, _)| *number) {
            pace.running.remove(&number);
            if let Some(next) = pace.waiting.pop_front() {
                let due = at.saturating_add(pace.first_token);
                let mut events = std::mem::take(&mut pace.pending_events);
                pace.start(at, due, next, &mut events);
                pace.pending_events = events;
            }
            pace.tidy();
            return true;
        }
        let place = pace.waiting.iter().position(|sequence| sequence.id == id);
        place.is_some_and(|place| pace.waiting.remove(place).is_some())
    }
}
