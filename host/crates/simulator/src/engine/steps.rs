//! One step: memory for running sequences, admission of waiting ones, work, and the results at its
//! end.

use veeksha_model::Nanos;
use veeksha_stats::RandomStream;

use super::faults::{FaultKind, PlannedFault};
use super::kv::Kv;
use super::messages::{EngineEvent, EngineStats, Fault, FinishReason};
use super::sequence::{Sequence, StepWork};
use super::{Engine, EnginePhase};

impl Engine {
    /// Begins a step at `at`, or determines when to try again.
    pub(super) fn begin_step(&mut self, at: Nanos, events: &mut Vec<EngineEvent>) {
        self.now = self.now.max(at);
        while let Some((_, sequence)) = self.delayed.pop_front_if(|(due, _)| *due <= at) {
            self.waiting.push_back(sequence);
        }
        self.make_room(at);
        self.admit(at, events);
        let (prefill, decode) = self.plan(at);
        if prefill == 0 && decode == 0 {
            let stalled = self.running.iter().map(|sequence| sequence.stalled_until);
            let delayed = self.delayed.front().map(|(due, _)| *due);
            self.phase = EnginePhase::Idle(stalled.chain(delayed).filter(|wake| *wake > at).min());
            return;
        }
        self.phase = EnginePhase::Busy(at.saturating_add(self.duration(prefill, decode)));
        self.stats.steps_total += 1;
    }

    /// Ensures that every sequence that is about to decode has memory for its next token. A
    /// sequence preempted here is not readmitted in the same step: it needs all the memory that it
    /// had, and a part of that is taken.
    fn make_room(&mut self, at: Nanos) {
        let block = u64::from(self.profile.block_size.max(1));
        let mut index = 0;
        while let Some(sequence) = self.running.get_mut(index) {
            let decodes = !sequence.prefilling() && !sequence.stalled(at);
            let full = sequence.holding.blocks() * block < u64::from(sequence.next_context());
            if decodes && full && !self.kv.grow(&mut sequence.holding) {
                // The youngest sequence is preempted; that may be this one.
                self.preempt_youngest();
            } else {
                index += 1;
            }
        }
    }

    fn preempt_youngest(&mut self) {
        let Some(mut sequence) = self.running.pop() else {
            return;
        };
        self.kv.release(std::mem::take(&mut sequence.holding));
        sequence.computed = 0;
        sequence.published = 0;
        sequence.target = sequence.next_context();
        sequence.work = StepWork::Nothing;
        self.waiting.push_front(sequence);
        self.stats.preemptions_total += 1;
    }

    /// Admits waiting sequences in order while a slot and memory for all their tokens are free.
    fn admit(&mut self, at: Nanos, events: &mut Vec<EngineEvent>) {
        let block = self.profile.block_size.max(1);
        while self.running.len() < self.profile.max_batch as usize {
            let Some(sequence) = self.waiting.front() else {
                return;
            };
            // The last token is always computed: its output is the next token.
            let most = (sequence.target.saturating_sub(1) / block) as usize;
            let hits = if self.profile.prefix_cache {
                self.kv
                    .leading_hits(&sequence.blocks[..sequence.blocks.len().min(most)])
            } else {
                0
            };
            let fresh = u64::from(sequence.target.div_ceil(block)) - hits as u64;
            let Some(holding) = self.kv.acquire(&sequence.blocks[..hits], fresh) else {
                return;
            };
            let Some(mut sequence) = self.waiting.pop_front() else {
                return;
            };
            sequence.holding = holding;
            sequence.published = hits;
            sequence.computed = hits as u32 * block;
            if sequence.cached.is_none() {
                let cached_tokens = sequence.computed;
                sequence.cached = Some(cached_tokens);
                self.stats.prompt_tokens_total += u64::from(sequence.prompt);
                if self.profile.prefix_cache {
                    self.stats.prefix_queries_tokens += u64::from(sequence.prompt);
                    self.stats.prefix_hits_tokens += u64::from(cached_tokens);
                }
                events.push(EngineEvent::Started {
                    id: sequence.id,
                    at,
                    cached_tokens,
                });
            }
            self.running.push(sequence);
        }
    }

    /// Assigns work to every sequence; returns the step's number of prompt tokens and of decoding
    /// sequences.
    fn plan(&mut self, at: Nanos) -> (u32, u32) {
        let budget = self.profile.max_prefill_tokens_per_step;
        let (mut prefill, mut decode) = (0, 0);
        for sequence in &mut self.running {
            sequence.work = if sequence.stalled(at) {
                StepWork::Nothing
            } else if !sequence.prefilling() {
                decode += 1;
                StepWork::Decode
            } else {
                match (sequence.target - sequence.computed).min(budget - prefill) {
                    0 => StepWork::Nothing,
                    tokens => {
                        prefill += tokens;
                        StepWork::Prefill(tokens)
                    }
                }
            };
        }
        (prefill, decode)
    }

