//! Drives the engine in real time: a thread that waits for the engine's deadlines and writes its
//! events.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use veeksha_clock::{RunClock, minimal_timer_slack};
use veeksha_model::Nanos;

use super::answer::Sink;
use super::pacing::{Lateness, Pacing};
use super::script::EventBuffer;
use crate::engine::{Engine, EngineEvent, EngineRequest, EngineStats};
use crate::profile::Profile;

/// The engine and its driver thread.
pub(super) struct EngineDriver {
    clock: RunClock,
    state: Mutex<DriverState>,
    changed: Condvar,
    lateness: Mutex<Lateness>,
}

struct DriverState {
    engine: Engine,
    next_id: u64,
    /// Events produced while another thread than the engine's used the engine.
    happened: Vec<EngineEvent>,
    /// New requests whose sinks the engine's thread does not know yet, and finished ones that it
    /// can forget.
    begun: Vec<(u64, Arc<Sink>)>,
    withdrawn: Vec<u64>,
    stopping: bool,
}

/// Result of submitting a request to the engine.
pub(super) enum Submission {
    Accepted(EngineTicket),
    Rejected { status: u16, message: String },
    Refused,
}

impl EngineDriver {
    pub(super) fn new(profile: Profile, seed: u64, clock: RunClock) -> EngineDriver {
        let state = DriverState {
            engine: Engine::new(profile, seed),
            next_id: 0,
            happened: Vec::new(),
            begun: Vec::new(),
            withdrawn: Vec::new(),
            stopping: false,
        };
        EngineDriver {
            clock,
            state: Mutex::new(state),
            changed: Condvar::new(),
            lateness: Mutex::new(Lateness::new()),
        }
    }

    /// Runs the engine's thread. Deadlines come from the engine and are absolute, so late wake-ups
    /// do not accumulate. Nothing is written while the state is locked.
    pub(super) fn run(&self) {
        minimal_timer_slack();
        let mut sinks: HashMap<u64, Arc<Sink>> = HashMap::new();
        let mut events = Vec::new();
        let mut scratch = EventBuffer::default();
        let mut state = self.state();
        while !state.stopping {
            std::mem::swap(&mut events, &mut state.happened);
            state.engine.advance(self.clock.now(), &mut events);
            for (id, sink) in state.begun.drain(..) {
                sinks.insert(id, sink);
            }
            for id in state.withdrawn.drain(..) {
                sinks.remove(&id);
            }
            if !events.is_empty() {
                drop(state);
                self.write(&events, &mut sinks, &mut scratch);
                events.clear();
                state = self.state();
                continue;
            }
            state = match state.engine.next_wake() {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(wake) => match wake.saturating_sub(self.clock.now()) {
                    0 => state,
                    left => {
                        let waited = self.changed.wait_timeout(state, Duration::from_nanos(left));
                        waited.unwrap_or_else(PoisonError::into_inner).0
                    }
                },
            };
        }
    }

    fn write(&self, events: &[EngineEvent], sinks: &mut HashMap<u64, Arc<Sink>>, scratch: &mut EventBuffer) {
        let mut lateness = self.lateness.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, event) in events.iter().enumerate() {
            let id = event.id();
            let Some(sink) = sinks.get(&id) else { continue };
            let next = events.get(place + 1).filter(|next| next.id() == id);
            let written = sink.take(event, next, scratch);
            if let (Some(written), EngineEvent::Token { at, .. }) = (written, event) {
                lateness.add(written.saturating_sub(*at));
            }
            if event.is_terminal() {
                sinks.remove(&id);
            }
        }
    }

    pub(super) fn stop(&self) {
        self.state().stopping = true;
        self.changed.notify_all();
    }

    pub(super) fn stats(&self) -> EngineStats {
        self.state().engine.stats()
    }

    pub(super) fn pacing(&self) -> Pacing {
        self.lateness
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .snapshot()
    }

    /// Submits a request and assigns its id. The engine's thread passes its events to `sink`.
    pub(super) fn submit(
        self: &Arc<Self>,
        arrived_at: Nanos,
        mut request: EngineRequest,
        sink: &Arc<Sink>,
    ) -> Submission {
        let mut state = self.state();
        let id = state.next_id;
        state.next_id += 1;
        request.id = id;
        let mut happened = std::mem::take(&mut state.happened);
        // Steps that are due before now happen first; constant times are relative to the arrival in
        // any case.
        let now = match state.engine.profile().constant {
            Some(_) => arrived_at,
            None => self.clock.now(),
        };
        state.engine.submit(now, request, &mut happened);
        let refusal = happened.pop_if(|event| event.id() == id && event.is_terminal());
        if refusal.is_none() {
            state.begun.push((id, Arc::clone(sink)));
        }
        state.happened = happened;
        drop(state);
        // The thread has a new deadline, or events to write.
        self.changed.notify_one();
        match refusal {
            None => Submission::Accepted(EngineTicket {
                id,
                driver: Arc::clone(self),
                sink: Arc::clone(sink),
            }),
            Some(EngineEvent::Rejected { status, message, .. }) => Submission::Rejected { status, message },
            Some(_) => Submission::Refused,
        }
    }

    fn cancel(&self, id: u64) {
        let mut state = self.state();
        let mut happened = std::mem::take(&mut state.happened);
        let now = self.clock.now();
        state.engine.advance(now, &mut happened);
        state.engine.cancel(now, id);
        state.happened = happened;
        state.withdrawn.push(id);
        drop(state);
        self.changed.notify_one();
    }

    // Nothing panics while the lock is held, and the data is consistent at every point.
    fn state(&self) -> MutexGuard<'_, DriverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in the engine. Dropped before its terminal event, it cancels the request.
pub(super) struct EngineTicket {
    id: u64,
    driver: Arc<EngineDriver>,
    sink: Arc<Sink>,
}

impl Drop for EngineTicket {
    fn drop(&mut self) {
        if !self.sink.has_ended() {
            self.driver.cancel(self.id);
        }
    }
}
