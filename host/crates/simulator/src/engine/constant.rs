//! Constant times: every answer has separate deadlines and does not affect the others.
//!
//! The first token is due a fixed time after the request's arrival, each further one a fixed time
//! after the one before it. At most `max_batch` answers run concurrently; a further request begins
//! when one of them ends, first come first served, and its first token is due relative to that. A
//! stall ends at its deadline, and the token that it replaced comes a gap later.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use veeksha_model::Nanos;

use super::Engine;
use super::messages::EngineEvent;
use super::sequence::Sequence;
use crate::profile::Constant;

/// The running answers.
#[derive(Clone, Debug)]
pub(super) struct ConstantTimes {
    first_token: Nanos,
    gap: Nanos,
    /// By the number of their start.
    running: HashMap<u64, Sequence>,
    /// The next deadline of each answer, possibly including cancelled ones that are not at the top.
    due: BinaryHeap<Reverse<(Nanos, u64)>>,
    waiting: VecDeque<Sequence>,
    begun: u64,
    /// Events of answers that a cancellation let start: reported with the next deadline, because a
    /// cancellation reports nothing.
    pending_events: Vec<EngineEvent>,
}

impl ConstantTimes {
    pub(super) fn new(constant: &Constant) -> Self {
        let nanos = |ms: f64| (ms * 1e6).round() as Nanos;
        ConstantTimes {
            first_token: nanos(constant.first_token_ms),
            gap: nanos(constant.gap_ms),
            running: HashMap::new(),
            due: BinaryHeap::new(),
            waiting: VecDeque::new(),
            begun: 0,
            pending_events: Vec::new(),
        }
    }

    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    fn start(&mut self, at: Nanos, due: Nanos, sequence: Sequence, events: &mut Vec<EngineEvent>) {
        events.push(EngineEvent::Started {
            id: sequence.id,
            at,
            cached_tokens: 0,
        });
        self.due.push(Reverse((due, self.begun)));
        self.running.insert(self.begun, sequence);
        self.begun += 1;
    }

    /// Removes deadlines of cancelled answers from the top, so that the top is always a valid one.
    fn tidy(&mut self) {
        while let Some(Reverse((_, number))) = self.due.peek() {
            if self.running.contains_key(number) {
                return;
            }
            self.due.pop();
        }
    }
}

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
                let mut told = std::mem::take(&mut pace.pending_events);
                pace.start(at, due, next, &mut told);
                pace.pending_events = told;
            }
            pace.tidy();
            return true;
        }
        let place = pace.waiting.iter().position(|sequence| sequence.id == id);
        place.is_some_and(|place| pace.waiting.remove(place).is_some())
    }
}
