//! The answers with constant times, and their deadlines.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use veeksha_model::Nanos;

use super::messages::EngineEvent;
use super::sequence::Sequence;
use crate::profile::Constant;

/// The running answers.
#[derive(Clone, Debug)]
pub(super) struct ConstantTimes {
    pub(super) first_token: Nanos,
    pub(super) gap: Nanos,
    /// By the number of their start.
    pub(super) running: HashMap<u64, Sequence>,
    /// The next deadline of each answer, possibly including cancelled ones that are not at the top.
    pub(super) due: BinaryHeap<Reverse<(Nanos, u64)>>,
    pub(super) waiting: VecDeque<Sequence>,
    begun: u64,
    /// Events of answers that a cancellation let start: reported with the next deadline, because a
    /// cancellation reports nothing.
    pub(super) pending_events: Vec<EngineEvent>,
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

    /// Starts an answer whose first token is due at `due`.
    pub(super) fn start(&mut self, at: Nanos, due: Nanos, sequence: Sequence, events: &mut Vec<EngineEvent>) {
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
    pub(super) fn tidy(&mut self) {
        while let Some(Reverse((_, number))) = self.due.peek() {
            if self.running.contains_key(number) {
                return;
            }
            self.due.pop();
        }
    }
}
