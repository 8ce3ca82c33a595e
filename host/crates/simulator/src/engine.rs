//! Continuous batching as a discrete-event model.
//!
//! The engine works in steps. At the beginning of a step it ensures that every decoding sequence
//! has memory for its next token (the youngest sequences lose their memory otherwise and are
//! recomputed later), admits waiting requests while a batch slot and KV blocks for the whole prompt
//! are free, and plans one token for each decoding sequence and up to `max_prefill_tokens_per_step`
//! prompt tokens, oldest sequence first. All tokens of a step are emitted at its end. A sequence
//! whose prompt is complete emits its first token at the end of that step.
//!
//! At least one token of every prompt is computed, even if the whole prompt is cached. Blocks of a
//! prompt enter the cache at the end of the step that computed them; blocks of answers do not.
//!
//! With [`Profile::constant`] there are no steps: each answer has separate deadlines (see
//! `constant`).

mod admission;
mod constant;
mod constant_times;
mod faults;
mod kv;
mod messages;
mod sequence;
mod steps;

use std::collections::VecDeque;

use veeksha_model::Nanos;

pub use messages::{EngineEvent, EngineRequest, EngineStats, Fault, FinishReason};

use crate::profile::Profile;
use constant_times::ConstantTimes;
use kv::Kv;
use sequence::Sequence;

/// The engine's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EnginePhase {
    /// A step is running and ends at this time.
    Busy(Nanos),
    /// No step is running; the next one may begin at this time, if any.
    Idle(Option<Nanos>),
}

/// The engine model. Drive it with [`submit`](Engine::submit), [`cancel`](Engine::cancel) and
/// [`advance`](Engine::advance), with times that never decrease; between calls nothing happens
/// before [`next_wake`](Engine::next_wake).
///
/// Equal profile, seed and calls give equal events, bit for bit. Every submitted request gets
/// exactly one terminal event ([`EngineEvent::is_terminal`]), unless it is cancelled: then it gets
/// no more events.
#[derive(Clone, Debug)]
pub struct Engine {
    profile: Profile,
    costs: Costs,
    seed: u64,
    /// The latest time passed to the engine.
    now: Nanos,
    phase: EnginePhase,
    /// In order of admission; the last is the youngest.
    running: Vec<Sequence>,
    waiting: VecDeque<Sequence>,
    /// Requests delayed by a slow start, in order of time.
    delayed: VecDeque<(Nanos, Sequence)>,
    kv: Kv,
    /// The answers with constant times, in place of steps.
    pace: Option<ConstantTimes>,
    stats: EngineStats,
}

/// The profile's times in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Costs {
    prefill_base: f64,
    prefill_token: f64,
    decode_base: f64,
    decode_sequence: f64,
    start_delay: Nanos,
    stall: Nanos,
}

impl Costs {
    fn new(profile: &Profile) -> Self {
        let nanos = |ms: f64| ms * 1e6;
        Costs {
            prefill_base: nanos(profile.prefill_base_ms),
            prefill_token: nanos(profile.prefill_ms_per_token),
            decode_base: nanos(profile.decode_base_ms),
            decode_sequence: nanos(profile.decode_ms_per_sequence),
            start_delay: nanos(profile.faults.start_delay_ms).round() as Nanos,
            stall: nanos(profile.faults.stall_ms).round() as Nanos,
        }
    }
}

impl Engine {
    /// Creates an idle engine with empty memory. The profile should have passed [`Profile::check`];
    /// with another one, requests may wait forever, but nothing panics.
    pub fn new(profile: Profile, seed: u64) -> Self {
        let kv = Kv::new(profile.kv_blocks());
        let pace = profile.constant.map(|constant| ConstantTimes::new(&constant));
        let stats = EngineStats {
            kv_capacity_tokens: profile.kv_blocks() * u64::from(profile.block_size),
            ..EngineStats::default()
        };
        Engine {
            costs: Costs::new(&profile),
            profile,
            seed,
            now: 0,
            phase: EnginePhase::Idle(None),
            running: Vec::new(),
            waiting: VecDeque::new(),
            delayed: VecDeque::new(),
            kv,
            pace,
            stats,
        }
    }