    /// Returns the duration of a step: at least one nanosecond, so that time advances.
    fn duration(&self, prefill: u32, decode: u32) -> Nanos {
        let costs = &self.costs;
        let mut nanos = 0.0;
        if prefill > 0 {
            nanos += costs.prefill_base + costs.prefill_token * f64::from(prefill);
        }
        if decode > 0 {
            nanos += costs.decode_base + costs.decode_sequence * f64::from(decode);
        }
        let cv = self.profile.noise_cv;
        if cv > 0.0 {
            let shape = 1.0 / (cv * cv);
            let mut draws = RandomStream::new(self.seed, self.stats.steps_total, "simulator noise").draws();
            nanos *= draws.gamma(shape) / shape;
        }
        (nanos.round() as Nanos).max(1)
    }

    /// Emits the step's results.
    pub(super) fn finish_step(&mut self, at: Nanos, events: &mut Vec<EngineEvent>) {
        self.now = self.now.max(at);
        let mut step = StepEnd {
            at,
            stall: self.costs.stall,
            block: self.profile.block_size.max(1),
            publishes: self.profile.prefix_cache,
            kv: &mut self.kv,
            stats: &mut self.stats,
            events,
        };
        self.running.retain_mut(|sequence| step.finish(sequence));
    }
}

impl Engine {
    /// Emits one sequence's next token at `at`, or the fault that replaces it. Returns true if the
    /// sequence continues.
    pub(super) fn emit_next(
        &mut self,
        at: Nanos,
        sequence: &mut Sequence,
        events: &mut Vec<EngineEvent>,
    ) -> bool {
        self.now = self.now.max(at);
        let mut step = StepEnd {
            at,
            stall: self.costs.stall,
            block: 1,
            publishes: false,
            kv: &mut self.kv,
            stats: &mut self.stats,
            events,
        };
        step.next_out(sequence)
    }
}

/// The end of a step, applied to one sequence after the other.
struct StepEnd<'a> {
    at: Nanos,
    stall: Nanos,
    block: u32,
    publishes: bool,
    kv: &'a mut Kv,
    stats: &'a mut EngineStats,
    events: &'a mut Vec<EngineEvent>,
}

impl StepEnd<'_> {
    /// Returns true if the sequence stays in the batch.
    fn finish(&mut self, sequence: &mut Sequence) -> bool {
        match std::mem::replace(&mut sequence.work, StepWork::Nothing) {
            StepWork::Nothing => return true,
            StepWork::Prefill(tokens) => {
                sequence.computed += tokens;
                self.publish(sequence);
                if sequence.prefilling() {
                    return true;
                }
            }
            StepWork::Decode => sequence.computed = sequence.next_context(),
        }
        let stays = self.next_out(sequence);
        if !stays {
            self.kv.release(std::mem::take(&mut sequence.holding));
        }
        stays
    }

    fn next_out(&mut self, sequence: &mut Sequence) -> bool {
        match sequence.fault.take_if(|fault| fault.after == sequence.generated) {
            Some(fault) => self.apply_fault(sequence, fault),
            None => self.emit(sequence),
        }
    }

    fn publish(&mut self, sequence: &mut Sequence) {
        if !self.publishes {
            return;
        }
        let complete = ((sequence.computed / self.block) as usize).min(sequence.blocks.len());
        for &hash in sequence
            .blocks
            .get(sequence.published..complete)
            .unwrap_or_default()
        {
            self.kv.publish(hash, &mut sequence.holding);
        }
        sequence.published = sequence.published.max(complete);
    }

    fn apply_fault(&mut self, sequence: &mut Sequence, fault: PlannedFault) -> bool {
        let fault = match fault.kind {
            FaultKind::Drop => Fault::DropConnection,
            FaultKind::Error => Fault::MidStreamError,
            FaultKind::Truncate => Fault::Truncate,
            FaultKind::Stall => {
                sequence.stalled_until = self.at.saturating_add(self.stall);
                Fault::Stall {
                    until: sequence.stalled_until,
                }
            }
        };
        self.events.push(EngineEvent::Fault {
            id: sequence.id,
            at: self.at,
            fault,
        });
        let goes_on = matches!(fault, Fault::Stall { .. });
        if !goes_on {
            self.stats.faulted_total += 1;
        }
        goes_on
    }

    fn emit(&mut self, sequence: &mut Sequence) -> bool {
        self.events.push(EngineEvent::Token {
            id: sequence.id,
            at: self.at,
            index: sequence.generated,
        });
        sequence.generated += 1;
        self.stats.generation_tokens_total += 1;
        if sequence.generated < sequence.length {
            return true;
        }
        match sequence.reason {
            FinishReason::Stop => self.stats.finished_stop_total += 1,
            FinishReason::Length => self.stats.finished_length_total += 1,
        }
        self.events.push(EngineEvent::Finished {
            id: sequence.id,
            at: self.at,
            reason: sequence.reason,
            prompt_tokens: sequence.prompt,
            cached_tokens: sequence.cached.unwrap_or(0),
            completion_tokens: sequence.generated,
        });
        false
    }
}
