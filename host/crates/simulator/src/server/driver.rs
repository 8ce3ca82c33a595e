//! The engine in real time: a thread of its own, and tickets for those who wait for its events.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use veeksha_clock::{RunClock, minimal_timer_slack};

use crate::{Engine, EngineEvent, EngineRequest, EngineStats, Profile};

/// Batches of events, in the engine's order, on their way to the network thread. One wake-up serves a whole step.
pub(super) type Feed = UnboundedReceiver<Vec<EngineEvent>>;

/// The engine and what drives it.
pub(super) struct Driver {
    clock: RunClock,
    state: Mutex<State>,
    changed: Condvar,
    /// Where the events of each request go. Only the network thread uses it.
    tickets: Mutex<HashMap<u64, UnboundedSender<EngineEvent>>>,
}

struct State {
    engine: Engine,
    next_id: u64,
    feed: UnboundedSender<Vec<EngineEvent>>,
    stopping: bool,
}

impl State {
    /// Sent while the state is locked, so that batches stay in order.
    fn send(&self, events: Vec<EngineEvent>) {
        if !events.is_empty() {
            // The network thread has gone: nobody is left to tell.
            let _ = self.feed.send(events);
        }
    }
}

/// What became of a request at the engine's door.
pub(super) enum Submission {
    Accepted(Ticket),
    Rejected { status: u16, message: String },
    Refused,
}

impl Driver {
    pub(super) fn new(profile: Profile, seed: u64, clock: RunClock) -> (Arc<Driver>, Feed) {
        let (feed, events) = mpsc::unbounded_channel();
        let state = State {
            engine: Engine::new(profile, seed),
            next_id: 0,
            feed,
            stopping: false,
        };
        let driver = Driver {
            clock,
            state: Mutex::new(state),
            changed: Condvar::new(),
            tickets: Mutex::new(HashMap::new()),
        };
        (Arc::new(driver), events)
    }

    /// The engine's thread. Deadlines come from the engine, are absolute, and so do not drift with late wake-ups.
    pub(super) fn run(&self) {
        minimal_timer_slack();
        let mut state = self.state();
        while !state.stopping {
            let mut events = Vec::new();
            state.engine.advance(self.clock.now(), &mut events);
            state.send(events);
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

    pub(super) fn stop(&self) {
        self.state().stopping = true;
        self.changed.notify_all();
    }

    pub(super) fn stats(&self) -> EngineStats {
        self.state().engine.stats()
    }

    /// Hands a request in; its id is chosen here.
    pub(super) fn submit(self: &Arc<Self>, mut request: EngineRequest) -> Submission {
        let (sender, events) = mpsc::unbounded_channel();
        let mut state = self.state();
        let id = state.next_id;
        state.next_id += 1;
        request.id = id;
        let before = state.engine.next_wake();
        let mut happened = Vec::new();
        let now = self.clock.now();
        state.engine.submit(now, request, &mut happened);
        let answer = happened.pop_if(|event| event.id() == id);
        if answer.is_none() {
            self.tickets().insert(id, sender);
        }
        state.send(happened);
        if state.engine.next_wake() != before {
            self.changed.notify_one();
        }
        drop(state);
        match answer {
            None => Submission::Accepted(Ticket {
                id,
                events,
                driver: Arc::clone(self),
                ended: false,
            }),
            Some(EngineEvent::Rejected { status, message, .. }) => Submission::Rejected { status, message },
            Some(_) => Submission::Refused,
        }
    }

    /// On the network thread: hands each event to its ticket.
    pub(super) fn deliver(&self, events: Vec<EngineEvent>) {
        let mut tickets = self.tickets();
        for event in events {
            let id = event.id();
            let ends = event.is_terminal();
            if let Some(ticket) = tickets.get(&id) {
                // The ticket was dropped: its request is being cancelled.
                let _ = ticket.send(event);
            }
            if ends {
                tickets.remove(&id);
            }
        }
    }

    fn cancel(&self, id: u64) {
        self.tickets().remove(&id);
        let mut state = self.state();
        let before = state.engine.next_wake();
        let mut events = Vec::new();
        let now = self.clock.now();
        state.engine.advance(now, &mut events);
        state.engine.cancel(now, id);
        state.send(events);
        if state.engine.next_wake() != before {
            self.changed.notify_one();
        }
    }

    // Nothing panics while it holds a lock, and if it did, the data would still be whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tickets(&self) -> MutexGuard<'_, HashMap<u64, UnboundedSender<EngineEvent>>> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The events of one request. Dropped before its terminal event, it withdraws the request.
pub(super) struct Ticket {
    id: u64,
    events: UnboundedReceiver<EngineEvent>,
    driver: Arc<Driver>,
    ended: bool,
}

impl Ticket {
    /// The next event; after the terminal one, or when the server stops, nothing comes any more.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<EngineEvent>> {
        if self.ended {
            return Poll::Ready(None);
        }
        self.events.poll_recv(cx).map(|event| self.note(event))
    }

    /// The next event, if it is already there.
    pub(super) fn try_next(&mut self) -> Option<EngineEvent> {
        let event = self.events.try_recv().ok();
        self.note(event)
    }

    fn note(&mut self, event: Option<EngineEvent>) -> Option<EngineEvent> {
        self.ended |= event.as_ref().is_some_and(EngineEvent::is_terminal);
        event
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.ended {
            self.driver.cancel(self.id);
        }
    }
}