    /// Returns the engine's profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Submits a request. The caller chooses its id, which should be unique among unfinished
    /// requests.
    ///
    /// Events due before `now` happen first and are reported; events due at `now` wait for
    /// [`advance`](Engine::advance), so that requests that arrive at the same instant can begin in
    /// the same step. A rejection is reported immediately.
    ///
    /// With constant times, `now` may be slightly earlier than the latest time seen: the first
    /// token is still due relative to `now`.
    pub fn submit(&mut self, now: Nanos, request: EngineRequest, events: &mut Vec<EngineEvent>) {
        let submitted_at = now;
        let now = now.max(self.now);
        if let Some(before) = now.checked_sub(1) {
            self.run_until(before, events);
        }
        self.now = now;
        let ordinal = self.stats.requests_total;
        self.stats.requests_total += 1;
        let id = request.id;
        match self.accept(ordinal, request) {
            Err((status, message)) => {
                self.stats.rejected_total += 1;
                events.push(EngineEvent::Rejected { id, status, message });
            }
            Ok(None) => {
                self.stats.faulted_total += 1;
                events.push(EngineEvent::Fault {
                    id,
                    at: now,
                    fault: Fault::DropConnection,
                });
            }
            Ok(Some(sequence)) if self.pace.is_some() => {
                let arrival = submitted_at.saturating_add(self.costs.start_delay);
                self.pace_begin(now, arrival, sequence, events);
            }
            Ok(Some(sequence)) if self.costs.start_delay > 0 => {
                let due = now.saturating_add(self.costs.start_delay);
                self.delayed.push_back((due, sequence));
                self.wake_by(due);
            }
            Ok(Some(sequence)) => {
                self.waiting.push_back(sequence);
                self.wake_by(now);
            }
        }
    }

    /// Withdraws an unfinished request: its slot and memory are freed immediately, its work in the
    /// current step is lost. An unknown id is ignored. Like [`submit`](Engine::submit) it takes
    /// effect at `now`, but reports nothing: call [`advance`](Engine::advance) first if events
    /// before `now` matter.
    pub fn cancel(&mut self, now: Nanos, id: u64) {
        self.now = self.now.max(now);
        if self.pace.is_some() {
            if self.pace_cancel(id) {
                self.stats.cancelled_total += 1;
            }
            return;
        }
        if let Some(index) = self.running.iter().position(|sequence| sequence.id == id) {
            let sequence = self.running.remove(index);
            self.kv.release(sequence.holding);
            if !self.waiting.is_empty() {
                self.wake_by(self.now);
            }
        } else if let Some(index) = self.waiting.iter().position(|sequence| sequence.id == id) {
            self.waiting.remove(index);
        } else if let Some(index) = self.delayed.iter().position(|(_, sequence)| sequence.id == id) {
            self.delayed.remove(index);
        } else {
            return;
        }
        self.stats.cancelled_total += 1;
    }

    /// Returns the time of the next event without further calls; `None` if there is none.
    pub fn next_wake(&self) -> Option<Nanos> {
        if let Some(pace) = &self.pace {
            return pace.next_due();
        }
        match self.phase {
            EnginePhase::Busy(ends) => Some(ends),
            EnginePhase::Idle(wake) => wake,
        }
    }

    /// Processes everything that is due at `now` or earlier. Events carry their due times, which
    /// may be before `now`, in ascending order.
    pub fn advance(&mut self, now: Nanos, events: &mut Vec<EngineEvent>) {
        self.run_until(now, events);
        self.now = self.now.max(now);
    }

    /// Returns the current counters and levels.
    pub fn stats(&self) -> EngineStats {
        EngineStats {
            running: (self.running.len() + self.pace.as_ref().map_or(0, ConstantTimes::running)) as u64,
            waiting: (self.waiting.len()
                + self.delayed.len()
                + self.pace.as_ref().map_or(0, ConstantTimes::waiting)) as u64,
            kv_used_tokens: self.kv.used() * u64::from(self.profile.block_size),
            ..self.stats
        }
    }

    fn run_until(&mut self, until: Nanos, events: &mut Vec<EngineEvent>) {
        while let Some(at) = self.next_wake().filter(|at| *at <= until) {
            if self.pace.is_some() {
                self.pace_step(at, events);
                continue;
            }
            if let EnginePhase::Busy(_) = self.phase {
                self.finish_step(at, events);
            }
            self.begin_step(at, events);
        }
    }

    /// Makes an idle engine wake up at `at` at the latest.
    fn wake_by(&mut self, at: Nanos) {
        if let EnginePhase::Idle(wake) = self.phase {
            self.phase = EnginePhase::Idle(Some(wake.map_or(at, |earlier| earlier.min(at))));
        }
    }
}
