//! The engine, on the clock of the run.

use veeksha_model::Nanos;
use veeksha_simulator::{Engine, EngineEvent, EngineRequest, Fault, Profile};

/// The engine, and the instant on the engine's clock at which the run's clock began: the warm-up
/// comes before it.
pub(super) struct SimulatedServer {
    engine: Engine,
    epoch: Nanos,
}

impl SimulatedServer {
    pub(super) fn new(profile: Profile, seed: u64) -> Self {
        SimulatedServer {
            engine: Engine::new(profile, seed),
            epoch: 0,
        }
    }

    /// From here on `now` is 0.
    pub(super) fn begin_at(&mut self, now: Nanos) {
        self.epoch = self.epoch.saturating_add(now);
    }

    pub(super) fn submit(&mut self, now: Nanos, request: EngineRequest, events: &mut Vec<EngineEvent>) {
        let known = events.len();
        self.engine.submit(self.epoch + now, request, events);
        self.shift(&mut events[known..]);
    }

    pub(super) fn cancel(&mut self, now: Nanos, id: u64) {
        self.engine.cancel(self.epoch + now, id);
    }

    pub(super) fn next_wake(&self) -> Option<Nanos> {
        self.engine.next_wake().map(|at| at.saturating_sub(self.epoch))
    }

    pub(super) fn advance(&mut self, now: Nanos, events: &mut Vec<EngineEvent>) {
        let known = events.len();
        self.engine.advance(self.epoch + now, events);
        self.shift(&mut events[known..]);
    }

    fn shift(&self, events: &mut [EngineEvent]) {
        for event in events {
            match event {
                EngineEvent::Rejected { .. } => {}
                EngineEvent::Started { at, .. }
                | EngineEvent::Token { at, .. }
                | EngineEvent::Finished { at, .. } => *at = at.saturating_sub(self.epoch),
                EngineEvent::Fault { at, fault, .. } => {
                    *at = at.saturating_sub(self.epoch);
                    if let Fault::Stall { until } = fault {
                        *until = until.saturating_sub(self.epoch);
                    }
                }
            }
        }
    }
}
